//! The four factors put together: minimise over θ
//!
//! G(θ) = Σ_j [ l1_j |θ_j| + ½ l2_j θ_j² ] + Σ_i s_i F(ℓ(z_i, y_i)),  z = Xθ,
//!
//! where F is the primitive of the pacing's weight at the age in question.

mod dual;
mod kinked;
mod rows;

pub use rows::NewRows;

use crate::error::{Error, Result};
use crate::linalg::Cholesky;
use crate::loss::{self, Loss, LossParameters, Losses, TargetKind};
use crate::model::{Model, SampleScale, Strength};
use crate::pacing::{Pacing, PacingSpec};
use crate::penalty::Penalty;
use crate::space::{Design, Gram, Kernel, Products};
use std::sync::{Arc, OnceLock};

/// What to fit, without the data.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Registry name of the loss.
    pub loss: &'static str,
    /// Numbers of the loss; each loss reads its own.
    pub loss_parameters: LossParameters,
    /// The pacing.
    pub pacing: PacingSpec,
    /// The penalty on the coefficients.
    pub penalty: Penalty,
    /// How sample weights become scales.
    pub scale: SampleScale,
    /// The kernel; none in linear space.
    pub kernel: Option<Kernel>,
}

impl Spec {
    /// The preset `model` with given strengths and pacing, in linear space unless the model has a kernel.
    pub fn preset(model: &Model, strength: &Strength, pacing: PacingSpec) -> Spec {
        Spec {
            loss: model.loss,
            loss_parameters: strength.loss.clone(),
            pacing,
            penalty: (model.penalty)(strength),
            scale: model.scale,
            kernel: model.kernel,
        }
    }
}

impl Spec {
    /// The members that the registries know by these names.
    pub fn factors(&self) -> Result<Factors> {
        Ok(Factors {
            loss: loss::by_name(self.loss, &self.loss_parameters)?,
            pacing: self.pacing.build()?,
            penalty: self.penalty,
            scale: self.scale,
            kernel: self.kernel,
        })
    }
}

/// What to fit, without the data, as objects: a loss or a pacing of your own needs no registry.
#[derive(Debug)]
pub struct Factors {
    /// The loss.
    pub loss: Box<dyn Loss>,
    /// The pacing.
    pub pacing: Box<dyn Pacing>,
    /// The penalty on the coefficients.
    pub penalty: Penalty,
    /// How sample weights become scales.
    pub scale: SampleScale,
    /// The kernel; none in linear space.
    pub kernel: Option<Kernel>,
}

/// Data and model: everything but the age.
#[derive(Debug)]
pub struct Problem {
    pub(crate) design: Arc<Design>,
    pub(crate) target: Vec<f64>,
    /// s_i
    pub(crate) scale: Vec<f64>,
    /// How many rows each row stands for: see [`row_counts`].
    pub(crate) counts: Vec<f64>,
    pub(crate) loss: Arc<dyn Loss>,
    pub(crate) pacing: Box<dyn Pacing>,
    /// Per column; 0 for the intercept.
    pub(crate) l1: Vec<f64>,
    pub(crate) l2: Vec<f64>,
    pub(crate) column_scales: Vec<f64>,
    /// ‖x_i‖ in units where every column has size 1, once somebody has asked.
    row_norms: OnceLock<Vec<f64>>,
    /// The size of predictors: the root mean square of real targets, 1 for classes.
    pub(crate) predictor_scale: f64,
    intercept: bool,
    /// The training rows in kernel space, or those of a loss with pieces: the path is then followed in dual coefficients.
    pub(crate) products: Option<Products>,
    /// α of the penalty ½ α ‖f‖² there.
    pub(crate) ridge: f64,
}

/// Where every ψ = s v ℓ'(z) vanishes, because a residual or a weight does, only the rounding of z is left in it: terms of the
/// gradient count for at least this share of s (v ℓ'' + |∂v/∂ℓ| ℓ'²)·(|z| + |y|), so that rounding is about 1e-12 of them.
pub(crate) const ROUNDING_FLOOR: f64 = 1e-4;
/// A loss within this of a threshold, relatively, is on it.
const TIED: f64 = 1e-9;

