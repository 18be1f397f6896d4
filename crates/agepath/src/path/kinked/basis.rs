//! The rows that are pinned at a kink: an independent set B, X_Bᵀ = Y R with Q = [Y Z] orthogonal, kept up to date row by row;
//! and the curvature on the directions Z that they leave free.
//!
//! Newton and tangent solve
//!
//! [ H    X_Bᵀ ] [ d ]   [ f ]
//! [ X_B   0   ] [ a ] = [ g ]
//!
//! by d = Yy + Zz with Rᵀy = g and (ZᵀHZ)z = Zᵀ(f − HYy), Ra = Yᵀ(f − Hd). A Cholesky factor of ZᵀHZ exists exactly where the
//! point is a strict local minimiser on its face.

use crate::linalg::{Cholesky, Definiteness, axpy, congruence, dot};

/// Rows are taken up anew after so many exchanges, before rounding adds up.
const FRESH_AFTER: usize = 400;

/// Rounds of the power method: any negative curvature will do.
const POWERS: usize = 200;

/// See the module.
#[derive(Debug, Default, Clone)]
pub(super) struct Basis {
    p: usize,
    rows: Vec<usize>,
    /// Columns of Q, one after another: first those of Y.
    q: Vec<f64>,
    /// Columns of R.
    r: Vec<Vec<f64>>,
    exchanges: usize,
}

impl Basis {
    pub fn new(p: usize) -> Self {
        let mut basis = Basis { p, ..Basis::default() };
        basis.clear();
        basis
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.r.clear();
        self.q = vec![0.0; self.p * self.p];
        (0..self.p).for_each(|j| self.q[j * self.p + j] = 1.0);
        self.exchanges = 0;
    }

    /// B, in the order of the multipliers.
    pub fn rows(&self) -> &[usize] {
        &self.rows
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    fn column(&self, j: usize) -> &[f64] {
        &self.q[j * self.p..(j + 1) * self.p]
    }

    /// How much of `x` lies in the directions that are free: ‖Zᵀx‖.
    pub fn free_part(&self, x: &[f64]) -> f64 {
        (self.len()..self.p).map(|j| dot(self.column(j), x).powi(2)).sum::<f64>().sqrt()
    }

    /// Takes up a row that is independent of the others.
    pub fn insert(&mut self, i: usize, x: &[f64]) {
        let (k, p) = (self.len(), self.p);
        let mut w: Vec<f64> = (0..p).map(|j| dot(self.column(j), x)).collect();
        // A reflection of Z turns the free part of x into its first direction.
        let size = dot(&w[k..], &w[k..]).sqrt();
        let head = if w[k] > 0.0 { -size } else { size };
        w[k] -= head;
        let square = dot(&w[k..], &w[k..]);
        if square > 0.0 {
            let mut along = vec![0.0; p];
            (k..p).for_each(|j| axpy(w[j], &self.q[j * p..(j + 1) * p], &mut along));
            (k..p).for_each(|j| axpy(-2.0 * w[j] / square, &along, &mut self.q[j * p..(j + 1) * p]));
        }
        w.truncate(k);
        w.push(head);
        self.r.push(w);
        self.rows.push(i);
        self.exchanges += 1;
    }

    /// Lets the row at `place` go.
    pub fn remove(&mut self, place: usize) {
        let p = self.p;
        self.rows.remove(place);
        self.r.remove(place);
        for j in place..self.rows.len() {
            let (a, b) = (self.r[j][j], self.r[j][j + 1]);
            let size = a.hypot(b);
            let (c, s) = if size > 0.0 { (a / size, b / size) } else { (1.0, 0.0) };
            for column in &mut self.r[j..] {
                let (a, b) = (column[j], column[j + 1]);
                (column[j], column[j + 1]) = (c * a + s * b, c * b - s * a);
            }
            self.r[j].truncate(j + 1);
            let (left, right) = self.q.split_at_mut((j + 1) * p);
            for (a, b) in left[j * p..].iter_mut().zip(&mut right[..p]) {
                (*a, *b) = (c * *a + s * *b, c * *b - s * *a);
            }
        }
        self.exchanges += 1;
        if self.rows.is_empty() {
            self.clear();
        }
    }

    /// Whether so many exchanges were made that the rows should be taken up anew.
    pub fn is_worn(&self) -> bool {
        self.exchanges > FRESH_AFTER + self.len()
    }

    /// y with Rᵀy = g.
    fn forward(&self, g: &[f64]) -> Vec<f64> {
        let mut y: Vec<f64> = Vec::with_capacity(g.len());
        for (k, column) in self.r.iter().enumerate() {
            y.push((g[k] - dot(&column[..k], &y)) / column[k]);
        }
        y
    }

    /// a with Ra = y.
    fn backward(&self, mut y: Vec<f64>) -> Vec<f64> {
        for (k, column) in self.r.iter().enumerate().rev() {
            y[k] /= column[k];
            let factor = -y[k];
            axpy(factor, &column[..k], &mut y[..k]);
        }
        y
    }

    fn combine(&self, first: usize, coefficients: &[f64], out: &mut [f64]) {
        coefficients.iter().enumerate().for_each(|(j, c)| axpy(*c, self.column(first + j), out));
    }
}

/// H and the Cholesky factor of ZᵀHZ.
#[derive(Debug, Default, Clone)]
pub(super) struct Hessian {
    p: usize,
    /// How many coordinates are penalised: H = diag(1, …, 1, 0) + S.
    penalised: usize,
    /// S, all of it; empty if it is 0.
    s: Vec<f64>,
    factor: Cholesky,
}

/// What the curvature on the free directions is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Positive definite.
    Bowl,
    /// Nothing holds the intercept, and nothing pulls at it.
    Flat,
    /// Anything else: no strict minimiser.
    Unstable,
}

