//! Small problems, and everything needed to judge their paths without the engine's own solvers: losses, weights, KKT,
//! Hessians and an ACS of its own, all by plain loops over the public losses and pacings.

#![allow(dead_code)] // each test file uses its part
#![allow(clippy::needless_range_loop)] // formulas keep the indices of their sums

use agepath::loss::{self, Loss, LossParameters, TargetKind};
use agepath::model::SampleScale;
use agepath::pacing::{self, Pacing};
use agepath::path::{Gap, Knot, Path, PathOptions, Progress, WIDEST_GAP, age_path};
use agepath::penalty::Penalty;
use agepath::registry::Values;
use agepath::space::Design;
use agepath::{Problem, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use std::ops::ControlFlow;

/// A relative KKT residual of 1e-9 leaves room for predictors that are wrong by 1e-13 of their size: that is this share.
const ROUNDING: f64 = 1e-4;

/// A problem in the test's own terms.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub n: usize,
    pub d: usize,
    /// Row-major.
    pub x: Vec<f64>,
    pub y: Vec<f64>,
    pub weights: Option<Vec<f64>>,
    pub intercept: bool,
    pub spec: Spec,
}

/// The size of a generated problem.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub n: usize,
    pub d: usize,
    pub intercept: bool,
    pub weighted: bool,
}

/// Every registered loss × pacing × penalty, with strengths that leave something to see.
pub fn specs() -> Vec<(String, Spec)> {
    let mut out = Vec::new();
    for entry in loss::REGISTRY.rows() {
        let built = entry.build(&Values::default()).unwrap();
        // Losses with pieces have tests of their own, `kernel.rs` and `linear_kinks.rs`, and so do counts, `members.rs`.
        if built.has_pieces() || !built.is_in_units_of_the_target() {
            continue;
        }
        let sign = built.target() == TargetKind::Sign;
        let (scale, alpha) = if sign { (SampleScale::Sum, 0.7) } else { (SampleScale::HalfMean, 0.06) };
        let penalties = [
            ("none", Penalty::None),
            ("l2", Penalty::L2 { alpha }),
            ("l1", Penalty::L1 { alpha }),
            ("elastic-net", Penalty::ElasticNet { alpha, l1_ratio: 0.6 }),
        ];
        for pacing in pacing::REGISTRY.rows() {
            for (name, penalty) in penalties {
                let pacing_spec = pacing.build(&Values::default()).unwrap().spec();
                let loss_parameters = LossParameters::default();
                let (loss, pacing_name) = (entry.name, pacing.name);
                let spec = Spec { loss, loss_parameters, pacing: pacing_spec, penalty, scale, kernel: None };
                out.push((format!("{loss}/{pacing_name}/{name}"), spec));
            }
        }
    }
    // The cases of a pacing keep their seeds when another is registered after it.
    let later = ["huber", "polynomial", "welsch"];
    out.sort_by_key(|(_, spec)| later.iter().position(|kind| *kind == spec.pacing.kind).map_or(0, |k| k + 1));
    out
}

/// Ages over which a problem's path is interesting.
pub fn ages(spec: &Spec) -> (f64, f64) {
    // A mixture's age is the square root of a loss. Below these ages few rows are left.
    let (low, high) = if loss_of(spec).target() == TargetKind::Sign { (0.4, 6.0) } else { (0.3, 20.0) };
    if ["mixture", "huber"].contains(&spec.pacing.kind) { (f64::sqrt(low), f64::sqrt(high)) } else { (low, high) }
}

pub fn loss_of(spec: &Spec) -> Box<dyn Loss> {
    loss::by_name(spec.loss, &spec.loss_parameters).unwrap()
}

