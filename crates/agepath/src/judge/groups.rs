//! Folds that rows cannot vouch for each other across: neighbours in X are held out together.
//!
//! Bad rows that lie close together (a stuck sensor, a batch in other units) predict each other perfectly; with folds drawn at random a fit
//! through them looks good on held-out rows. Held out together they are judged by the rest alone, and only rows that other rows
//! corroborate count in favour of a fit.

use super::distance::Distances;

/// Groups of neighbours.
const GROUPS: usize = 40;
/// A group should have at least this many rows on average.
const ROWS_PER_GROUP: usize = 5;
/// Folds of a judgement.
pub(crate) const FOLDS: usize = 5;
const MAX_STEPS: usize = 15;

/// The fold of each row.
pub(crate) fn grouped_folds(distances: &Distances, rows: usize) -> Vec<usize> {
    let p = distances.columns;
    if p == 0 {
        return (0..rows).map(|i| i % FOLDS).collect();
    }
    // What is far out is far out: groups should not be spent on how far.
    let z: Vec<f64> = distances.z.iter().map(|v| v.signum() * v.abs().ln_1p()).collect();
    let count = GROUPS.min(rows / ROWS_PER_GROUP).max(FOLDS);
    let group = neighbours(&z, p, count);
    let mut sizes = vec![0usize; count];
    group.iter().for_each(|&g| sizes[g] += 1);
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| sizes[b].cmp(&sizes[a]));
    let (mut load, mut fold) = ([0usize; FOLDS], vec![0; count]);
    for g in order {
        let lightest = (0..FOLDS).fold(0, |best, k| if load[k] < load[best] { k } else { best });
        fold[g] = lightest;
        load[lightest] += sizes[g];
    }
    group.into_iter().map(|g| fold[g]).collect()
}

/// Lloyd's algorithm from centres that are as far apart as can be: a tight cluster gets one of them.
fn neighbours(z: &[f64], p: usize, count: usize) -> Vec<usize> {
    let rows: Vec<&[f64]> = z.chunks_exact(p).collect();
    let square = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum::<f64>();
    let mut centres = vec![vec![0.0; p]];
    let mut distance: Vec<f64> = rows.iter().map(|row| square(row, &centres[0])).collect();
    while centres.len() < count {
        let far = (0..rows.len()).fold(0, |best, i| if distance[i] > distance[best] { i } else { best });
        centres.push(rows[far].to_vec());
        for (d, row) in distance.iter_mut().zip(&rows) {
            *d = d.min(square(row, &centres[centres.len() - 1]));
        }
    }
    let mut group = vec![0; rows.len()];
    for _ in 0..MAX_STEPS {
        let before = group.clone();
        for (g, row) in group.iter_mut().zip(&rows) {
            let each = centres.iter().map(|c| square(row, c)).enumerate();
            *g = each.fold((0, f64::INFINITY), |best, next| if next.1 < best.1 { next } else { best }).0;
        }
        if group == before {
            break;
        }
        let mut sizes = vec![0.0; count];
        let mut sums = vec![vec![0.0; p]; count];
        for (&g, row) in group.iter().zip(&rows) {
            sizes[g] += 1.0;
            crate::linalg::axpy(1.0, row, &mut sums[g]);
        }
        for ((centre, sum), size) in centres.iter_mut().zip(sums).zip(&sizes).filter(|(_, size)| **size > 0.0) {
            *centre = sum.into_iter().map(|v| v / size).collect();
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn a_tight_cluster_is_held_out_together_and_folds_are_even() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let (n, p) = (300, 6);
        let mut x = Vec::new();
        for i in 0..n {
            for _ in 0..p {
                let v = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
                x.push(if i < 60 { 8.0 + 0.05 * v } else { v });
            }
        }
        let names = (0..p).map(|j| format!("x{j}")).collect();
        let data = Dataset::new(names, "y".into(), x, vec![0.0; n], None).unwrap();
        let fold = grouped_folds(&Distances::new(&data), n);
        assert!((0..60).all(|i| fold[i] == fold[0]), "{:?}", &fold[..60]);
        for k in 0..FOLDS {
            let size = fold.iter().filter(|&&f| f == k).count();
            assert!((50..=70).contains(&size), "fold {k} has {size} rows");
        }
    }
}
