//! Which rows stand out: residuals in units of a robust scale, and whether there is evidence of bad rows at all.

use super::scale::{m_scale, normal_quantile};
use serde::{Deserialize, Serialize};

/// With evidence of bad rows, a residual of so many scales is flagged: one good row in eighty is as well.
pub const FLAG: f64 = 2.5;
/// The share of normal errors beyond [`FLAG`].
pub(crate) const BEYOND_FLAG: f64 = 0.012_42;
/// Without evidence, the cut-off is where one clean table in so many has a row.
const CLEAN_TABLES: f64 = 20.0;
/// So many standard deviations more rows beyond [`FLAG`] than normal errors have are evidence.
const EXCESS: f64 = 3.0;

/// What residuals are measured with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Yardstick {
    /// The robust scale σ of the residuals, in the solver's units.
    pub sigma: f64,
    /// A row is flagged beyond this many scales.
    pub cutoff: f64,
    /// Whether some rows are evidently bad.
    pub evidence: bool,
}

impl Yardstick {
    /// Of residuals over rows that count `rows[i]` times for the scale, after a fit of so many parameters.
    pub fn new(residuals: &[f64], rows: &[f64], parameters: usize) -> Yardstick {
        Yardstick::with_sigma(residuals, m_scale(residuals, rows, parameters))
    }

    /// With a scale that is known.
    pub fn with_sigma(residuals: &[f64], sigma: f64) -> Yardstick {
        let n = residuals.len() as f64;
        let rare = normal_quantile(1.0 - 0.5 / (CLEAN_TABLES * n)).max(FLAG);
        let beyond = |limit: f64| residuals.iter().filter(|r| r.abs() > limit * sigma).count() as f64;
        let expected = BEYOND_FLAG * n;
        let evidence = beyond(rare) > 0.0 || beyond(FLAG) > 1.0 + expected + EXCESS * expected.sqrt();
        Yardstick { sigma, cutoff: if evidence { FLAG } else { rare }, evidence }
    }

    /// |r|/(cut-off · σ): above 1 is flagged. Without a scale, any residual stands out.
    pub fn score(&self, residual: f64) -> f64 {
        match self.sigma > 0.0 {
            true => residual.abs() / (self.cutoff * self.sigma),
            false if residual == 0.0 => 0.0,
            false => f64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(n: usize) -> Vec<f64> {
        (0..n).map(|i| normal_quantile((i as f64 + 0.5) / n as f64)).collect()
    }

    #[test]
    fn nothing_stands_out_among_normal_errors_and_one_gross_error_does() {
        for n in [10, 50, 400, 5000] {
            let mut r = normal(n);
            let stick = Yardstick::new(&r, &vec![1.0; n], 2);
            assert!(!stick.evidence && r.iter().all(|&r| stick.score(r) <= 1.0), "{n}: {stick:?}");
            r[n / 2] = 9.0;
            let stick = Yardstick::new(&r, &vec![1.0; n], 2);
            assert!(stick.evidence && stick.score(9.0) > 1.0, "{n}: {stick:?}");
            assert_eq!(stick.cutoff, FLAG);
        }
    }

    #[test]
    fn many_moderate_errors_are_evidence_together() {
        let mut r = normal(400);
        (0..40).for_each(|k| r[10 * k] = if k % 2 == 0 { 3.0 } else { -3.0 });
        assert!(Yardstick::with_sigma(&r, 1.0).evidence);
    }
}