impl Case {
    /// Normal features, a linear signal with noise, 30 % of the rows corrupted.
    pub fn generate(name: &str, spec: &Spec, shape: Shape, seed: u64) -> Case {
        let Shape { n, d, intercept, weighted } = shape;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let x: Vec<f64> = (0..n * d).map(|_| normal()).collect();
        let signal: Vec<f64> = (0..d).map(|j| normal() + if j % 2 == 0 { 1.5 } else { 0.0 }).collect();
        let shift = if intercept { 0.3 * normal() } else { 0.0 };
        let sign = loss_of(spec).target() == TargetKind::Sign;
        let noise = if sign { 0.5 } else { 0.3 };
        let y = (0..n)
            .map(|i| {
                let z: f64 = shift + (0..d).map(|j| x[i * d + j] * signal[j]).sum::<f64>();
                let clean = z + noise * normal();
                let corrupted = i % 10 < 3;
                match (sign, corrupted) {
                    (true, _) => 1f64.copysign(if corrupted { -clean } else { clean }),
                    (false, true) => clean + 3.0 * normal() + 0.5,
                    (false, false) => clean,
                }
            })
            .collect();
        let weights = weighted.then(|| (0..n).map(|i| 0.5 + (i % 4) as f64 * 0.5).collect());
        let name = format!("{name} n={n} d={d} intercept={intercept} weighted={weighted} seed={seed}");
        Case { name, n, d, x, y, weights, intercept, spec: spec.clone() }
    }

    pub fn problem(&self) -> Problem {
        let design = Design::from_row_major(self.n, self.d, &self.x, self.intercept).unwrap();
        Problem::new(design, self.y.clone(), self.weights.as_deref(), self.intercept, &self.spec).unwrap()
    }

    pub fn path(&self, options: &PathOptions) -> (Problem, Path) {
        let problem = self.problem();
        let path = follow(&problem, options).unwrap_or_else(|e| panic!("{} {options:?}: {e}", self.name));
        (problem, path)
    }

    pub fn model(&self) -> Model {
        Model::new(self)
    }
}

pub fn follow(problem: &Problem, options: &PathOptions) -> agepath::Result<Path> {
    age_path(problem, options, &mut |_: &Progress| ControlFlow::Continue(()))
}

/// Coefficients and intercept in one vector.
pub fn theta(case: &Case, coef: &[f64], intercept: f64) -> Vec<f64> {
    let mut theta = coef.to_vec();
    theta.extend(case.intercept.then_some(intercept));
    theta
}

pub fn knot_theta(case: &Case, knot: &Knot) -> Vec<f64> {
    theta(case, &knot.coef, knot.intercept)
}

/// The solution at an age, as one vector.
pub fn solution(case: &Case, problem: &Problem, path: &Path, age: f64) -> Vec<f64> {
    let p = path.at(problem, age).unwrap_or_else(|e| panic!("{}: at {age}: {e}", case.name));
    theta(case, &p.coef, p.intercept)
}

pub fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// The formulas of the problem, written out again.
pub struct Model {
    pub rows: Vec<Vec<f64>>,
    pub y: Vec<f64>,
    pub s: Vec<f64>,
    pub l1: Vec<f64>,
    pub l2: Vec<f64>,
    pub units: Vec<f64>,
    pub loss: Box<dyn Loss>,
    pub pacing: Box<dyn Pacing>,
}

impl Model {
    fn new(case: &Case) -> Model {
        let m = case.d + usize::from(case.intercept);
        let rows: Vec<Vec<f64>> = case
            .x
            .chunks(case.d.max(1))
            .map(|r| r.iter().copied().chain((m > case.d).then_some(1.0)).collect())
            .collect();
        let weights = case.weights.clone().unwrap_or(vec![1.0; case.n]);
        let total: f64 = weights.iter().sum();
        let factor = if case.spec.scale == SampleScale::HalfMean { 0.5 / total } else { 1.0 };
        let penalised = |strength: f64| (0..m).map(|j| if j < case.d { strength } else { 0.0 }).collect();
        let unit = |j: usize| {
            let mean = rows.iter().map(|r| r[j] * r[j]).sum::<f64>() / case.n as f64;
            if mean > 0.0 { mean.sqrt() } else { 1.0 }
        };
        Model {
            units: (0..m).map(unit).collect(),
            y: case.y.clone(),
            s: weights.iter().map(|w| w * factor).collect(),
            l1: penalised(case.spec.penalty.l1()),
            l2: penalised(case.spec.penalty.l2()),
            loss: loss_of(&case.spec),
            pacing: case.spec.pacing.build().unwrap(),
            rows,
        }
    }