impl Problem {
    /// Puts data and model together. `intercept` says whether the design's last column is one; `weights` are sample
    /// weights (none: all 1). With a kernel, the design is that of linear space all the same.
    pub fn new(
        design: Design,
        target: Vec<f64>,
        weights: Option<&[f64]>,
        intercept: bool,
        spec: &Spec,
    ) -> Result<Problem> {
        Self::with_factors(design, target, weights, intercept, spec.factors()?)
    }

    /// Like [`Problem::new`], with factors that no registry needs to know.
    pub fn with_factors(
        design: Design,
        target: Vec<f64>,
        weights: Option<&[f64]>,
        intercept: bool,
        Factors { loss, pacing, penalty, scale: sample_scale, kernel }: Factors,
    ) -> Result<Problem> {
        let (n, m) = (design.rows(), design.cols());
        if target.len() != n {
            return Err(Error::Shape { what: "target values", expected: n, found: target.len() });
        }
        if n == 0 {
            return Err(Error::Shape { what: "rows", expected: 1, found: 0 });
        }
        penalty.validate()?;
        check_target(&target, &*loss, m - usize::from(intercept))?;
        let scale = sample_scales(n, weights, sample_scale)?;
        let penalised = m - usize::from(intercept);
        let per_column = |strength: f64| {
            let mut v = vec![strength; penalised];
            v.resize(m, 0.0);
            v
        };
        let design = Arc::new(design);
        let products = dual::products(&design, intercept, kernel, weights, &*loss)?;
        let ridge = if products.is_some() { dual::ridge(&penalty, &*loss)? } else { 0.0 };
        let column_scales = design.column_scales();
        let (mut l1, l2) = (per_column(penalty.l1()), per_column(penalty.l2()));
        if products.is_none() && penalty.l1() == 0.0 && penalty.l2() == 0.0 {
            freeze_dependent_columns(&design, &scale, &mut l1);
        }
        let predictor_scale = match loss.target() {
            TargetKind::Sign => 1.0,
            TargetKind::Real if !loss.is_in_units_of_the_target() => 1.0,
            TargetKind::Real => Some((target.iter().map(|y| y * y).sum::<f64>() / n as f64).sqrt())
                .filter(|&rms| rms > 0.0)
                .unwrap_or(1.0),
        };
        Ok(Problem {
            design,
            target,
            scale,
            counts: row_counts(n, weights),
            loss: Arc::from(loss),
            pacing,
            l1,
            l2,
            column_scales,
            row_norms: OnceLock::new(),
            predictor_scale,
            intercept,
            products,
            ridge,
        })
    }

