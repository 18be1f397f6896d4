//! Corrupts training rows on purpose, for studies: what was corrupted is known, so what is found can be counted.

use super::scale::{column_units, target_units};
use super::{Dataset, ManyClasses, TargetScale};
use crate::error::{Error, Result};
use crate::loss::TargetKind;
use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Mean and standard deviation of what is added to a corrupted row, in the units of its columns.
const OUTLIER: (f64, f64) = (0.2, 3.0);

/// The share of the rows, nearest the boundary, among which [`NoiseKind::Margin`] chooses; more if the rate is higher.
const NEAREST: f64 = 0.3;

/// The random stream of the noise; the split uses stream 0 of the same seed.
const STREAM: u64 = 1;

/// What is done to a corrupted row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseKind {
    /// Normal numbers are added to its features and to its numeric target.
    Outliers,
    /// A normal number is added to its numeric target.
    Target,
    /// Its class is changed to the other one, or to any other where there are several.
    Flip,
    /// The same, only among the rows nearest the boundary between the classes.
    Margin,
}

/// Every kind of noise: the name users type, and one line about it.
pub const NOISES: &[(&str, NoiseKind, &str)] = &[
    (
        "outliers",
        NoiseKind::Outliers,
        "normal(0.2, 3) is added to the features and a numeric target, in standard units",
    ),
    ("target", NoiseKind::Target, "normal(0.2, 3) is added to a numeric target, in robust units"),
    ("flip", NoiseKind::Flip, "the class is changed to the other one, or to any other"),
    ("margin", NoiseKind::Margin, "the same, among the 30 % of rows nearest the ordinary fit's boundary"),
];

/// A kind of noise and the share of rows it hits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// What is done.
    pub kind: NoiseKind,
    /// Share of the training rows, from 0 to 1.
    pub rate: f64,
}

/// Noise that was injected.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Injected {
    /// What was done.
    pub kind: NoiseKind,
    /// Share of the training rows.
    pub rate: f64,
    /// The seed that chose the rows.
    pub seed: u64,
    /// Row numbers in the file, counted from 0, smallest first.
    pub rows: Vec<usize>,
}

impl NoiseKind {
    /// The name users type.
    pub fn name(self) -> &'static str {
        NOISES.iter().find(|(_, kind, _)| *kind == self).map_or("", |(name, ..)| name)
    }
}

impl FromStr for Noise {
    type Err = Error;

    /// From `KIND:RATE`.
    fn from_str(text: &str) -> Result<Noise> {
        let names = || NOISES.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ");
        let wrong = || Error::Option {
            name: "noise",
            value: text.into(),
            expected: format!("KIND:RATE with a rate from 0 to 1 and a kind among {}", names()),
        };
        let (name, rate) = text.split_once(':').ok_or_else(wrong)?;
        let unknown = || Error::UnknownName { what: "noise", name: name.into(), choices: names() };
        let (_, kind, _) = NOISES.iter().find(|(known, ..)| *known == name).ok_or_else(unknown)?;
        let rate = rate.parse::<f64>().ok().filter(|r| (0.0..=1.0).contains(r)).ok_or_else(wrong)?;
        Ok(Noise { kind: *kind, rate })
    }
}

impl Noise {
    /// The corrupted rows in place of `data`, and which they are. `boundary` gives the decision value of every row, which
    /// is asked for only where it matters.
    pub fn inject(
        &self,
        data: &Dataset,
        seed: u64,
        boundary: impl FnOnce() -> Result<Vec<f64>>,
    ) -> Result<(Dataset, Injected)> {
        self.check(data.kind())?;
        let mut rng = stream(seed);
        let hit = self.choose(data, &mut rng, boundary)?;
        let mut out = data.clone();
        self.corrupt(data, &hit, &mut rng, &mut out);
        Ok((out, self.injected(data, &hit, seed)))
    }

    /// The same for more than two classes: a changed class is any other one.
    pub fn inject_classes(
        &self,
        data: &ManyClasses,
        seed: u64,
        boundary: impl FnOnce() -> Result<Vec<f64>>,
    ) -> Result<(ManyClasses, Injected)> {
        self.check(TargetKind::Sign)?;
        let mut rng = stream(seed);
        let hit = self.choose(data.rows(), &mut rng, boundary)?;
        let mut out = data.rows().clone();
        match self.kind {
            NoiseKind::Outliers => shift_rows(data.rows(), &hit, &mut rng, &mut out),
            _ => {
                let count = data.names().len();
                for &i in &hit {
                    out.y[i] = ((data.class(i) + rng.random_range(1..count)) % count) as f64;
                }
            }
        }
        Ok((ManyClasses::new(out, data.names().to_vec())?, self.injected(data.rows(), &hit, seed)))
    }

    /// Refuses noise that makes no sense for the kind of target.
    fn check(&self, kind: TargetKind) -> Result<()> {
        let fits = match self.kind {
            NoiseKind::Outliers => true,
            NoiseKind::Target => kind == TargetKind::Real,
            NoiseKind::Flip | NoiseKind::Margin => kind == TargetKind::Sign,
        };
        if fits {
            return Ok(());
        }
        Err(Error::Option {
            name: "noise",
            value: self.kind.name().into(),
            expected: match kind {
                TargetKind::Real => "outliers or target when the target is a number".into(),
                TargetKind::Sign => "outliers, flip or margin when the target is a class".into(),
            },
        })
    }

