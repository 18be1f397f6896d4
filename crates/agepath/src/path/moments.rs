//! Far rows of a problem whose terms are polynomials in the residual: an exact background.
//!
//! For squared loss, r = xᵀθ − y, and a pacing whose primitive is F = c₁√ℓ + c₂ℓ + c₄ℓ² (+ const) in each zone, the rows
//! of one zone contribute
//!
//! Σ s F = c₁ Σ s σ r + c₂ Σ s r² + c₄ Σ s r⁴,  σ = sgn r,
//!
//! which is a polynomial in θ with the moments of a_i = (x_i, r_i(c)) as coefficients: with e = (θ − c, 1), r_i = a_iᵀe. The
//! coefficients c_k are affine in u = 1/λ. So the far rows need no nodes and no verification: the moments stand for them
//! wherever they keep their zones, at the price of an update when a row comes near or goes far again.
//!
//! Fourth moments are kept as a matrix over pairs: S₄[(a,b),(c,d)] = Σ s a_a a_b a_c a_d.

use super::chart::Chart;
use super::far::FarAt;
use super::patch::Patch;
use crate::linalg::{dot, large_symmetric_times};
use crate::pacing::ZonePolynomial;
use crate::space::Dense;

/// Moments pay when they cost less than this share of the rows they stand for.
const PAYS: f64 = 0.85;
/// Rows whose pairs are formed at once.
const CHUNK: usize = 2048;

/// Sums over the far rows of one zone; empty where the zone's polynomial has no such term.
#[derive(Debug, Clone)]
struct Sums {
    polynomial: ZonePolynomial,
    first: Vec<f64>,
    second: Vec<f64>,
    fourth: Vec<f64>,
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    chart: Chart,
    /// The columns they are about; the others are held at 0.
    pub columns: Vec<usize>,
    /// c
    centre: Vec<f64>,
    /// e = (θ − c, 1) has this many entries, and this many pairs a ≥ b.
    width: usize,
    pairs: usize,
    zones: Vec<Sums>,
    /// The straight line that offsets are measured from.
    start: f64,
    point: Vec<f64>,
    tangent: Vec<f64>,
}

impl Moments {
    /// All rows of `patch` over the columns that matter, centred where it stands; None if its terms are no such polynomials, or
    /// too large ones.
    pub fn of_all_rows(patch: &Patch) -> Option<Moments> {
        let problem = patch.problem;
        if !problem.loss.is_squared_residual() {
            return None;
        }
        let columns = patch.working_columns();
        let m = columns.len();
        let (width, pairs) = (m + 1, (m + 1) * (m + 2) / 2);
        let zones = 0..problem.pacing.zones().len();
        let polynomials: Option<Vec<ZonePolynomial>> = zones.map(|k| problem.pacing.polynomial(k as u8)).collect();
        let polynomials = polynomials?;
        let quartic = polynomials.iter().any(|p| p.square != [0.0; 2]);
        let cost = if quartic { pairs * pairs } else { width * width };
        if cost as f64 > PAYS * (patch.rows() * patch.cols()) as f64 {
            return None;
        }
        let room = |needed: bool, size: usize| vec![0.0; if needed { size } else { 0 }];
        let sums = |p: ZonePolynomial| Sums {
            first: room(p.root != [0.0; 2], width),
            second: room(p.linear != [0.0; 2], width * width),
            fourth: room(p.square != [0.0; 2], pairs * pairs),
            polynomial: p,
        };
        let mut moments = Moments {
            chart: patch.chart,
            centre: columns.iter().map(|&j| patch.at.x[j]).collect(),
            columns,
            width,
            pairs,
            zones: polynomials.into_iter().map(sums).collect(),
            start: patch.at.t,
            point: vec![0.0; m],
            tangent: vec![0.0; m],
        };
        let rows: Vec<usize> = (0..patch.rows()).collect();
        for chunk in rows.chunks(CHUNK) {
            moments.add(patch, chunk, 1.0);
        }
        Some(moments)
    }

    /// The line x + (t − t0)·tangent that offsets are measured from until further notice.
    pub fn measure_from(&mut self, t: f64, x: &[f64], tangent: &[f64]) {
        self.start = t;
        self.point = self.pick(x);
        self.tangent = self.pick(tangent);
    }

