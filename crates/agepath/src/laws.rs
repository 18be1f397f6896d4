//! The laws that every loss and every pacing must obey, as functions that try them out.
//!
//! The tracker trusts its factors: a wrong derivative shows up as Newton steps that do not converge, a wrong threshold as events
//! that are none. Run these over a loss or a pacing of your own in a test; they need no data and take milliseconds.
//! What is broken is said in one sentence, with the place and both numbers:
//!
//! ```
//! use agepath::{laws, loss::Squared, pacing::Linear};
//! laws::check_pacing(&Linear)?;
//! laws::check_loss(&Squared)?;
//! laws::check_pair(&Squared, &Linear)?;
//! # Ok::<(), laws::Broken>(())
//! ```
//!
//! | of a pacing | |
//! |---|---|
//! | minimises | v* ∈ [0, 1] minimises vℓ + f(v, λ) |
//! | derivatives | ∂v/∂ℓ and ∂v/∂u of each zone's formula, inside the zone and a little beyond |
//! | zones | one more than thresholds, which are in order; zones meet there, with the same v if the pacing is continuous |
//! | primitive | F(ℓ) = ∫₀^ℓ v*, and its polynomial form where it has one |
//! | infinite age | u = 0 is an ordinary number |
//!
//! | of a loss | |
//! |---|---|
//! | derivatives | ℓ' and ℓ'' |
//! | convex | ℓ ≥ 0, ℓ'' ≥ 0, ℓ' does not fall at a kink |
//! | kinks | pieces meet where ℓ = 0, and each continues beyond its ends |

use crate::loss::{Loss, Losses, TargetKind};
use crate::pacing::{Pacing, Weights};

/// A law that does not hold, where, and by how much.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{who}: {law}; {place}: found {found}, expected {expected}")]
pub struct Broken {
    /// The loss or the pacing.
    pub who: String,
    /// The law.
    pub law: &'static str,
    /// Where it was tried.
    pub place: String,
    /// The number that was found.
    pub found: f64,
    /// The number that the law says.
    pub expected: f64,
}

/// Every law is tried at this many points.
const POINTS: usize = 400;
/// Relative distance to a threshold, and distance to a kink, below which a finite difference would reach across it.
const CLEAR: f64 = 1e-3;
/// Step of a finite difference: its error is the fourth power of it, and rounding divided by it.
const STEP: f64 = 1e-4;
/// Derivatives agree to this, relative to their size or 1.
const DERIVATIVE: f64 = 1e-7;
/// ... and those of thresholds, which are simpler, to this.
const CUT_SLOPE: f64 = 1e-8;
/// So far beside a threshold, relatively, a loss has left it.
const BESIDE: f64 = 1e-12;
/// An integral by quadrature agrees to this.
const INTEGRAL: f64 = 1e-10;

/// Tries every law of a pacing.
pub fn check_pacing(pacing: &dyn Pacing) -> Result<(), Broken> {
    let laws = Pace { pacing };
    for (log_loss, log_age) in points((-7.0, 4.0), (-4.0, 4.0)) {
        let (loss, u) = (f64::exp(log_loss), f64::exp(-log_age));
        laws.minimises(loss, u)?;
        laws.has_derivatives(loss, u)?;
        laws.zones_meet(u)?;
        laws.primitive_is_integral(loss, u)?;
        laws.infinite_age(loss)?;
    }
    [0.0, 1e6].into_iter().try_for_each(|loss| laws.infinite_age(loss))
}

/// Tries every law of a loss.
pub fn check_loss(loss: &dyn Loss) -> Result<(), Broken> {
    for (z, y) in points((-8.0, 8.0), (-5.0, 5.0)) {
        let Some(y) = target(loss, y) else { continue };
        has_slopes(loss, z, y)?;
        kinks_meet(loss, z, y)?;
    }
    let unit = loss.slope_unit();
    ensure(unit > 0.0, loss, "the unit of slopes is above 0", "everywhere", (unit, 1.0))
}