    pub fn n(&self) -> usize {
        self.y.len()
    }

    pub fn m(&self) -> usize {
        self.l1.len()
    }

    pub fn z(&self, i: usize, theta: &[f64]) -> f64 {
        self.rows[i].iter().zip(theta).map(|(x, w)| x * w).sum()
    }

    /// ‖a − b‖ with every column in its own unit: what the engine calls the size of a jump.
    pub fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        norm(&a.iter().zip(b).zip(&self.units).map(|((a, b), s)| (a - b) * s).collect::<Vec<_>>())
    }

    pub fn losses(&self, theta: &[f64]) -> Vec<f64> {
        (0..self.n()).map(|i| self.loss.at(self.z(i, theta), self.y[i]).value).collect()
    }

    pub fn zones(&self, theta: &[f64], u: f64) -> Vec<u8> {
        let cuts = self.pacing.cuts(u);
        self.losses(theta).into_iter().map(|l| cuts.zone(l)).collect()
    }

    /// G.
    pub fn objective(&self, theta: &[f64], u: f64) -> f64 {
        let penalty: f64 =
            (0..self.m()).map(|j| self.l1[j] * theta[j].abs() + 0.5 * self.l2[j] * theta[j].powi(2)).sum();
        let sum: f64 = self.losses(theta).iter().zip(&self.s).map(|(&l, s)| s * self.pacing.primitive(l, u)).sum();
        penalty + sum
    }

    /// The relative KKT violation with each sample in the zone given.
    pub fn kkt_in(&self, theta: &[f64], u: f64, zones: &[u8]) -> f64 {
        let mut gradient: Vec<f64> = (0..self.m()).map(|j| self.l2[j] * theta[j]).collect();
        let mut total = 0.0;
        let mut rounding = 0.0;
        for i in 0..self.n() {
            let z = self.z(i, theta);
            let l = self.loss.at(z, self.y[i]);
            let v = self.pacing.at(zones[i], l.value, u);
            let psi = self.s[i] * v.value * l.slope;
            total += psi.abs();
            let bending = v.value * l.curvature + v.by_loss.abs() * l.slope * l.slope;
            rounding += self.s[i] * bending * (z.abs() + self.y[i].abs());
            self.rows[i].iter().zip(&mut gradient).for_each(|(x, g)| *g += psi * x);
        }
        // With residuals or weights of zero nothing is left to compare with but the rounding of z itself.
        let (mut worst, mut size) = (0.0f64, total.max(ROUNDING * rounding));
        for j in 0..self.m() {
            let violation = if theta[j] == 0.0 {
                (gradient[j].abs() - self.l1[j]).max(0.0)
            } else {
                (gradient[j] + self.l1[j] * theta[j].signum()).abs()
            };
            worst = worst.max(violation / self.units[j]);
            size = size.max((self.l1[j] + self.l2[j] * theta[j].abs()) / self.units[j]);
        }
        if worst == 0.0 { 0.0 } else { worst / size }
    }

    /// The relative KKT violation with weights from the losses. Where the weight jumps at a threshold, a sample that
    /// sits on it may have either weight: the best choice counts.
    pub fn kkt(&self, theta: &[f64], u: f64) -> f64 {
        let cuts = self.pacing.cuts(u);
        let losses = self.losses(theta);
        let mut zones: Vec<u8> = losses.iter().map(|&l| cuts.zone(l)).collect();
        if self.pacing.is_continuous() {
            return self.kkt_in(theta, u, &zones);
        }
        let on_cut = |l: f64| cuts.as_slice().iter().position(|c| (l * c.value - 1.0).abs() < 1e-9);
        let tied: Vec<(usize, u8)> =
            losses.iter().enumerate().filter_map(|(i, &l)| on_cut(l).map(|k| (i, k as u8))).collect();
        let mut best = f64::INFINITY;
        // Rows of equal loss tie all at once: the first two choices are the likely ones, and beyond a dozen the only ones.
        let all = (1u32 << tied.len().min(31)) - 1;
        let others = if tied.len() <= 12 { 1..all } else { 0..0 };
        for choice in [0, all].into_iter().chain(others) {
            for (bit, &(i, low)) in tied.iter().enumerate() {
                zones[i] = low + (choice >> bit.min(30) & 1) as u8;
            }
            best = best.min(self.kkt_in(theta, u, &zones));
            if best < 1e-12 {
                break;
            }
        }
        best
    }

    /// The smooth part's Hessian over the coefficients that are not held at 0, each in units of its column.
    pub fn hessian(&self, theta: &[f64], u: f64, zones: &[u8]) -> Vec<Vec<f64>> {
        let free: Vec<usize> = (0..self.m()).filter(|&j| theta[j] != 0.0 || self.l1[j] == 0.0).collect();
        let unit = |p: usize| self.units[free[p]];
        let mut a = vec![vec![0.0; free.len()]; free.len()];
        for (p, &j) in free.iter().enumerate() {
            a[p][p] = self.l2[j] / unit(p).powi(2);
        }
        for i in 0..self.n() {
            let l = self.loss.at(self.z(i, theta), self.y[i]);
            let v = self.pacing.at(zones[i], l.value, u);
            let h = self.s[i] * (v.value * l.curvature + v.by_loss * l.slope * l.slope);
            for p in 0..free.len() {
                for q in 0..free.len() {
                    a[p][q] += h * self.rows[i][free[p]] * self.rows[i][free[q]] / (unit(p) * unit(q));
                }
            }
        }
        a
    }
}

