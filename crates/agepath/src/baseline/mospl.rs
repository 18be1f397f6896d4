//! Multi-objective self-paced learning: an individual is a weight vector v ∈ [0, 1]^n, w its weighted fit; the objectives are
//! Σ s v ℓ + R(w) and the part of the regularizer that is free of the age: −Σ s v (hard) or Σ s (v^t/t − v) (soft). The front
//! that NSGA-III finds approximates the age-path.
//!
//! NSGA-III (Deb & Jain 2014) with simulated binary crossover and polynomial mutation. With two objectives the reference
//! points lie evenly on the line between (0, 1) and (1, 0), and fronts are found by sorting.

use super::{Baseline, Outcome, Task};
use crate::error::{Error, Result};
use crate::problem::Problem;
use crate::solver;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Distribution indices of crossover and mutation, as usual for NSGA-III.
const CROSSOVER_INDEX: f64 = 30.0;
const MUTATION_INDEX: f64 = 20.0;

/// How it is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MosplOptions {
    /// Individuals, and reference points. Default 150.
    pub population: usize,
    /// Default 800.
    pub generations: usize,
    /// The exponent t > 1 of the soft regularizer; none: the hard one. Default 1.35.
    pub exponent: Option<f64>,
    /// Default 0.
    pub seed: u64,
}

impl Default for MosplOptions {
    fn default() -> Self {
        MosplOptions { population: 150, generations: 800, exponent: Some(1.35), seed: 0 }
    }
}

/// One point of the front.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontPoint {
    /// The weights.
    pub weights: Vec<f64>,
    /// The weighted fit.
    pub theta: Vec<f64>,
    /// Weighted loss with penalty, and the regularizer.
    pub objectives: [f64; 2],
}