    /// ‖x_i‖ in units where every column has size 1.
    pub(crate) fn row_norms(&self) -> &[f64] {
        self.row_norms.get_or_init(|| {
            let columns: Vec<usize> = (0..self.design.cols()).collect();
            let mut row = vec![0.0; columns.len()];
            (0..self.design.rows())
                .map(|i| {
                    self.design.copy_row(i, &columns, &mut row);
                    row.iter().zip(&self.column_scales).map(|(x, s)| (x / s).powi(2)).sum::<f64>().sqrt()
                })
                .collect()
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.design.rows()
    }

    /// Number of features, the intercept not counted.
    pub fn features(&self) -> usize {
        self.design.cols() - usize::from(self.intercept)
    }

    /// Number of coefficients in θ, the intercept not counted: one per feature, or one per row in kernel space.
    pub fn coefficients(&self) -> usize {
        if self.gram().is_some() { self.rows() } else { self.features() }
    }

    /// Length of θ: coefficients, then the intercept if there is one.
    pub fn parameters(&self) -> usize {
        self.coefficients() + usize::from(self.intercept)
    }

    /// The kernel with its parameters as numbers; none in linear space.
    pub fn kernel(&self) -> Option<Kernel> {
        self.products.as_ref().and_then(Products::kernel)
    }

    /// The kernel matrix; none in linear space.
    pub(crate) fn gram(&self) -> Option<&Gram> {
        match &self.products {
            Some(Products::Kernel(gram)) => Some(gram),
            _ => None,
        }
    }

    /// Whether the last parameter is an intercept.
    pub fn has_intercept(&self) -> bool {
        self.intercept
    }

    /// The rows.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The targets.
    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// The loss.
    pub fn loss(&self) -> &dyn Loss {
        &*self.loss
    }

    /// The pacing.
    pub fn pacing(&self) -> &dyn Pacing {
        &*self.pacing
    }

    /// The losses at parameters θ (coefficients, then the intercept if there is one).
    pub fn losses(&self, theta: &[f64]) -> Vec<f64> {
        let mut out = Losses::default();
        self.loss.fill(&self.predict(theta), &self.target, &mut out);
        out.value
    }

    /// The predictors of the training rows at parameters θ.
    pub fn predict(&self, theta: &[f64]) -> Vec<f64> {
        match self.gram() {
            Some(gram) => self.predict_dual(gram, theta),
            None => {
                let mut z = vec![0.0; self.rows()];
                self.design.predict(theta, &mut z);
                z
            }
        }
    }

    /// R(θ).
    pub fn penalty(&self, theta: &[f64]) -> f64 {
        if let Some(gram) = self.gram() {
            return self.penalty_dual(gram, theta);
        }
        let each = theta.iter().zip(&self.l1).zip(&self.l2);
        each.map(|((w, l1), l2)| l1 * w.abs() + 0.5 * l2 * w * w).sum()
    }

    /// G(θ) at inverse age `u`.
    pub fn objective(&self, theta: &[f64], u: f64) -> f64 {
        let losses = self.losses(theta);
        let sum: f64 = losses.iter().zip(&self.scale).map(|(&l, s)| s * self.pacing.primitive(l, u)).sum();
        self.penalty(theta) + sum
    }

    /// How far θ is from optimal at inverse age `u`: the largest violation of 0 ∈ ∂G over the coordinates, each relative
    /// to the sum of magnitudes that had to cancel in it. Weights are taken from the losses themselves;
    /// where the weight drops at a threshold and a loss lies on it, either weight is optimal and the better one counts.
    /// In kernel space: the largest distance of a sample's (z, β) from the graph of −ψ, and |Σβ|, relative to C.
    /// In linear space, a sample at a kink has whichever ψ between the two one-sided ones leaves the least violation.
    pub fn kkt(&self, theta: &[f64], u: f64) -> f64 {
        match &self.products {
            Some(Products::Kernel(gram)) => return self.kkt_dual(gram, theta, u),
            Some(Products::Rows(rows)) => return self.kkt_kinked(rows, theta, u),
            None => {}
        }
        let mut z = vec![0.0; self.rows()];
        self.design.predict(theta, &mut z);
        let cuts = self.pacing.cuts(u);
        let slopes = |side: f64| -> (Vec<f64>, f64) {
            let (mut total, mut floor) = (0.0, 0.0);
            let psi = (z.iter().zip(&self.target).zip(&self.scale))
                .map(|((&z, &y), s)| {
                    let l = self.loss.at(z, y);
                    let v = self.pacing.at(cuts.zone(l.value * (1.0 + side)), l.value, u);
                    total += s * v.value * l.slope.abs();
                    let bending = v.value * l.curvature + v.by_loss.abs() * l.slope * l.slope;
                    floor += s * bending * (z.abs() + y.abs());
                    s * v.value * l.slope
                })
                .collect();
            (psi, f64::max(total, ROUNDING_FLOOR * floor))
        };
        let violation = |(psi, total): (Vec<f64>, f64)| self.violation(theta, (&psi, total));
        if self.pacing.is_continuous() {
            return violation(slopes(0.0));
        }
        violation(slopes(TIED)).min(violation(slopes(-TIED)))
    }

    /// The violation for given ψ of size `total`.
    fn violation(&self, theta: &[f64], (psi, total): (&[f64], f64)) -> f64 {
        let mut gradient = vec![0.0; theta.len()];
        self.design.accumulate(psi, &mut gradient);
        let mut worst = 0.0f64;
        for j in 0..theta.len() {
            let smooth = gradient[j] + self.l2[j] * theta[j];
            let violation = if theta[j] == 0.0 {
                (smooth.abs() - self.l1[j]).max(0.0)
            } else {
                (smooth + self.l1[j] * theta[j].signum()).abs()
            };
            if violation > 0.0 {
                let terms = total * self.column_scales[j] + self.l1[j] + self.l2[j] * theta[j].abs();
                worst = worst.max(violation / terms);
            }
        }
        worst
    }
}

/// An L1 bound that nothing exceeds.
const FROZEN: f64 = 1e300;

/// Without a penalty, a column that the ones before it add up to has no coefficient of its own: it is held at 0.
fn freeze_dependent_columns(design: &Design, scale: &[f64], l1: &mut [f64]) {
    let m = design.cols();
    let columns: Vec<usize> = (0..m).collect();
    let mut gram = vec![0.0; m * m];
    design.gram(scale, &columns, &mut gram);
    let diagonal: Vec<f64> = (0..m).map(|j| gram[j * m + j]).collect();
    let mut factor = Cholesky::default();
    factor.factor(&gram, &diagonal);
    (0..m).filter(|&j| factor.is_held(j)).for_each(|j| l1[j] = FROZEN);
}

fn check_target(target: &[f64], loss: &dyn Loss, column: usize) -> Result<()> {
    for (row, &value) in target.iter().enumerate() {
        if !value.is_finite() {
            return Err(Error::NotFinite { row, column, value });
        }
        let sign = (loss.target() == TargetKind::Sign && value.abs() != 1.0).then_some("-1 or +1 for this loss");
        if let Some(expected) = sign.or_else(|| loss.needs(value)) {
            let value = format!("{value} in row {row}");
            return Err(Error::Option { name: "target", value, expected: expected.into() });
        }
    }
    Ok(())
}

/// Refuses sample weights that are negative, not finite, or all 0.
pub(crate) fn check_weights(weights: &[f64], n: usize) -> Result<()> {
    if weights.len() != n {
        return Err(Error::Shape { what: "sample weights", expected: n, found: weights.len() });
    }
    let wrong =
        |value: String, expected: &str| Error::Option { name: "sample weight", value, expected: expected.into() };
    if let Some(row) = weights.iter().position(|w| !(*w >= 0.0 && w.is_finite())) {
        return Err(wrong(format!("{} in row {row}", weights[row]), "a finite number, 0 or more"));
    }
    if weights.iter().all(|&w| w == 0.0) {
        return Err(wrong("all zero".into(), "at least one weight above zero"));
    }
    Ok(())
}

/// Sample weights as numbers of rows: an integer weight counts like as many rows. Weights below 1 cannot be meant so; with one
/// among them, all are taken relative to their mean over the rows that count.
fn row_counts(n: usize, weights: Option<&[f64]>) -> Vec<f64> {
    let Some(weights) = weights else { return vec![1.0; n] };
    let counted = weights.iter().filter(|w| **w > 0.0);
    let unit = match counted.clone().all(|w| *w >= 1.0) {
        true => 1.0,
        false => counted.clone().sum::<f64>() / counted.count() as f64,
    };
    weights.iter().map(|w| w / unit).collect()
}

fn sample_scales(n: usize, weights: Option<&[f64]>, scale: SampleScale) -> Result<Vec<f64>> {
    let ones;
    let weights = match weights {
        Some(w) => w,
        None => {
            ones = vec![1.0; n];
            &ones
        }
    };
    check_weights(weights, n)?;
    let factor = match scale {
        SampleScale::HalfMean => 0.5 / weights.iter().sum::<f64>(),
        SampleScale::Mean => 1.0 / weights.iter().sum::<f64>(),
        SampleScale::Sum => 1.0,
    };
    Ok(weights.iter().map(|w| w * factor).collect())
}