/// The smallest pivot of LDLᵀ, relative to the largest diagonal entry; +∞ for an empty matrix.
pub fn smallest_pivot(mut a: Vec<Vec<f64>>) -> f64 {
    let m = a.len();
    let size = (0..m).map(|j| a[j][j].abs()).fold(0.0, f64::max);
    let mut least = f64::INFINITY;
    for k in 0..m {
        least = least.min(a[k][k] / size);
        for i in k + 1..m {
            let f = a[i][k] / a[k][k];
            for j in k + 1..m {
                a[i][j] -= f * a[k][j];
            }
        }
    }
    least
}

/// ACS with a solver of its own: quadratic models of the weighted loss, minimised by coordinate descent on the Gram
/// matrix.
pub struct Sweep<'a> {
    pub model: &'a Model,
    pub theta: Vec<f64>,
}

impl Sweep<'_> {
    /// The weighted objective.
    fn value(&self, theta: &[f64], v: &[f64]) -> f64 {
        let m = self.model;
        let penalty: f64 = (0..m.m()).map(|j| m.l1[j] * theta[j].abs() + 0.5 * m.l2[j] * theta[j].powi(2)).sum();
        penalty + (0..m.n()).map(|i| m.s[i] * v[i] * m.loss.at(m.z(i, theta), m.y[i]).value).sum::<f64>()
    }

    /// Minimises for fixed weights.
    fn fit(&mut self, v: &[f64]) {
        let (n, m) = (self.model.n(), self.model.m());
        for _ in 0..50 {
            let mut gram = vec![vec![0.0; m]; m];
            let mut gradient = vec![0.0; m];
            for i in 0..n {
                let l = self.model.loss.at(self.model.z(i, &self.theta), self.model.y[i]);
                let (g, h) = (self.model.s[i] * v[i] * l.slope, self.model.s[i] * v[i] * l.curvature);
                let row = &self.model.rows[i];
                for j in 0..m {
                    gradient[j] += g * row[j];
                    for k in 0..m {
                        gram[j][k] += h * row[j] * row[k];
                    }
                }
            }
            let step = self.coordinate_descent(&gram, &gradient);
            let now = self.value(&self.theta, v);
            let moved = |f: f64| -> Vec<f64> { self.theta.iter().zip(&step).map(|(t, s)| t + f * s).collect() };
            let mut factor = 1.0;
            while self.value(&moved(factor), v) > now + 1e-14 * now.abs() && factor > 1e-6 {
                factor *= 0.5;
            }
            self.theta = moved(factor);
            // Exact zeros survive a full step; a damped one is followed by another.
            if norm(&step) <= 1e-13 * (1.0 + norm(&self.theta)) {
                break;
            }
        }
    }

    /// The step to the minimiser of the quadratic model plus penalty.
    fn coordinate_descent(&self, gram: &[Vec<f64>], gradient: &[f64]) -> Vec<f64> {
        let m = gradient.len();
        let mut to = self.theta.clone();
        for _ in 0..20_000 {
            let mut largest = 0.0f64;
            for j in 0..m {
                let curvature = gram[j][j];
                let (l1, l2) = (self.model.l1[j], self.model.l2[j]);
                if curvature + l2 <= 1e-300 {
                    continue;
                }
                let slope: f64 = gradient[j] + (0..m).map(|k| gram[j][k] * (to[k] - self.theta[k])).sum::<f64>();
                let pull = curvature * to[j] - slope;
                let new = pull.signum() * (pull.abs() - l1).max(0.0) / (curvature + l2);
                largest = largest.max((new - to[j]).abs());
                to[j] = new;
            }
            if largest <= 1e-15 * (1.0 + norm(&to)) {
                break;
            }
        }
        to.iter().zip(&self.theta).map(|(a, b)| a - b).collect()
    }

    /// Alternates until the KKT conditions hold; answers the residual reached.
    pub fn settle(&mut self, u: f64, tolerance: f64, max_fits: usize) -> f64 {
        for _ in 0..max_fits {
            if self.model.kkt(&self.theta, u) <= tolerance {
                break;
            }
            let v: Vec<f64> = self.model.losses(&self.theta).iter().map(|&l| self.model.pacing.weight(l, u)).collect();
            self.fit(&v);
        }
        self.model.kkt(&self.theta, u)
    }
}