/// The front that NSGA-III finds for a problem.
pub fn front(problem: &Problem, options: &MosplOptions) -> Result<Vec<FrontPoint>> {
    if options.population < 2 || options.exponent.is_some_and(|t| t.is_nan() || t <= 1.0) {
        return Err(Error::Option {
            name: "mospl",
            value: format!("{options:?}"),
            expected: "a population of 2 or more and an exponent above 1".into(),
        });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
    let n = problem.rows();
    // Whole levels of trust and mixtures, so that the first front spans the range.
    let first = (0..options.population).map(|k| {
        let level = k as f64 / (options.population - 1) as f64;
        (0..n).map(|_| (level + 0.5 * (rng.random::<f64>() - 0.5)).clamp(0.0, 1.0)).collect()
    });
    let mut population = evaluate(problem, options, first.collect())?;
    for _ in 0..options.generations {
        let children = offspring(&population, &mut rng);
        population.extend(evaluate(problem, options, children)?);
        population = survive(population, options.population);
    }
    Ok(fronts(&population).swap_remove(0).into_iter().map(|k| population[k].clone()).collect())
}

fn evaluate(problem: &Problem, options: &MosplOptions, weights: Vec<Vec<f64>>) -> Result<Vec<FrontPoint>> {
    let each = weights.into_par_iter().map(|v| {
        let theta = match solver::fit(problem, Some(&v)) {
            Ok(fit) => fit.theta,
            // All weights 0, or one class only: nothing is learned from these rows.
            Err(Error::NoSolution { .. }) => vec![0.0; problem.parameters()],
            Err(other) => return Err(other),
        };
        let losses = problem.losses(&theta);
        let scale = 1.0 / v.len() as f64;
        let fit: f64 = losses.iter().zip(&v).map(|(l, v)| scale * v * l).sum();
        let regularizer: f64 = match options.exponent {
            None => v.iter().map(|v| -scale * v).sum(),
            Some(t) => v.iter().map(|v| scale * (v.powf(t) / t - v)).sum(),
        };
        Ok(FrontPoint { objectives: [fit + problem.penalty(&theta), regularizer], weights: v, theta })
    });
    each.collect()
}

/// As many children as parents, from random pairs.
fn offspring(parents: &[FrontPoint], rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
    let mut order: Vec<usize> = (0..parents.len()).collect();
    order.shuffle(rng);
    let mut children = Vec::with_capacity(parents.len());
    for k in 0..parents.len().div_ceil(2) {
        let (a, b) = (order[2 * k], order[(2 * k + 1) % parents.len()]);
        let (mut a, mut b) = (parents[a].weights.clone(), parents[b].weights.clone());
        crossover(&mut a, &mut b, rng);
        mutate(&mut a, rng);
        mutate(&mut b, rng);
        children.extend([a, b]);
    }
    children.truncate(parents.len());
    children
}

/// Simulated binary crossover: each gene with probability ½.
fn crossover(a: &mut [f64], b: &mut [f64], rng: &mut ChaCha8Rng) {
    for (a, b) in a.iter_mut().zip(b) {
        if rng.random::<f64>() < 0.5 {
            let u: f64 = rng.random();
            let power = 1.0 / (CROSSOVER_INDEX + 1.0);
            let spread = if u <= 0.5 { (2.0 * u).powf(power) } else { (0.5 / (1.0 - u)).powf(power) };
            let (sum, difference) = (*a + *b, spread * (*b - *a));
            *a = (0.5 * (sum - difference)).clamp(0.0, 1.0);
            *b = (0.5 * (sum + difference)).clamp(0.0, 1.0);
        }
    }
}

/// Polynomial mutation: one gene on average.
fn mutate(v: &mut [f64], rng: &mut ChaCha8Rng) {
    let rate = 1.0 / v.len() as f64;
    for v in v {
        if rng.random::<f64>() < rate {
            let u: f64 = rng.random();
            let power = 1.0 / (MUTATION_INDEX + 1.0);
            let shift = if u < 0.5 { (2.0 * u).powf(power) - 1.0 } else { 1.0 - (2.0 * (1.0 - u)).powf(power) };
            *v = (*v + shift).clamp(0.0, 1.0);
        }
    }
}

/// The non-dominated fronts, best first.
fn fronts(points: &[FrontPoint]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    let key = |k: usize| points[k].objectives;
    order.sort_by(|&a, &b| key(a)[0].total_cmp(&key(b)[0]).then(key(a)[1].total_cmp(&key(b)[1])));
    let mut fronts: Vec<Vec<usize>> = Vec::new();
    for k in order {
        // Sorted by the first objective, a point is dominated by a front exactly if its last member is no worse in the second.
        let dominated = |front: &Vec<usize>| front.last().is_some_and(|&last| key(last)[1] <= key(k)[1]);
        match fronts.iter().position(|front| !dominated(front)) {
            Some(f) => fronts[f].push(k),
            None => fronts.push(vec![k]),
        }
    }
    fronts
}

/// Whole fronts while they fit; of the next one, those that fill the emptiest niches around the reference points.
fn survive(points: Vec<FrontPoint>, count: usize) -> Vec<FrontPoint> {
    let (mut kept, mut rest) = (Vec::new(), Vec::new());
    for front in fronts(&points) {
        if kept.len() + front.len() <= count {
            kept.extend(front);
        } else {
            rest = front;
            break;
        }
    }
    let considered: Vec<usize> = kept.iter().chain(&rest).copied().collect();
    let range = |o: usize| {
        let values = considered.iter().map(|&k| points[k].objectives[o]);
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        (low, f64::max(high - low, f64::MIN_POSITIVE))
    };
    let ranges = [range(0), range(1)];
    // The nearest reference direction (r, 1 − r) and the distance to it.
    let niche = |k: usize| {
        let [x, y] = [0, 1].map(|o| (points[k].objectives[o] - ranges[o].0) / ranges[o].1);
        let share = if x + y > 0.0 { x / (x + y) } else { 0.5 };
        let at = (share * (count - 1) as f64).round() as usize;
        let r = at as f64 / (count - 1) as f64;
        let length = (r * r + (1.0 - r) * (1.0 - r)).sqrt();
        (at, ((1.0 - r) * x - r * y).abs() / length)
    };
    let mut crowd = vec![0usize; count];
    kept.iter().for_each(|&k| crowd[niche(k).0] += 1);
    let mut waiting: Vec<(usize, usize, f64)> = rest.iter().map(|&k| (k, niche(k).0, niche(k).1)).collect();
    while kept.len() < count && !waiting.is_empty() {
        let better = |a: &(usize, usize, f64), b: &(usize, usize, f64)| {
            crowd[a.1].cmp(&crowd[b.1]).then(a.2.total_cmp(&b.2)).then(a.0.cmp(&b.0))
        };
        let best = (0..waiting.len()).min_by(|&a, &b| better(&waiting[a], &waiting[b])).unwrap_or(0);
        let (k, at, _) = waiting.swap_remove(best);
        crowd[at] += 1;
        kept.push(k);
    }
    kept.into_iter().map(|k| points[k].clone()).collect()
}

/// The front, of which the validation rows choose a point.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mospl {
    /// How it is run; the task's seed is used.
    pub options: MosplOptions,
}