impl Hessian {
    pub fn new(p: usize, penalised: usize) -> Self {
        Hessian { p, penalised, ..Hessian::default() }
    }

    /// Takes S; its lower triangle counts.
    pub fn set(&mut self, lower: Option<&[f64]>) {
        self.s.clear();
        let Some(lower) = lower else { return };
        self.s.extend_from_slice(lower);
        let p = self.p;
        (0..p).for_each(|i| (0..i).for_each(|j| self.s[j * p + i] = self.s[i * p + j]));
    }

    /// H x
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let mut out = x.to_vec();
        out[self.penalised..].fill(0.0);
        if !self.s.is_empty() {
            out.iter_mut().zip(self.s.chunks(self.p)).for_each(|(out, row)| *out += dot(row, x));
        }
        out
    }

    /// Factors ZᵀHZ.
    pub fn factor(&mut self, basis: &Basis) -> Shape {
        let (p, k) = (self.p, basis.len());
        let m = p - k;
        let z = &basis.q[k * p..];
        let mut reduced = vec![0.0; m * m];
        if !self.s.is_empty() {
            congruence(&self.s, z, &mut reduced);
        }
        let mut sizes = vec![0.0; m];
        let border = self.penalised..p;
        for i in 0..m {
            let own = &z[i * p..(i + 1) * p][border.clone()];
            for j in 0..=i {
                let other = &z[j * p..(j + 1) * p][border.clone()];
                reduced[i * m + j] += f64::from(i == j) - dot(own, other);
            }
            let bare = 1.0 - dot(own, own);
            sizes[i] = bare + (reduced[i * m + i] - bare).abs();
        }
        match self.factor.factor(&reduced, &sizes) {
            Definiteness::Positive => Shape::Bowl,
            Definiteness::Semidefinite(1) if k == 0 && self.s.is_empty() => Shape::Flat,
            _ => Shape::Unstable,
        }
    }

    /// A free direction of negative curvature, by the power method on σ − ZᵀHZ; none if there is none to be found.
    pub fn most_negative(&self, basis: &Basis, draw: fn(u64, u64) -> f64) -> Option<Vec<f64>> {
        let (p, k) = (self.p, basis.len());
        // No eigenvalue is larger than the largest sum of a row.
        let row = |row: &[f64]| row.iter().map(|s| s.abs()).sum::<f64>();
        let bound = 1.0 + self.s.chunks(p).map(row).fold(0.0, f64::max);
        let mut d = vec![0.0; p];
        let start: Vec<f64> = (k..p).map(|j| draw(j as u64, 3) - 0.5).collect();
        basis.combine(k, &start, &mut d);
        for _ in 0..POWERS {
            let next: Vec<f64> = d.iter().zip(self.times(&d)).map(|(d, hd)| bound * d - hd).collect();
            let z: Vec<f64> = (k..p).map(|j| dot(basis.column(j), &next)).collect();
            let size = dot(&z, &z).sqrt().max(f64::MIN_POSITIVE);
            d.fill(0.0);
            basis.combine(k, &z.iter().map(|z| z / size).collect::<Vec<_>>(), &mut d);
        }
        (dot(&d, &self.times(&d)) < 0.0).then_some(d)
    }

    /// See the module. The factor must be that of the basis.
    pub fn solve(&self, basis: &Basis, f: &[f64], g: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (p, k) = (self.p, basis.len());
        let y = basis.forward(g);
        let mut d = vec![0.0; p];
        basis.combine(0, &y, &mut d);
        let rest: Vec<f64> = if y.iter().all(|y| *y == 0.0) {
            f.to_vec()
        } else {
            f.iter().zip(self.times(&d)).map(|(f, hd)| f - hd).collect()
        };
        let mut z: Vec<f64> = (k..p).map(|j| dot(basis.column(j), &rest)).collect();
        self.factor.solve(&mut z);
        basis.combine(k, &z, &mut d);
        let rest: Vec<f64> = f.iter().zip(self.times(&d)).map(|(f, hd)| f - hd).collect();
        let a = basis.backward((0..k).map(|j| dot(basis.column(j), &rest)).collect());
        (d, a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    /// Rows come and go; solutions of the system are checked against the system itself, and stability against the curvature
    /// along random free directions.
    #[test]
    fn solutions_solve_the_system_whatever_rows_come_and_go() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut draw = move || rng.random::<f64>() - 0.5;
        let (n, p) = (40, 9);
        let x: Vec<Vec<f64>> =
            (0..n).map(|_| (0..p).map(|j| if j == p - 1 { 1.0 } else { draw() }).collect()).collect();
        let mut basis = Basis::new(p);
        let mut hessian = Hessian::new(p, p - 1);
        let mut bowls = 0;
        for round in 0..300 {
            let k = basis.len();
            if k > 1 && (k == p || round % 5 < 2) {
                basis.remove(round * 7 % k);
            } else {
                let i = (0..n).find(|i| !basis.rows().contains(&((i + round) % n))).map(|i| (i + round) % n).unwrap();
                assert!(basis.free_part(&x[i]) > 1e-6);
                basis.insert(i, &x[i]);
            }
            let s: Vec<f64> = {
                let mut s = vec![0.0; p * p];
                for row in x.iter().take(round % 20) {
                    (0..p).for_each(|a| (0..=a).for_each(|b| s[a * p + b] -= 0.3 * row[a] * row[b]));
                }
                s
            };
            hessian.set((round % 20 > 0).then_some(&s));
            let shape = hessian.factor(&basis);
            for _ in 0..20 {
                let mut d = vec![0.0; p];
                let c: Vec<f64> = (basis.len()..p).map(|_| draw()).collect();
                basis.combine(basis.len(), &c, &mut d);
                basis.rows().iter().for_each(|&i| assert!(dot(&x[i], &d).abs() < 1e-12));
                let curvature = dot(&d, &hessian.times(&d));
                assert!(shape != Shape::Bowl || c.is_empty() || curvature > 0.0, "{curvature} in a bowl");
            }
            if shape == Shape::Bowl {
                bowls += 1;
                let f: Vec<f64> = (0..p).map(|_| draw()).collect();
                let g: Vec<f64> = (0..basis.len()).map(|_| draw()).collect();
                let (d, a) = hessian.solve(&basis, &f, &g);
                let mut rest = hessian.times(&d);
                basis.rows().iter().zip(&a).for_each(|(&i, a)| axpy(*a, &x[i], &mut rest));
                // Where the bowl is flat the solution is long, and rounding is relative to it.
                let size = d.iter().chain(&a).fold(1.0, |top: f64, v| top.max(v.abs()));
                rest.iter().zip(&f).for_each(|(r, f)| assert!((r - f).abs() < 1e-12 * size, "{r} against {f}"));
                basis.rows().iter().zip(&g).for_each(|(&i, g)| assert!((dot(&x[i], &d) - g).abs() < 1e-12 * size));
            }
        }
        assert!(bowls > 100, "{bowls}");
    }
}
