//! Rows that the problem was not made of, ready to be predicted at any parameters: the same call in both spaces.

use super::Problem;
use crate::error::{Error, Result};
use crate::linalg::dot;
use crate::loss::Loss;
use crate::space::Design;
use std::sync::Arc;

/// New rows as a problem sees them.
#[derive(Debug)]
pub struct NewRows {
    values: Values,
    rows: usize,
    loss: Arc<dyn Loss>,
}

#[derive(Debug)]
enum Values {
    Linear(Design),
    /// Kernel values with the training rows, row after row, and whether there is an intercept.
    Kernel(Vec<f64>, bool),
}

impl Problem {
    /// The rows of a design made like the problem's own: the same columns in the same units, and an intercept's column if
    /// the problem has one.
    pub fn new_rows(&self, design: Design) -> Result<NewRows> {
        let rows = design.rows();
        if design.cols() != self.design.cols() {
            return Err(Error::Shape { what: "columns of X", expected: self.design.cols(), found: design.cols() });
        }
        let values = match self.gram() {
            Some(gram) => {
                let all: Vec<usize> = (0..rows).collect();
                let features: Vec<usize> = (0..self.features()).collect();
                Values::Kernel(gram.cross(&design.select(&all, &features))?, self.intercept)
            }
            None => Values::Linear(design),
        };
        Ok(NewRows { values, rows, loss: self.loss.clone() })
    }
}

impl NewRows {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What the model predicts at parameters θ, in the units of the problem's targets.
    pub fn respond(&self, theta: &[f64]) -> Vec<f64> {
        let mut z = self.predict(theta);
        z.iter_mut().for_each(|z| *z = self.loss.response(*z));
        z
    }

    /// The predictors z at parameters θ (coefficients, then the intercept if there is one).
    pub fn predict(&self, theta: &[f64]) -> Vec<f64> {
        let mut z = vec![0.0; self.rows];
        match &self.values {
            Values::Linear(design) => design.predict(theta, &mut z),
            Values::Kernel(cross, intercept) => {
                let n = theta.len() - usize::from(*intercept);
                let shift = if *intercept { theta[n] } else { 0.0 };
                for (z, row) in z.iter_mut().zip(cross.chunks(n.max(1))) {
                    *z = shift + dot(row, &theta[..n]);
                }
            }
        }
        z
    }
}
