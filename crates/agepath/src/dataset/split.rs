//! Splits rows into training and validation rows, or into the folds of a cross-validation.

use super::{DataError, Dataset, MIN_ROWS};
use crate::error::{Error, Result};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Training and validation rows: `fraction` of the rows validate (of each class, if there are classes), drawn by `seed`.
/// Both parts keep the order of the file.
pub fn split(data: &Dataset, fraction: f64, seed: u64) -> Result<(Dataset, Dataset)> {
    let (train, validate) = split_groups(data, groups(data), fraction, seed)?;
    Ok((data.subset(&train), data.subset(&validate)))
}

/// The training and the validation rows, `fraction` of each group.
pub(super) fn split_groups(
    data: &Dataset,
    groups: Vec<Vec<usize>>,
    fraction: f64,
    seed: u64,
) -> Result<(Vec<usize>, Vec<usize>)> {
    if !(fraction > 0.0 && fraction < 1.0) {
        return Err(Error::Option {
            name: "validation",
            value: fraction.to_string(),
            expected: "a fraction above 0 and below 1, or 0 for no validation rows, or a file".into(),
        });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut held = vec![false; data.len()];
    for mut group in groups {
        group.shuffle(&mut rng);
        let count = (fraction * group.len() as f64).round() as usize;
        for &i in &group[..count] {
            held[i] = true;
        }
    }
    let (validate, train): (Vec<usize>, Vec<usize>) = (0..data.len()).partition(|&i| held[i]);
    for (what, rows, needed) in [("training", train.len(), MIN_ROWS), ("validation", validate.len(), 1)] {
        if rows < needed {
            let file = data.name().to_owned();
            return Err(DataError::TooFewRows { file, what, rows, needed }.into());
        }
    }
    Ok((train, validate))
}

/// The random stream of the folds; the split uses stream 0 of the same seed.
const FOLD_STREAM: u64 = 2;

/// Folds of a cross-validation where nobody asks for a number.
pub const DEFAULT_FOLDS: usize = 5;

/// The folds of a cross-validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Folds {
    /// So many, drawn by a seed.
    Count(usize),
    /// The rows of each; every row is in exactly one.
    Given(Vec<Vec<usize>>),
}

impl Folds {
    /// The rows of each fold, smallest first.
    pub fn rows(&self, data: &Dataset, seed: u64) -> Result<Vec<Vec<usize>>> {
        self.draw(data.len(), groups(data), seed)
    }

    /// The rows of each fold of `len` rows, those of each group spread evenly.
    pub(super) fn draw(&self, len: usize, groups: Vec<Vec<usize>>, seed: u64) -> Result<Vec<Vec<usize>>> {
        match self {
            Folds::Count(count) => draw_folds(len, groups, *count, seed),
            Folds::Given(parts) => {
                let mut seen = vec![0usize; len];
                let known = parts.iter().flatten().all(|&i| seen.get_mut(i).map(|n| *n += 1).is_some());
                let fit = |part: &Vec<usize>| !part.is_empty() && len - part.len() >= MIN_ROWS;
                if !known || seen.iter().any(|&n| n != 1) || !parts.iter().all(fit) || parts.len() < 2 {
                    return Err(Error::Option {
                        name: "cv",
                        value: format!("{} folds of your own", parts.len()),
                        expected: "every row in exactly one fold, and rows enough outside of each".into(),
                    });
                }
                let mut parts = parts.clone();
                parts.iter_mut().for_each(|part| part.sort_unstable());
                Ok(parts)
            }
        }
    }
}

/// How many folds can be drawn at most: outside of every fold there must be rows of every class.
pub fn max_folds(data: &Dataset) -> usize {
    most_folds(data.len(), &groups(data))
}

/// How many folds can be drawn so that every group has rows outside of each.
pub(super) fn most_folds(len: usize, groups: &[Vec<usize>]) -> usize {
    let limit = groups.iter().map(Vec::len).min().unwrap_or(0);
    // Rows enough to learn from as well.
    (2..=limit).rev().find(|count| len - len.div_ceil(*count) >= MIN_ROWS).unwrap_or(0)
}

/// The rows of `count` folds (of each class about as many in every fold, if there are classes), drawn by `seed`. Each
/// fold is in the order of the file.
pub fn folds(data: &Dataset, count: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    Folds::Count(count).rows(data, seed)
}

