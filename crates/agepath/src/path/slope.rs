//! How fast the solution moves with the age: dθ/dλ = −J⁻¹ ∂F/∂λ on the smooth piece that the age lies on.

use super::chart::Chart;
use super::curve::Curve;
use super::dual;
use super::kinked;
use super::patch::Patch;
use super::types::{Knot, Path};
use crate::error::{Breakdown, Error, Result};
use crate::linalg::Definiteness;
use crate::problem::Problem;
use crate::space::Products;

impl Path {
    /// dθ/dλ at `age`, in the form of a knot: `coef` holds dw/dλ and `intercept` db/dλ. At an event's own age this is
    /// the slope on one of its sides; a coefficient that is 0 there has slope 0.
    pub fn slope(&self, problem: &Problem, age: f64) -> Result<Knot> {
        let point = self.at(problem, age)?;
        if let Some(products) = &problem.products {
            let here = Knot { age, coef: point.coef, intercept: point.intercept };
            let mut coef = match products {
                Products::Rows(rows) if problem.loss.is_kinked() => kinked::slope(problem, rows, self.ages.1, &here)?,
                _ => dual::slope(problem, products, self.ages.1, &here)?,
            };
            let intercept = if problem.has_intercept() { coef.pop().unwrap_or(0.0) } else { 0.0 };
            return Ok(Knot { age, coef, intercept });
        }
        let chart = Chart::new(self.ages.1);
        let t = chart.time(age);
        let mut theta = point.coef;
        theta.extend(problem.has_intercept().then_some(point.intercept));
        let mut patch = Patch::whole(problem, chart);
        patch.set_coords(&theta);
        patch.evaluate_by_value(t, &theta);
        if patch.factorize() == Definiteness::Indefinite {
            return Err(Error::NoSolution { age, reason: Breakdown::Stalled });
        }
        // λ = 1/u, so dλ/dt = −λ² du/dt.
        let clock = -age * age * chart.speed(t);
        let mut coef: Vec<f64> = patch.tangent().into_iter().map(|by_time| by_time / clock).collect();
        let intercept = if problem.has_intercept() { coef.pop().unwrap_or(0.0) } else { 0.0 };
        Ok(Knot { age, coef, intercept })
    }
}