    /// The entries of a vector over all columns that these moments are about.
    pub fn pick(&self, x: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|&j| x[j]).collect()
    }

    /// With the rows of `child`, whose background these are and whose columns are theirs.
    pub fn with_rows_of(&self, child: &Patch) -> Moments {
        let mut all = self.clone();
        all.columns = (0..child.cols()).collect();
        all.add(child, &(0..child.rows()).collect::<Vec<_>>(), 1.0);
        all
    }

    /// Adds (sign 1) or takes away (sign −1) rows of `patch`, each in the zone it is in.
    pub fn add(&mut self, patch: &Patch, rows: &[usize], sign: f64) {
        for zone in 0..self.zones.len() {
            let p = self.zones[zone].polynomial;
            if p == ZonePolynomial::default() {
                continue;
            }
            let mine: Vec<usize> = rows
                .iter()
                .copied()
                .filter(|&i| patch.membership.zone[i] as usize == zone && patch.scale[i] != 0.0)
                .collect();
            if mine.is_empty() {
                continue;
            }
            let x = patch.design.select(&mine, &self.columns);
            let residuals = self.residuals(patch, &mine, &x);
            let scale: Vec<f64> = mine.iter().map(|&i| sign * patch.scale[i]).collect();
            self.add_to_zone(zone, &x, residuals, &scale, patch, &mine);
        }
    }

    /// r_i(c) = x_iᵀc − y_i
    fn residuals(&self, patch: &Patch, rows: &[usize], x: &Dense) -> Vec<f64> {
        let mut r = vec![0.0; rows.len()];
        x.predict(&self.centre, &mut r);
        r.iter_mut().zip(rows).for_each(|(r, &i)| *r -= patch.target[i]);
        r
    }

    fn add_to_zone(
        &mut self,
        zone: usize,
        x: &Dense,
        residuals: Vec<f64>,
        scale: &[f64],
        patch: &Patch,
        rows: &[usize],
    ) {
        let (width, pairs) = (self.width, self.pairs);
        let sums = &mut self.zones[zone];
        let augmented = x.with_column(&residuals);
        if !sums.first.is_empty() {
            // The sign is that of the residual where the patch stands.
            let signed: Vec<f64> =
                rows.iter().zip(scale).map(|(&i, s)| s * (patch.at.z[i] - patch.target[i]).signum()).collect();
            augmented.accumulate(&signed, &mut sums.first);
        }
        let all: Vec<usize> = (0..width.max(pairs)).collect();
        if !sums.second.is_empty() {
            augmented.gram(scale, &all[..width], &mut sums.second);
        }
        if !sums.fourth.is_empty() {
            augmented.pair_products().gram(scale, &all[..pairs], &mut sums.fourth);
        }
    }

    /// Evaluates everything at (t, x) into `out`.
    pub fn at(&self, t: f64, x: &[f64], out: &mut FarAt) {
        let m = x.len();
        let (u, speed) = (self.chart.inverse_age(t), self.chart.speed(t));
        out.reset(m);
        let ahead = t - self.start;
        out.offset.extend((0..m).map(|j| x[j] - self.point[j] - ahead * self.tangent[j]));
        let mut e: Vec<f64> = x.iter().zip(&self.centre).map(|(x, c)| x - c).collect();
        e.push(1.0);
        for sums in &self.zones {
            let at = |c: [f64; 2]| (c[0] + c[1] * u, c[1] * speed);
            if !sums.first.is_empty() {
                let (c, by_time) = at(sums.polynomial.root);
                out.value += c * dot(&sums.first, &e);
                for j in 0..m {
                    out.gradient[j] += c * sums.first[j];
                    out.by_time[j] += by_time * sums.first[j];
                }
            }
            if !sums.second.is_empty() {
                let mut y = vec![0.0; self.width];
                crate::linalg::symmetric_times(&sums.second, &e, &mut y);
                add_form(out, &sums.second, &y, &e, 2.0, at(sums.polynomial.linear));
            }
            if !sums.fourth.is_empty() {
                let matrix = self.contract(&sums.fourth, &e);
                let mut y = vec![0.0; self.width];
                crate::linalg::symmetric_times(&matrix, &e, &mut y);
                add_form(out, &matrix, &y, &e, 4.0, at(sums.polynomial.square));
            }
        }
    }

    /// S₄[e, e] as a matrix, lower triangle.
    fn contract(&self, fourth: &[f64], e: &[f64]) -> Vec<f64> {
        let k = self.pairs;
        let mut p = Vec::with_capacity(k);
        for a in 0..self.width {
            p.extend((0..a).map(|b| 2.0 * e[a] * e[b]));
            p.push(e[a] * e[a]);
        }
        let mut y = vec![0.0; k];
        large_symmetric_times(fourth, &p, &mut y);
        let mut out = vec![0.0; self.width * self.width];
        let mut next = y.into_iter();
        for a in 0..self.width {
            for (b, value) in (0..=a).zip(&mut next) {
                out[a * self.width + b] = value;
            }
        }
        out
    }
}

/// Adds c·S[eᵈ] for a form of degree d, given the matrix S[e^{d−2}] and y = S[e^{d−1}].
fn add_form(out: &mut FarAt, matrix: &[f64], y: &[f64], e: &[f64], degree: f64, (c, by_time): (f64, f64)) {
    let m = out.gradient.len();
    out.value += c * dot(y, e);
    for i in 0..m {
        out.gradient[i] += degree * c * y[i];
        out.by_time[i] += degree * by_time * y[i];
        for j in 0..=i {
            out.hessian[i * m + j] += degree * (degree - 1.0) * c * matrix[i * (m + 1) + j];
        }
    }
}