/// Tries the laws of loss and pacing together: ψ, h and q are derivatives of F(ℓ(z)).
pub fn check_pair(loss: &dyn Loss, pacing: &dyn Pacing) -> Result<(), Broken> {
    for ((z, y), (log_age, _)) in points((-6.0, 6.0), (-4.0, 4.0)).zip(points((-3.0, 4.0), (0.0, 1.0))) {
        let Some(y) = target(loss, y) else { continue };
        derivatives_of_the_objective(loss, pacing, (z, y), f64::exp(-log_age))?;
    }
    Ok(())
}

/// Points of a low-discrepancy sequence in a rectangle (additive recurrence with the plastic number).
fn points(first: (f64, f64), second: (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    const STEPS: (f64, f64) = (0.754_877_666_246_693, 0.569_840_290_998_053_2);
    let at = |(low, high): (f64, f64), step: f64, k: usize| low + (high - low) * (0.5 + step * k as f64).fract();
    (0..POINTS).map(move |k| (at(first, STEPS.0, k), at(second, STEPS.1, k)))
}

/// A target that the loss takes, near `y`.
fn target(loss: &dyn Loss, y: f64) -> Option<f64> {
    let y = if loss.target() == TargetKind::Sign { 1f64.copysign(y) } else { y };
    [y, y.abs(), y.abs().round()].into_iter().find(|&y| loss.needs(y).is_none())
}

fn ensure(
    holds: bool,
    who: &(impl std::fmt::Debug + ?Sized),
    law: &'static str,
    place: impl Into<String>,
    (found, expected): (f64, f64),
) -> Result<(), Broken> {
    match holds {
        true => Ok(()),
        false => Err(Broken { who: format!("{who:?}"), law, place: place.into(), found, expected }),
    }
}

/// That two numbers agree to a tolerance, relative to their size or 1.
fn agree(
    who: &(impl std::fmt::Debug + ?Sized),
    law: &'static str,
    place: &str,
    (found, expected): (f64, f64),
    tolerance: f64,
) -> Result<(), Broken> {
    let size = found.abs().max(expected.abs()).max(1.0);
    ensure((found - expected).abs() <= tolerance * size, who, law, place, (found, expected))
}

/// Central difference of fourth order.
fn difference(f: impl Fn(f64) -> f64, x: f64, h: f64) -> f64 {
    (8.0 * (f(x + h) - f(x - h)) - (f(x + 2.0 * h) - f(x - 2.0 * h))) / (12.0 * h)
}

struct Pace<'a> {
    pacing: &'a dyn Pacing,
}