    /// The rows that are hit, smallest first.
    fn choose(
        &self,
        data: &Dataset,
        rng: &mut ChaCha8Rng,
        boundary: impl FnOnce() -> Result<Vec<f64>>,
    ) -> Result<Vec<usize>> {
        let count = (self.rate * data.len() as f64).round() as usize;
        let mut hit = match self.kind {
            NoiseKind::Margin => {
                let near = nearest(&boundary()?, count);
                sample(rng, near.len(), count).iter().map(|k| near[k]).collect()
            }
            _ => sample(rng, data.len(), count).into_vec(),
        };
        hit.sort_unstable();
        Ok(hit)
    }

    fn injected(&self, data: &Dataset, hit: &[usize], seed: u64) -> Injected {
        let rows = hit.iter().map(|&i| data.rows()[i]).collect();
        Injected { kind: self.kind, rate: self.rate, seed, rows }
    }

    fn corrupt(&self, data: &Dataset, hit: &[usize], rng: &mut ChaCha8Rng, out: &mut Dataset) {
        if matches!(self.kind, NoiseKind::Flip | NoiseKind::Margin) {
            hit.iter().for_each(|&i| out.y[i] = -out.y[i]);
            return;
        }
        if self.kind == NoiseKind::Outliers {
            shift_rows(data, hit, rng, out);
        }
        if data.kind() == TargetKind::Real {
            let (normal, (_, unit)) = (outlier(), target_units(data, TargetScale::Robust, &mut Vec::new()));
            hit.iter().for_each(|&i| out.y[i] += unit * normal.sample(rng));
        }
    }
}

fn stream(seed: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(STREAM);
    rng
}

fn outlier() -> Normal<f64> {
    Normal::new(OUTLIER.0, OUTLIER.1).expect("a standard deviation above 0 is always accepted")
}

/// Adds normal numbers to the features of some rows.
fn shift_rows(data: &Dataset, hit: &[usize], rng: &mut ChaCha8Rng, out: &mut Dataset) {
    let (normal, d, (_, unit)) = (outlier(), data.features().len(), column_units(data));
    let mut x = data.x().into_owned();
    for &i in hit {
        for (v, s) in x[i * d..(i + 1) * d].iter_mut().zip(&unit) {
            *v += s * normal.sample(rng);
        }
    }
    out.x = (x, d).into();
}

/// The rows nearest the boundary: [`NEAREST`] of them, and at least `count`.
fn nearest(decision: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..decision.len()).collect();
    order.sort_by(|&a, &b| decision[a].abs().total_cmp(&decision[b].abs()));
    order.truncate(count.max((NEAREST * decision.len() as f64).round() as usize));
    order
}

#[cfg(test)]
mod tests {
    use super::super::{ReadOptions, builtin};
    use super::*;

    fn data(name: &str) -> Dataset {
        let table = builtin(name, &ReadOptions::default()).unwrap();
        table.dataset(table.guess()).unwrap()
    }

    fn first_feature(data: &Dataset) -> impl FnOnce() -> Result<Vec<f64>> + use<> {
        let values = (0..data.len()).map(|i| data.row(i)[0] - 14.0).collect();
        || Ok(values)
    }

    #[test]
    fn margin_flips_stay_near_the_boundary() {
        let clean = data("breast_cancer");
        let noise: Noise = "margin:0.2".parse().unwrap();
        let (_, injected) = noise.inject(&clean, 3, first_feature(&clean)).unwrap();
        let mut distance: Vec<f64> = (0..clean.len()).map(|i| (clean.row(i)[0] - 14.0).abs()).collect();
        let farthest = injected.rows.iter().map(|&i| distance[i]).fold(0.0, f64::max);
        distance.sort_by(f64::total_cmp);
        assert!(farthest <= distance[(0.3 * clean.len() as f64).round() as usize - 1]);
    }

    #[test]
    fn only_the_recorded_rows_change() {
        for (name, spec) in [
            ("diabetes", "outliers:0.3"),
            ("diabetes", "target:0.1"),
            ("breast_cancer", "flip:0.2"),
            ("breast_cancer", "margin:0.2"),
        ] {
            let clean = data(name);
            let noise: Noise = spec.parse().unwrap();
            let (dirty, injected) = noise.inject(&clean, 3, first_feature(&clean)).unwrap();
            let changed: Vec<usize> =
                (0..clean.len()).filter(|&i| clean.row(i) != dirty.row(i) || clean.y()[i] != dirty.y()[i]).collect();
            assert_eq!(changed, injected.rows, "{spec}");
            assert_eq!(changed.len(), (noise.rate * clean.len() as f64).round() as usize);
            assert_eq!(noise.inject(&clean, 3, first_feature(&clean)).unwrap().0, dirty);
        }
    }

    #[test]
    fn wrong_noise_names_what_is_accepted() {
        for text in ["outliers", "labels:0.1", "flip:2", "flip:x"] {
            let error = text.parse::<Noise>().unwrap_err().to_string();
            assert!(error.contains("outliers, target, flip, margin"), "{error}");
        }
        assert!("flip:0.1".parse::<Noise>().unwrap().inject(&data("diabetes"), 0, || Ok(Vec::new())).is_err());
        assert!("target:0.1".parse::<Noise>().unwrap().inject(&data("breast_cancer"), 0, || Ok(Vec::new())).is_err());
    }
}
