//! Laws of one sample, over every registered loss and pacing: the best weight is one, derivatives are derivatives,
//! thresholds are where zones meet, primitives are integrals.

use agepath::loss::{self, Loss, LossParameters, TargetKind};
use agepath::pacing::{self, Pacing};
use agepath::registry::Values;
use proptest::prelude::*;

/// Relative distance to a threshold below which a finite difference would reach across it.
const CLEAR: f64 = 1e-3;

/// Every pacing, with a few values of its parameters.
fn pacings() -> Vec<Box<dyn Pacing>> {
    let parameters = [Values::default(), Values::of(&[("gamma", 2.0), ("a", 0.3)])];
    let each = |p: &Values| pacing::REGISTRY.rows().iter().map(|row| row.build(p).unwrap()).collect::<Vec<_>>();
    parameters.iter().flat_map(each).collect()
}

/// Every loss, with two factors.
fn losses() -> Vec<Box<dyn Loss>> {
    let build = |row: agepath::registry::Row<dyn Loss>| {
        [1.0, 2.5].map(|c| row.build(LossParameters::with_c(c).values()).unwrap())
    };
    loss::REGISTRY.rows().into_iter().flat_map(build).collect()
}

/// A target that suits the loss.
fn target(loss: &dyn Loss, y: f64) -> f64 {
    if loss.target() == TargetKind::Sign { 1f64.copysign(y) } else { y }
}

/// Whether no kink is near.
fn clear_of_kinks(loss: &dyn Loss, z: f64, y: f64) -> bool {
    loss.kinks(y).as_slice().iter().all(|kink| (z - kink).abs() > CLEAR)
}

/// Whether no threshold at inverse age u is near.
fn clear_of_cuts(p: &dyn Pacing, loss: f64, u: f64) -> bool {
    p.cuts(u).as_slice().iter().all(|cut| (loss * cut.value - 1.0).abs() > CLEAR)
}

/// Central difference in a relative step: right to about 1e-9 of the function's own scale.
fn difference(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let h = 1e-5 * x.abs().max(1e-3);
    (8.0 * (f(x + h) - f(x - h)) - (f(x + 2.0 * h) - f(x - 2.0 * h))) / (12.0 * h)
}

fn assert_close(what: &str, who: &dyn std::fmt::Debug, found: f64, expected: f64, tolerance: f64) {
    let size = found.abs().max(expected.abs()).max(1.0);
    assert!((found - expected).abs() <= tolerance * size, "{who:?}: {what} is {found}, should be {expected}");
}

/// The smallest value of f over [0, 1] and where: a grid, then golden section around its best point.
fn brute_force(f: impl Fn(f64) -> f64) -> (f64, f64) {
    let cells = 1000;
    let best = (0..=cells).min_by(|&a, &b| f(a as f64 / cells as f64).total_cmp(&f(b as f64 / cells as f64))).unwrap();
    let mut low = (best as f64 - 1.0).max(0.0) / cells as f64;
    let mut high = (best as f64 + 1.0).min(cells as f64) / cells as f64;
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..60 {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        if f(a) <= f(b) { high = b } else { low = a }
    }
    let inside = [0.0, 0.5 * (low + high), 1.0];
    let v = inside.into_iter().min_by(|&a, &b| f(a).total_cmp(&f(b))).unwrap();
    (v, f(v))
}