/// Numbers for one test, from a seed.
pub struct Dice(ChaCha8Rng);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    /// Log-uniform.
    pub fn age(&mut self, (low, high): (f64, f64)) -> f64 {
        (low.ln() + self.uniform() * (high / low).ln()).exp().clamp(low, high)
    }

    pub fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|k| order.swap(k, (self.uniform() * (k + 1) as f64) as usize));
        order
    }
}

/// Whether all that is missing in a path is named as places where its branch runs away to infinity.
pub fn only_runs_away(path: &Path) -> bool {
    let named = |gap: &&Gap| path.notes.iter().any(|note| note.starts_with(&format!("at age {} the branch", gap.from)));
    path.gaps.iter().filter(|gap| (gap.to / gap.from).ln().abs() > WIDEST_GAP).all(|gap| named(&gap))
}

/// The stretch of a path behind the last of its gaps.
pub fn behind_its_gaps(mut path: Path) -> Path {
    let Some(last) = path.gaps.iter().rfind(|gap| (gap.to / gap.from).ln().abs() > WIDEST_GAP).cloned() else {
        return path;
    };
    let up = last.to > last.from;
    let behind = |age: f64| if up { age >= last.to } else { age <= last.to };
    path.knots.retain(|knot| behind(knot.age));
    path.events.retain(|event| behind(event.age));
    path.ages = if up { (last.to, path.ages.1) } else { (path.ages.0, last.to) };
    path
}
