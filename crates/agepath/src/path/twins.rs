//! Rows that are given more than once. Equal rows with equal targets have the same predictor, loss and weight at every age, and
//! only the sum of their β matters: one of them stands for all, with the sum of their scales. Followed one by one, they would
//! pass every kink and threshold at the same age, in an order that rounding decides.

use super::types::Cause;
use crate::problem::Problem;

/// Groups of two or more equal rows; the first row of each stands for it.
#[derive(Debug, Clone)]
pub(crate) struct Twins {
    groups: Vec<Vec<usize>>,
}

impl Twins {
    pub fn of(problem: &Problem) -> Twins {
        let design = &problem.design;
        let counted = (0..problem.rows()).filter(|&i| problem.scale[i] > 0.0).collect();
        let mut groups = apart(vec![counted], |i| problem.target[i]);
        for j in 0..design.cols() {
            if groups.is_empty() {
                break;
            }
            groups = apart(groups, |i| {
                let mut value = [0.0];
                design.copy_row(i, &[j], &mut value);
                value[0]
            });
        }
        Twins { groups }
    }

    /// Adds up what the rows of a group have onto the row that stands for them.
    pub fn merge(&self, values: &mut [f64]) {
        for group in &self.groups {
            let sum = group.iter().map(|&i| values[i]).sum();
            group.iter().for_each(|&i| values[i] = 0.0);
            values[group[0]] = sum;
        }
    }

    /// Divides what the row that stands for a group has among its rows, in proportion to `shares`.
    pub fn divide(&self, values: &mut [f64], shares: &[f64]) {
        for group in &self.groups {
            let (whole, all) = (values[group[0]], group.iter().map(|&i| shares[i]).sum::<f64>());
            // Shares of nothing leave nothing to divide.
            if all > 0.0 {
                group.iter().for_each(|&i| values[i] = whole * (shares[i] / all));
            }
        }
    }

    /// The same change for every row that the changed one stands for.
    pub fn each(&self, cause: Cause) -> Vec<Cause> {
        let Cause::Sample { index, from, to } = cause else { return vec![cause] };
        match self.groups.iter().find(|group| group[0] == index) {
            Some(group) => group.iter().map(|&index| Cause::Sample { index, from, to }).collect(),
            None => vec![cause],
        }
    }
}

/// Splits groups by value; those of one row are left out.
fn apart(groups: Vec<Vec<usize>>, value: impl Fn(usize) -> f64) -> Vec<Vec<usize>> {
    let mut out = Vec::new();
    for group in groups {
        // 0 and −0 are the same.
        let mut keyed: Vec<(u64, usize)> = group.into_iter().map(|i| ((value(i) + 0.0).to_bits(), i)).collect();
        keyed.sort_unstable();
        let same = keyed.chunk_by(|a, b| a.0 == b.0).filter(|chunk| chunk.len() > 1);
        out.extend(same.map(|chunk| chunk.iter().map(|&(_, i)| i).collect::<Vec<_>>()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_split_by_every_value() {
        let columns = [[1.0, 0.0, 1.0, -0.0, 1.0, 2.0], [5.0, 7.0, 5.0, 7.0, 6.0, 9.0]];
        let groups = columns.iter().fold(vec![(0..6).collect()], |groups, column| apart(groups, |i| column[i]));
        let twins = Twins { groups };
        let mut values = [1.0, 10.0, 2.0, 30.0, 4.0, 5.0];
        twins.merge(&mut values);
        assert_eq!(values, [3.0, 40.0, 0.0, 0.0, 4.0, 5.0]);
        twins.divide(&mut values, &[1.0, 1.0, 2.0, 3.0, 1.0, 1.0]);
        assert_eq!(values, [1.0, 10.0, 2.0, 30.0, 4.0, 5.0]);
        let change = |index| Cause::Sample { index, from: "E", to: "D" };
        assert_eq!(twins.each(change(1)), [change(1), change(3)]);
        assert_eq!(twins.each(change(4)), [change(4)]);
    }
}