/// The same cases every time, and no file of past failures: a failure names its case.
fn deterministic(cases: u32) -> ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(7);
    ProptestConfig { cases, rng_seed, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(deterministic(256))]

    #[test]
    fn the_weight_minimises(log_loss in -7.0..4.0f64, log_age in -4.0..4.0f64) {
        let (l, age) = (log_loss.exp(), log_age.exp());
        for p in pacings() {
            let objective = |v: f64| v * l + p.regularizer(v, age);
            let weight = p.weight(l, 1.0 / age);
            prop_assert!((0.0..=1.0).contains(&weight));
            let (v, least) = brute_force(objective);
            let size = least.abs() + l + age;
            prop_assert!(objective(weight) <= least + 1e-13 * size, "{p:?}: {weight} is worse than {v}");
            // Where the minimum is flat (hard pacing at its threshold) only the value is determined.
            let curved = objective((v + 1e-3).min(1.0)).min(objective((v - 1e-3).max(0.0))) > least + 1e-9 * size;
            if curved {
                prop_assert!((weight - v).abs() < 1e-4, "{p:?}: weight {weight}, brute force {v}");
            }
        }
    }

    #[test]
    fn weights_have_the_derivatives_they_say(log_loss in -7.0..4.0f64, log_age in -4.0..4.0f64) {
        let (l, u) = (log_loss.exp(), (-log_age).exp());
        for p in pacings().iter().filter(|p| clear_of_cuts(&***p, l, u)) {
            let at = p.at(p.cuts(u).zone(l), l, u);
            prop_assert_eq!(at.value, p.weight(l, u));
            assert_close("dv/dl", p, at.by_loss, difference(|l| p.weight(l, u), l), 1e-7);
            assert_close("dv/du", p, at.by_inverse_age, difference(|u| p.weight(l, u), u), 1e-7);
        }
    }

    #[test]
    fn every_zone_continues_beyond_its_ends(log_loss in -7.0..4.0f64, log_age in -4.0..4.0f64) {
        // Newton evaluates a zone's formula a little outside of it; its derivatives must be right there too.
        let (l, u) = (log_loss.exp(), (-log_age).exp());
        for p in pacings() {
            for zone in 0..p.zones().len() as u8 {
                let at = p.at(zone, l, u);
                assert_close("dv/dl", &p, at.by_loss, difference(|l| p.at(zone, l, u).value, l), 1e-7);
                assert_close("dv/du", &p, at.by_inverse_age, difference(|u| p.at(zone, l, u).value, u), 1e-7);
            }
        }
    }

    #[test]
    fn zones_meet_at_the_cuts(log_age in -4.0..4.0f64) {
        let u = (-log_age).exp();
        for p in pacings() {
            let cuts = p.cuts(u);
            prop_assert_eq!(cuts.as_slice().len() + 1, p.zones().len());
            prop_assert!(cuts.as_slice().windows(2).all(|w| w[0].value >= w[1].value), "{:?}: cuts out of order", p);
            for (k, cut) in cuts.as_slice().iter().enumerate() {
                assert_close("d(1/tau)/du", &p, cut.slope, difference(|u| p.cuts(u).as_slice()[k].value, u), 1e-8);
                let threshold = 1.0 / cut.value;
                prop_assert_eq!(cuts.zone(threshold * (1.0 - 1e-12)), k as u8);
                prop_assert_eq!(cuts.zone(threshold * (1.0 + 1e-12)), k as u8 + 1);
                let gap = p.at(k as u8, threshold, u).value - p.at(k as u8 + 1, threshold, u).value;
                prop_assert_eq!(gap.abs() < 1e-12, p.is_continuous(), "{:?}: v jumps by {} at cut {}", p, gap, k);
            }
        }
    }

    #[test]
    fn the_primitive_is_the_integral(log_loss in -7.0..4.0f64, log_age in -4.0..4.0f64) {
        let (l, u) = (log_loss.exp(), (-log_age).exp());
        for p in pacings() {
            // Gauss with 5 points on many cells between consecutive thresholds: v is smooth there.
            let mut ends: Vec<f64> = p.cuts(u).as_slice().iter().map(|c| 1.0 / c.value).filter(|t| *t < l).collect();
            ends.insert(0, 0.0);
            ends.push(l);
            // In √ℓ, which every v is smoothest in.
            let slope = |root: f64| 2.0 * root * p.weight(root * root, u);
            let integral: f64 = ends.windows(2).map(|w| quadrature(slope, w[0].sqrt(), w[1].sqrt())).sum();
            assert_close("F", &p, p.primitive(l, u), integral, 1e-10);
        }
    }

    #[test]
    fn losses_have_the_derivatives_they_say(z in -8.0..8.0f64, y in -5.0..5.0f64) {
        for loss in losses() {
            let y = target(&*loss, y);
            if !clear_of_kinks(&*loss, z, y) {
                continue;
            }
            let at = loss.at(z, y);
            prop_assert!(at.value >= 0.0 && at.curvature >= 0.0);
            assert_close("slope", &loss, at.slope, difference(|z| loss.at(z, y).value, z), 1e-7);
            assert_close("curvature", &loss, at.curvature, difference(|z| loss.at(z, y).slope, z), 1e-7);
            let mut many = Default::default();
            loss.fill(&[z], &[y], &mut many);
            prop_assert_eq!(many.get(0), at);
        }
    }

    #[test]
    fn pieces_meet_at_the_kinks_and_continue_beyond(z in -8.0..8.0f64, y in -5.0..5.0f64) {
        for loss in losses() {
            let y = target(&*loss, y);
            let kinks = loss.kinks(y);
            for (k, &kink) in kinks.as_slice().iter().enumerate() {
                let (below, above) = (loss.at_piece(k as u8, kink, y), loss.at_piece(k as u8 + 1, kink, y));
                prop_assert!(below.value.abs() < 1e-12 && above.value.abs() < 1e-12, "{:?}: no loss at a kink", loss);
                prop_assert!(above.slope >= below.slope - 1e-12, "{:?}: convex", loss);
            }
            for piece in 0..=kinks.as_slice().len() as u8 {
                let at = loss.at_piece(piece, z, y);
                assert_close("slope", &loss, at.slope, difference(|z| loss.at_piece(piece, z, y).value, z), 1e-7);
            }
        }
    }

    #[test]
    fn psi_h_q_are_derivatives_of_the_objective(z in -6.0..6.0f64, y in -4.0..4.0f64, log_age in -3.0..4.0f64) {
        let u = (-log_age).exp();
        for loss in losses() {
            let y = target(&*loss, y);
            if !clear_of_kinks(&*loss, z, y) {
                continue;
            }
            for p in pacings() {
                let l = loss.at(z, y);
                if !clear_of_cuts(&*p, l.value, u) || l.value < 1e-6 {
                    continue;
                }
                let who = (&loss, &p, z, y, u);
                let v = p.at(p.cuts(u).zone(l.value), l.value, u);
                let psi = |z: f64, u: f64| {
                    let l = loss.at(z, y);
                    p.weight(l.value, u) * l.slope
                };
                let h = v.value * l.curvature + v.by_loss * l.slope * l.slope;
                let q = v.by_inverse_age * l.slope;
                let phi = |z: f64| p.primitive(loss.at(z, y).value, u);
                assert_close("psi", &who, psi(z, u), difference(phi, z), 1e-6);
                assert_close("h", &who, h, difference(|z| psi(z, u), z), 1e-6);
                assert_close("q", &who, q, difference(|u| psi(z, u), u), 1e-6);
            }
        }
    }
}

