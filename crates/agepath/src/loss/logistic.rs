//! Logistic loss: with margin m = yz and p = 1/(1 + e^m),
//! ℓ = C ln(1 + e^{−m}), ℓ' = −C y p, ℓ'' = C p (1 − p). No kinks.

use super::{Loss, LossAt, TargetKind};

/// ℓ = C ln(1 + e^{−yz}).
#[derive(Debug, Clone, Copy)]
pub struct Logistic {
    /// The factor C.
    pub c: f64,
}

impl Loss for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }

    #[inline(always)]
    fn at_piece(&self, _piece: u8, z: f64, y: f64) -> LossAt {
        let m = y * z;
        // e^{−|m|} never overflows; both signs of m are written with it.
        let e = exp_of_minus(m.abs());
        let share = 1.0 / (1.0 + e);
        LossAt {
            value: self.c * (ln_of_one_plus(e) + (-m).max(0.0)),
            slope: -self.c * y * if m > 0.0 { e * share } else { share },
            curvature: self.c * e * share * share,
        }
    }

    fn slope_unit(&self) -> f64 {
        self.c
    }

    #[inline(always)]
    fn at(&self, z: f64, y: f64) -> LossAt {
        self.at_piece(0, z, y)
    }

    fn target(&self) -> TargetKind {
        TargetKind::Sign
    }

    fn flat_beyond(&self) -> f64 {
        // e^{−30} is close to a rounding of 1.
        30.0
    }

    fn probability(&self, z: f64) -> Option<f64> {
        Some(1.0 / (1.0 + (-z).exp()))
    }

    fn c(&self) -> Option<f64> {
        Some(self.c)
    }
}

// The standard library's functions are called one number at a time; these are plain arithmetic, so that the loop over
// samples vectorises. Both are right to a few roundings.

/// e^{−a} for a ≥ 0; beyond 708, where it is next to the smallest number there is, it stays at e^{−708}.
#[inline(always)]
fn exp_of_minus(a: f64) -> f64 {
    // ln 2 in two parts, the first short enough for its multiples to be exact.
    const LN2: (f64, f64) = (6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10);
    // Adding it rounds to an integer, which then stands in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let a = if a > 708.0 { 708.0 } else { a };
    let shifted = a * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (k * LN2.0 - a) + k * LN2.1;
    // Taylor's series; |r| ≤ ½ ln 2 leaves less than a rounding after thirteen terms.
    let mut series = 1.0 / 6_227_020_800.0;
    for factorial in
        [479_001_600.0, 39_916_800.0, 3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0]
    {
        series = series * r + 1.0 / factorial;
    }
    let exponent = 1023u64.wrapping_sub(shifted.to_bits().wrapping_sub(ROUND.to_bits()));
    series * f64::from_bits(exponent << 52)
}

/// ln(1 + e) for 0 ≤ e ≤ 1, as 2 artanh(e/(e + 2)), or as ln 2 + 2 artanh((e − 1)/(e + 3)) where that is closer.
#[inline(always)]
fn ln_of_one_plus(e: f64) -> f64 {
    let (base, s) = if e > 0.5 { (std::f64::consts::LN_2, (e - 1.0) / (e + 3.0)) } else { (0.0, e / (e + 2.0)) };
    let square = s * s;
    // s² ≤ 1/25: twelve terms leave less than a rounding.
    let mut series = 1.0 / 23.0;
    for k in (1..11).rev() {
        series = series * square + 1.0 / f64::from(2 * k + 1);
    }
    base + (2.0 * s + 2.0 * s * (square * series))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elementary_functions_equal_the_standard_library_s() {
        for k in 0..200_000 {
            let a = 7.5e-3 * f64::from(k) * f64::from(k % 17) / 16.0;
            let (ours, theirs) = (exp_of_minus(a), (-a).exp());
            if a > 708.0 {
                assert!(ours < 1e-300 && ours > 0.0);
                continue;
            }
            assert!((ours - theirs).abs() <= 4e-16 * theirs, "exp(-{a}): {ours} against {theirs}");
            let (ours, theirs) = (ln_of_one_plus(theirs), theirs.ln_1p());
            assert!((ours - theirs).abs() <= 6e-16 * theirs, "ln(1 + exp(-{a})): {ours} against {theirs}");
        }
        assert!(exp_of_minus(f64::NAN).is_nan());
        // Every row of a model that says nothing has this loss: ties must stay ties.
        assert_eq!(ln_of_one_plus(exp_of_minus(0.0)), 2f64.ln());
    }

    #[test]
    fn one_and_many_samples_agree_to_the_last_bit() {
        let z: Vec<f64> = (0..1000).map(|k| 0.37 * f64::from(k) - 180.0).collect();
        let y: Vec<f64> = (0..1000).map(|k| if k % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let loss = Logistic { c: 1.7 };
        let mut out = super::super::Losses::default();
        loss.fill(&z, &y, &mut out);
        assert!((0..z.len()).all(|i| out.get(i) == loss.at(z[i], y[i])));
    }
}