impl Pace<'_> {
    fn clear(&self, loss: f64, u: f64) -> bool {
        self.pacing.cuts(u).as_slice().iter().all(|cut| (loss * cut.value - 1.0).abs() > CLEAR)
    }

    fn minimises(&self, loss: f64, u: f64) -> Result<(), Broken> {
        let (p, age) = (self.pacing, 1.0 / u);
        let place = format!("at loss {loss} and age {age}");
        let objective = |v: f64| v * loss + p.regularizer(v, age);
        let weight = p.weight(loss, u);
        ensure((0.0..=1.0).contains(&weight), p, "weights are from 0 to 1", &place, (weight, weight.clamp(0.0, 1.0)))?;
        let (v, least) = brute_force(objective);
        let size = least.abs() + loss + age;
        let law = "the weight minimises v loss + f(v, age)";
        ensure(objective(weight) <= least + 1e-13 * size, p, law, &place, (weight, v))?;
        // Where the minimum is flat (hard pacing at its threshold) only the value is determined.
        let curved = objective((v + CLEAR).min(1.0)).min(objective((v - CLEAR).max(0.0))) > least + 1e-9 * size;
        ensure(!curved || (weight - v).abs() < 1e-4, p, law, &place, (weight, v))
    }

    /// Of every zone's formula, also beyond its ends: Newton evaluates it a little outside.
    fn has_derivatives(&self, loss: f64, u: f64) -> Result<(), Broken> {
        let p = self.pacing;
        if !self.clear(loss, u) {
            return Ok(());
        }
        for zone in 0..p.zones().len() as u8 {
            let place = format!("in zone {} at loss {loss} and u = 1/age = {u}", p.zones()[usize::from(zone)]);
            let at = p.at(zone, loss, u);
            let by_loss = difference(|l| p.at(zone, l, u).value, loss, STEP * loss);
            agree(p, "by_loss is dv/dloss", &place, (at.by_loss, by_loss), DERIVATIVE)?;
            let by_u = difference(|u| p.at(zone, loss, u).value, u, STEP * u);
            agree(p, "by_inverse_age is dv/du", &place, (at.by_inverse_age, by_u), DERIVATIVE)?;
            let (mut many, mut paced) = (Weights::default(), Vec::new());
            p.fill(&[zone], &[loss], u, &mut many);
            ensure(many.value == [at.value], p, "fill does what at does", &place, (many.value[0], at.value))?;
            p.fill_primitives(&[1.0], &[loss], u, &mut paced);
            let one = p.primitive(loss, u);
            ensure(paced == [one], p, "fill_primitives does what primitive does", &place, (paced[0], one))?;
        }
        Ok(())
    }

    fn zones_meet(&self, u: f64) -> Result<(), Broken> {
        let (p, cuts) = (self.pacing, self.pacing.cuts(u));
        let (list, place) = (cuts.as_slice(), format!("at u = 1/age = {u}"));
        let counts = (p.zones().len() as f64, list.len() as f64 + 1.0);
        ensure(counts.0 == counts.1, p, "there is one zone more than thresholds", &place, counts)?;
        for (k, cut) in list.iter().enumerate() {
            let before = if k > 0 { list[k - 1].value } else { f64::INFINITY };
            ensure(
                before >= cut.value,
                p,
                "thresholds are in order, smallest loss first",
                &place,
                (cut.value, before),
            )?;
            let slope = difference(|u| p.cuts(u).as_slice()[k].value, u, STEP * u);
            agree(p, "a cut's slope is d(1/threshold)/du", &place, (cut.slope, slope), CUT_SLOPE)?;
            let threshold = 1.0 / cut.value;
            for (side, zone) in [(1.0 - BESIDE, k as u8), (1.0 + BESIDE, k as u8 + 1)] {
                let found = cuts.zone(side * threshold);
                let law = "a loss beside a threshold is in the zone on that side";
                ensure(found == zone, p, law, &place, (f64::from(found), f64::from(zone)))?;
            }
            let sides = (p.at(k as u8, threshold, u).value, p.at(k as u8 + 1, threshold, u).value);
            let meets = (sides.0 - sides.1).abs() < 1e-12;
            let law = match p.is_continuous() {
                true => "the weight is the same on both sides of a threshold",
                false => "the weight drops at a threshold where it is said not to be continuous",
            };
            ensure(meets == p.is_continuous(), p, law, format!("at threshold {threshold}, {place}"), sides)?;
        }
        Ok(())
    }

    fn primitive_is_integral(&self, loss: f64, u: f64) -> Result<(), Broken> {
        let (p, place) = (self.pacing, format!("at loss {loss} and u = 1/age = {u}"));
        let cuts = p.cuts(u);
        let inside = cuts.as_slice().iter().map(|c| 1.0 / c.value).filter(|t| *t < loss);
        let ends: Vec<f64> = std::iter::once(0.0).chain(inside).chain([loss]).collect();
        // In √ℓ, which every weight is smoothest in.
        let slope = |root: f64| 2.0 * root * p.weight(root * root, u);
        let integral: f64 = ends.windows(2).map(|w| quadrature(slope, w[0].sqrt(), w[1].sqrt())).sum();
        agree(p, "the primitive is the integral of the weight", &place, (p.primitive(loss, u), integral), INTEGRAL)?;
        let zone = cuts.zone(loss);
        let Some(form) = p.polynomial(zone) else { return Ok(()) };
        let at = |c: [f64; 2]| c[0] + c[1] * u;
        let weight = at(form.root) / (2.0 * loss.sqrt()) + at(form.linear) + 2.0 * at(form.square) * loss;
        agree(p, "the polynomial has the weight as its derivative", &place, (weight, p.at(zone, loss, u).value), 1e-12)
    }

    fn infinite_age(&self, loss: f64) -> Result<(), Broken> {
        let (p, place) = (self.pacing, format!("at loss {loss}"));
        let (v, near) = (p.weight(loss, 0.0), p.weight(loss, 1e-12));
        let fine = (0.0..=1.0).contains(&v) && (v - near).abs() < 1e-5;
        ensure(fine, p, "the weight at u = 0 is that of a large age", &place, (v, near))?;
        let f = p.primitive(loss, 0.0);
        ensure(f <= loss * (1.0 + 1e-15), p, "the primitive at u = 0 is at most the loss", &place, (f, loss))
    }
}