/// ∫ f over [a, b] by five-point Gauss on cells that grow away from a, where a steep v is steepest.
fn quadrature(f: impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
    let nodes = [0.0, 0.538_469_310_105_683_1, 0.906_179_845_938_664];
    let weights = [0.568_888_888_888_888_9, 0.478_628_670_499_366_47, 0.236_926_885_056_189_08];
    let cells = 200;
    let end = |k: usize| a + (b - a) * (k as f64 / cells as f64).powi(2);
    (0..cells)
        .map(|k| {
            let (low, high) = (end(k), end(k + 1));
            let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
            let at = |x: f64| f(middle + half * x);
            half * (weights[0] * at(0.0) + (1..3).map(|i| weights[i] * (at(nodes[i]) + at(-nodes[i]))).sum::<f64>())
        })
        .sum()
}

#[test]
fn no_loss_is_negative_next_to_a_kink() {
    for loss in losses() {
        for k in 0..1000 {
            let y = target(&*loss, (f64::from(k) - 500.0) / 7.0);
            for kink in loss.kinks(y).as_slice() {
                for z in [kink.next_down(), *kink, kink.next_up()] {
                    assert!(loss.at(z, y).value >= 0.0, "{loss:?} at {z} for {y}: {:?}", loss.at(z, y));
                }
            }
        }
    }
}

#[test]
fn at_infinite_age_every_weight_is_what_the_convex_problem_says() {
    // u = 0 is an ordinary number: no pacing may divide by it.
    for p in pacings() {
        for l in [0.0, 1e-3, 1.0, 50.0, 1e6] {
            let (v, near) = (p.weight(l, 0.0), p.weight(l, 1e-12));
            assert!((0.0..=1.0).contains(&v) && (v - near).abs() < 1e-5, "{p:?}: v({l}) = {v}, nearby {near}");
            let f = p.primitive(l, 0.0);
            assert!(f.is_finite() && f <= l * (1.0 + 1e-15), "{p:?}: F({l}) = {f}");
        }
    }
}
