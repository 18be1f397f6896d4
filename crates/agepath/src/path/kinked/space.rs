//! The rows as the engine sees them: equal rows merged, rows without weight left out, everything divided by the penalty's α,
//! and in no more coordinates than there are rows.
//!
//! ½‖w‖² does not change under a rotation, and w lies in the span of the rows: where there are fewer rows than columns, an
//! orthonormal basis Q of that span serves, x ← Qᵀx and w = Q·(the engine's w).

use super::super::twins::Twins;
use crate::linalg::{axpy, dot};
use crate::loss::Kinks;
use crate::problem::Problem;
use crate::space::Design;

/// What is left of a row after the others' share, relative to it, if it depends on them.
const DEPENDENT: f64 = 1e-13;

/// See the module.
#[derive(Debug)]
pub(super) struct Space<'p> {
    pub problem: &'p Problem,
    pub twins: Twins,
    /// Row of the problem that each of these rows is.
    pub ids: Vec<usize>,
    /// The rows by columns, the intercept's last.
    pub design: Design,
    /// The same, row after row.
    rows: Vec<f64>,
    /// How many columns, the intercept's included.
    pub p: usize,
    pub target: Vec<f64>,
    /// s/α
    pub scale: Vec<f64>,
    pub kinks: Vec<Kinks>,
    /// ‖x_i‖
    pub norms: Vec<f64>,
    /// Root mean square of each column.
    pub column_scales: Vec<f64>,
    /// The columns of Q, one after another; none if the engine's coordinates are the problem's.
    rotation: Option<Vec<f64>>,
}

impl<'p> Space<'p> {
    pub fn new(problem: &'p Problem) -> Self {
        let twins = Twins::of(problem);
        let mut scale: Vec<f64> = problem.scale.iter().map(|s| s / problem.ridge).collect();
        twins.merge(&mut scale);
        let ids: Vec<usize> = (0..problem.rows()).filter(|&i| scale[i] > 0.0).collect();
        let features = problem.features();
        let (design, rotation) = coordinates(problem, &ids, features);
        let p = design.cols();
        let columns: Vec<usize> = (0..p).collect();
        let mut rows = vec![0.0; ids.len() * p];
        rows.chunks_mut(p).enumerate().for_each(|(i, row)| design.copy_row(i, &columns, row));
        Space {
            problem,
            twins,
            target: ids.iter().map(|&i| problem.target[i]).collect(),
            scale: ids.iter().map(|&i| scale[i]).collect(),
            kinks: ids.iter().map(|&i| problem.loss.kinks(problem.target[i])).collect(),
            norms: rows.chunks(p).map(|x| dot(x, x).sqrt()).collect(),
            column_scales: design.column_scales(),
            ids,
            design,
            rows,
            p,
            rotation,
        }
    }

    /// How many rows there are.
    pub fn n(&self) -> usize {
        self.ids.len()
    }

    pub fn row(&self, i: usize) -> &[f64] {
        &self.rows[i * self.p..(i + 1) * self.p]
    }

    /// How many of the columns are penalised: all but the intercept's.
    pub fn penalised(&self) -> usize {
        self.p - usize::from(self.problem.has_intercept())
    }

    /// The problem's θ.
    pub fn outside(&self, theta: &[f64]) -> Vec<f64> {
        let Some(q) = &self.rotation else { return theta.to_vec() };
        let mut out = vec![0.0; self.problem.parameters()];
        let features = self.problem.features();
        for (q, w) in q.chunks(features.max(1)).zip(&theta[..self.penalised()]) {
            axpy(*w, q, &mut out[..features]);
        }
        out[features..].copy_from_slice(&theta[self.penalised()..]);
        out
    }

    /// The engine's θ of a θ in the span of the rows.
    pub fn inside(&self, theta: &[f64]) -> Vec<f64> {
        let Some(q) = &self.rotation else { return theta.to_vec() };
        let features = self.problem.features();
        let mut out: Vec<f64> = q.chunks(features.max(1)).map(|q| dot(q, &theta[..features])).collect();
        out.extend_from_slice(&theta[features..]);
        out
    }
}

/// The rows `ids` in the engine's coordinates, and Q where these are others than the problem's.
fn coordinates(problem: &Problem, ids: &[usize], features: usize) -> (Design, Option<Vec<f64>>) {
    let intercept = problem.has_intercept();
    if features <= ids.len() {
        let columns: Vec<usize> = (0..features + usize::from(intercept)).collect();
        return (Design::Dense(problem.design.select(ids, &columns)), None);
    }
    let columns: Vec<usize> = (0..features).collect();
    let mut q: Vec<f64> = Vec::new();
    let mut x = vec![0.0; features];
    let mut coordinates: Vec<Vec<f64>> = Vec::new();
    for &i in ids {
        problem.design.copy_row(i, &columns, &mut x);
        let size = dot(&x, &x).sqrt();
        let mut own = vec![0.0; q.len() / features];
        // Twice is enough.
        for _ in 0..2 {
            for (own, q) in own.iter_mut().zip(q.chunks(features)) {
                let share = dot(q, &x);
                *own += share;
                axpy(-share, q, &mut x);
            }
        }
        let rest = dot(&x, &x).sqrt();
        if rest > DEPENDENT * size {
            q.extend(x.iter().map(|x| x / rest));
            own.push(rest);
        }
        coordinates.push(own);
    }
    let rank = q.len() / features;
    let at = |i: usize, j: usize| coordinates[i].get(j).copied().unwrap_or(0.0);
    let design = Design::from_fn(ids.len(), rank, intercept, at);
    // Projections of finite rows are finite.
    (design.unwrap_or_else(|_| problem.design.as_ref().clone()), Some(q))
}