fn has_slopes(loss: &dyn Loss, z: f64, y: f64) -> Result<(), Broken> {
    let place = format!("at z = {z}, y = {y}");
    let at = loss.at(z, y);
    ensure(at.value >= 0.0, loss, "no loss is below 0", &place, (at.value, 0.0))?;
    ensure(at.curvature >= 0.0, loss, "a loss is convex", &place, (at.curvature, 0.0))?;
    let mut many = Losses::default();
    loss.fill(&[z], &[y], &mut many);
    ensure(many.get(0) == at, loss, "fill does what at does", &place, (many.get(0).value, at.value))?;
    if loss.kinks(y).as_slice().iter().any(|kink| (z - kink).abs() <= CLEAR) {
        return Ok(());
    }
    let slope = difference(|z| loss.at(z, y).value, z, STEP);
    agree(loss, "slope is dloss/dz", &place, (at.slope, slope), DERIVATIVE)?;
    let curvature = difference(|z| loss.at(z, y).slope, z, STEP);
    agree(loss, "curvature is dslope/dz", &place, (at.curvature, curvature), DERIVATIVE)
}

fn kinks_meet(loss: &dyn Loss, z: f64, y: f64) -> Result<(), Broken> {
    let kinks = loss.kinks(y);
    for (k, &kink) in kinks.as_slice().iter().enumerate() {
        let place = format!("at the kink z = {kink}, y = {y}");
        let (below, above) = (loss.at_piece(k as u8, kink, y), loss.at_piece(k as u8 + 1, kink, y));
        for piece in [below, above] {
            ensure(piece.value.abs() < 1e-12, loss, "pieces meet where the loss is 0", &place, (piece.value, 0.0))?;
        }
        let rises = above.slope >= below.slope - 1e-12;
        ensure(rises, loss, "the slope does not fall at a kink", &place, (above.slope, below.slope))?;
        for near in [kink.next_down(), kink, kink.next_up()] {
            let value = loss.at(near, y).value;
            ensure(value >= 0.0, loss, "no loss is below 0, next to a kink neither", &place, (value, 0.0))?;
        }
    }
    for piece in 0..=kinks.as_slice().len() as u8 {
        let place = format!("on piece {piece} at z = {z}, y = {y}");
        let (at, value) = (loss.at_piece(piece, z, y), |z: f64| loss.at_piece(piece, z, y).value);
        agree(loss, "slope is dloss/dz", &place, (at.slope, difference(value, z, STEP)), DERIVATIVE)?;
    }
    Ok(())
}