impl Baseline for Mospl {
    fn name(&self) -> &'static str {
        "mospl"
    }

    fn summary(&self) -> &'static str {
        "multi-objective self-paced learning (NSGA-III)"
    }

    fn run(&self, task: &Task) -> Result<Outcome> {
        let front = front(&task.divided.problem, &MosplOptions { seed: task.seed, ..self.options })?;
        let solutions: Vec<_> = front.into_iter().map(|p| (None, p.theta)).collect();
        task.choose(&solutions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Strength};
    use crate::pacing::{Hard, Pacing};
    use crate::problem::Spec;
    use crate::space::Design;

    /// A mean (one constant feature, no penalty): four rows agree, one is far off.
    fn mean() -> Problem {
        let design = Design::from_row_major(5, 1, &[1.0; 5], false).unwrap();
        let spec = Spec::preset(Model::by_name("least-squares").unwrap(), &Strength::default(), Hard.spec());
        Problem::new(design, vec![0.0, 0.1, -0.1, 0.0, 5.0], None, false, &spec).unwrap()
    }

    #[test]
    fn fronts_by_hand() {
        let point = |a: f64, b: f64| FrontPoint { weights: vec![], theta: vec![], objectives: [a, b] };
        let points = [point(1.0, 4.0), point(2.0, 2.0), point(2.0, 3.0), point(3.0, 3.0), point(4.0, 1.0)];
        let mut found = fronts(&points);
        found.iter_mut().for_each(|f| f.sort_unstable());
        assert_eq!(found, [vec![0, 1, 4], vec![2], vec![3]]);
    }

    /// With the hard regularizer, the best fit to any share of trust is known: leave out the far row first.
    #[test]
    fn the_front_of_a_mean_is_found() {
        let options = MosplOptions { population: 40, generations: 150, exponent: None, seed: 1 };
        let found = front(&mean(), &options).unwrap();
        assert!(found.len() > 10);
        for (k, p) in found.iter().enumerate() {
            for q in &found[k + 1..] {
                let [a, b] = [p.objectives, q.objectives];
                let dominated = (a[0] < b[0] && a[1] < b[1]) || (a[0] > b[0] && a[1] > b[1]);
                assert!(!dominated, "{a:?} {b:?}");
            }
        }
        // Trusting the four good rows costs next to nothing; the front must come close to that corner.
        let corner =
            found.iter().filter(|p| p.objectives[1] <= -0.7).map(|p| p.objectives[0]).fold(f64::INFINITY, f64::min);
        assert!(corner < 0.05, "{corner}");
        assert_eq!(found, front(&mean(), &options).unwrap());
    }
}