fn draw_folds(len: usize, groups: Vec<Vec<usize>>, count: usize, seed: u64) -> Result<Vec<Vec<usize>>> {
    let limit = most_folds(len, &groups);
    if count < 2 || count > limit || len - len.div_ceil(count) < MIN_ROWS {
        return Err(Error::Option {
            name: "cv",
            value: count.to_string(),
            expected: format!("from 2 to {limit} folds for these rows (at most one per row of the smallest class)"),
        });
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(FOLD_STREAM);
    let mut folds = vec![Vec::new(); count];
    let mut next = (0..count).cycle();
    for mut group in groups {
        group.shuffle(&mut rng);
        // The next class goes on where the last one ended, so that folds differ by at most one row.
        group.into_iter().zip(&mut next).for_each(|(row, k)| folds[k].push(row));
    }
    folds.iter_mut().for_each(|fold| fold.sort_unstable());
    Ok(folds)
}

/// All rows, or the rows of each class.
fn groups(data: &Dataset) -> Vec<Vec<usize>> {
    match data.classes() {
        None => vec![(0..data.len()).collect()],
        Some(_) => {
            let (plus, minus) = (0..data.len()).partition(|&i| data.y()[i] > 0.0);
            vec![minus, plus]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(n: usize) -> Dataset {
        let y = (0..n).map(|i| if i % 4 == 0 { 1.0 } else { -1.0 }).collect();
        let names = ["no".to_owned(), "yes".to_owned()];
        Dataset::new(vec!["a".into()], "y".into(), (0..n).map(|i| i as f64).collect(), y, Some(names)).unwrap()
    }

    #[test]
    fn parts_are_disjoint_ordered_and_stratified() {
        let (train, held) = split(&classes(80), 0.25, 7).unwrap();
        assert_eq!((train.len(), held.len()), (60, 20));
        assert_eq!(held.y().iter().filter(|&&y| y > 0.0).count(), 5);
        assert!(train.rows().is_sorted() && held.rows().is_sorted());
        assert!(held.rows().iter().all(|r| !train.rows().contains(r)));
    }

    #[test]
    fn the_seed_decides() {
        let data = classes(80);
        assert_eq!(split(&data, 0.25, 7).unwrap(), split(&data, 0.25, 7).unwrap());
        assert_ne!(split(&data, 0.25, 7).unwrap(), split(&data, 0.25, 8).unwrap());
    }

    #[test]
    fn folds_hold_every_row_once_and_are_stratified() {
        let parts = folds(&classes(83), 5, 3).unwrap();
        let mut all: Vec<usize> = parts.concat();
        all.sort_unstable();
        assert_eq!(all, (0..83).collect::<Vec<_>>());
        for part in &parts {
            assert!(part.len() == 16 || part.len() == 17, "{}", part.len());
            let plus = part.iter().filter(|&&i| i % 4 == 0).count();
            assert!(plus == 4 || plus == 5, "{plus}");
        }
        assert_eq!(parts, folds(&classes(83), 5, 3).unwrap());
        assert_ne!(parts, folds(&classes(83), 5, 4).unwrap());
    }

    #[test]
    fn folds_of_ones_own_must_hold_every_row_once() {
        let data = classes(6);
        let rows = |parts: &[&[usize]]| Folds::Given(parts.iter().map(|p| p.to_vec()).collect()).rows(&data, 0);
        assert_eq!(rows(&[&[5, 0, 1], &[2, 4, 3]]).unwrap(), [[0, 1, 5], [2, 3, 4]]);
        assert!(rows(&[&[0, 1, 2], &[2, 3, 4, 5]]).is_err());
        assert!(rows(&[&[0, 1, 2], &[3, 4]]).is_err());
        assert!(rows(&[&[0, 1, 2], &[3, 4, 6]]).is_err());
        assert!(rows(&[&[0, 1, 2, 3, 4, 5]]).is_err());
        assert_eq!(Folds::Count(2).rows(&data, 3).unwrap(), folds(&data, 2, 3).unwrap());
        assert_eq!((max_folds(&classes(80)), max_folds(&classes(2))), (20, 0));
    }

    #[test]
    fn impossible_folds_are_refused() {
        assert!(folds(&classes(80), 1, 0).is_err());
        assert!(folds(&classes(80), 21, 0).is_err());
        assert!(folds(&classes(80), 20, 0).is_ok());
    }

    #[test]
    fn impossible_splits_are_refused() {
        assert!(split(&classes(80), 1.5, 0).is_err());
        assert!(split(&classes(3), 0.01, 0).is_err());
    }
}