fn derivatives_of_the_objective(loss: &dyn Loss, p: &dyn Pacing, (z, y): (f64, f64), u: f64) -> Result<(), Broken> {
    let l = loss.at(z, y);
    let kink_near = loss.kinks(y).as_slice().iter().any(|kink| (z - kink).abs() <= CLEAR);
    // Where a weight falls steeply, the sixth derivative of the objective is large: a shorter step.
    let step = 0.1 * STEP;
    // A difference in z moves the loss by this much; no threshold may be within reach.
    let reach = 2.0 * step * (l.slope.abs() + 1.0) / l.value.max(f64::MIN_POSITIVE);
    let cut_near = p.cuts(u).as_slice().iter().any(|cut| (l.value * cut.value - 1.0).abs() <= CLEAR.max(reach));
    if kink_near || cut_near || l.value < 1e-6 {
        return Ok(());
    }
    let (who, place) = ((loss, p), format!("at z = {z}, y = {y}, u = 1/age = {u}"));
    let v = p.at(p.cuts(u).zone(l.value), l.value, u);
    let psi = |z: f64, u: f64| {
        let l = loss.at(z, y);
        p.weight(l.value, u) * l.slope
    };
    let (h, q) = (v.value * l.curvature + v.by_loss * l.slope * l.slope, v.by_inverse_age * l.slope);
    let phi = difference(|z| p.primitive(loss.at(z, y).value, u), z, step);
    agree(&who, "psi = v slope is the derivative of F(loss(z))", &place, (psi(z, u), phi), 1e-6)?;
    agree(&who, "h is the derivative of psi in z", &place, (h, difference(|z| psi(z, u), z, step)), 1e-6)?;
    agree(&who, "q is the derivative of psi in u", &place, (q, difference(|u| psi(z, u), u, STEP * u)), 1e-6)
}

/// Where f is smallest on [0, 1], and its value: a grid, then golden section around its best point.
fn brute_force(f: impl Fn(f64) -> f64) -> (f64, f64) {
    const CELLS: usize = 1000;
    let node = |k: usize| k as f64 / CELLS as f64;
    let best = (0..=CELLS).min_by(|&a, &b| f(node(a)).total_cmp(&f(node(b)))).unwrap_or(0);
    let (mut low, mut high) = (node(best.saturating_sub(1)), node((best + 1).min(CELLS)));
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    // Each step leaves 0.62 of the interval: 60 steps leave rounding.
    for _ in 0..60 {
        let (a, b) = (high - ratio * (high - low), low + ratio * (high - low));
        if f(a) <= f(b) { high = b } else { low = a }
    }
    let candidates = [0.0, 0.5 * (low + high), 1.0].map(|v| (v, f(v)));
    candidates.into_iter().fold((f64::NAN, f64::INFINITY), |best, new| if new.1 < best.1 { new } else { best })
}

/// ∫ f over [a, b] by five-point Gauss on cells that shrink towards both ends, where weights are steep or have no second
/// derivative.
fn quadrature(f: impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
    const NODES: [f64; 3] = [0.0, 0.538_469_310_105_683_1, 0.906_179_845_938_664];
    const WEIGHTS: [f64; 3] = [0.568_888_888_888_888_9, 0.478_628_670_499_366_47, 0.236_926_885_056_189_08];
    const CELLS: usize = 200;
    let end = |k: usize| {
        let t = k as f64 / CELLS as f64;
        a + (b - a) * t * t * (3.0 - 2.0 * t)
    };
    let cell = |k: usize| {
        let (middle, half) = (0.5 * (end(k) + end(k + 1)), 0.5 * (end(k + 1) - end(k)));
        let pair = |i: usize| f(middle + half * NODES[i]) + f(middle - half * NODES[i]);
        half * (WEIGHTS[0] * f(middle) + WEIGHTS[1] * pair(1) + WEIGHTS[2] * pair(2))
    };
    (0..CELLS).map(cell).sum()
}
