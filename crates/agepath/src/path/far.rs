//! The far rows of a window: everything that keeps its zone while t runs through it.
//!
//! Their part of the gradient is a smooth function of (t, x). Around a reference curve c(t) close to the path,
//!
//! g(t, x) ≈ g(t, c(t)) + H(t, c(t)) (x − c(t)),
//!
//! plus a [`Cubic`] correction, with an error of third order in x − c(t); and both g(t, c(t)) and H(t, c(t)) are
//! functions of t alone: polynomials through a few Chebyshev nodes represent them to many digits. So thousands of rows
//! become a few small arrays.
//!
//! The path has a kink at every event, so a curve *through* its points at the nodes would wiggle, and g(t, c(t)) with
//! it. The reference is therefore a parabola fitted *near* the points, and the sums are moved onto it by their own
//! Taylor expansion.

use super::cubic::Cubic;
use super::moments::Moments;
use crate::linalg::{axpy, dot, symmetric_times};

/// Nodes per window; the polynomials have one degree less.
pub(crate) const NODES: usize = 5;

/// Sums over the far rows at one node.
#[derive(Debug, Clone)]
pub(crate) struct NodeSums {
    /// The reference point c.
    pub point: Vec<f64>,
    /// Σ s F
    pub value: f64,
    /// Σ ψ x
    pub gradient: Vec<f64>,
    /// Σ h x xᵀ, lower triangle; known at some nodes, the first and the last among them.
    pub hessian: Option<Vec<f64>>,
}

/// Polynomials in s = (t − middle)/half ∈ [−1, 1], lowest power first.
#[derive(Debug, Clone)]
pub(crate) struct Far {
    middle: f64,
    half: f64,
    point: Vec<Vec<f64>>,
    value: [f64; NODES],
    gradient: Vec<Vec<f64>>,
    hessian: Vec<Vec<f64>>,
    cubic: Cubic,
}

/// What the far rows contribute at (t, x).
#[derive(Debug, Clone, Default)]
pub(crate) struct FarAt {
    /// x − c(t)
    pub offset: Vec<f64>,
    pub value: f64,
    pub gradient: Vec<f64>,
    /// ∂gradient/∂t
    pub by_time: Vec<f64>,
    pub hessian: Vec<f64>,
}

impl FarAt {
    /// Zeros for `m` columns.
    pub fn reset(&mut self, m: usize) {
        self.value = 0.0;
        self.offset.clear();
        for (vector, len) in [(&mut self.gradient, m), (&mut self.by_time, m), (&mut self.hessian, m * m)] {
            vector.clear();
            vector.resize(len, 0.0);
        }
    }
}

/// Everything but the rows at hand.
#[derive(Debug, Clone)]
pub(crate) enum Background {
    /// Interpolated in time, expanded in x: for any loss and pacing.
    Expansion(Far),
    /// Exact sums: for squared loss and polynomial pacings.
    Moments(Box<Moments>),
}

impl Background {
    /// Evaluates everything at (t, x) into `out`.
    pub fn at(&self, t: f64, x: &[f64], out: &mut FarAt) {
        match self {
            Background::Expansion(far) => far.at(t, x, out),
            Background::Moments(moments) => moments.at(t, x, out),
        }
    }

    /// The Hessian at the point that `at` was last evaluated for.
    pub fn hessian(&self, at: &FarAt) -> Vec<f64> {
        match self {
            Background::Expansion(far) => far.hessian(at),
            Background::Moments(_) => at.hessian.clone(),
        }
    }
}

/// The nodes on [−1, 1], first to last.
pub(crate) fn nodes() -> [f64; NODES] {
    std::array::from_fn(|j| -(std::f64::consts::PI * j as f64 / (NODES - 1) as f64).cos())
}

/// Row j: the monomial coefficients of the j-th Lagrange polynomial of the nodes.
fn lagrange() -> [[f64; NODES]; NODES] {
    let s = nodes();
    std::array::from_fn(|j| {
        let mut p = [0.0; NODES];
        p[0] = 1.0;
        let mut degree = 0;
        for (k, &root) in s.iter().enumerate() {
            if k == j {
                continue;
            }
            let scale = 1.0 / (s[j] - root);
            for power in (0..=degree + 1).rev() {
                let below = if power > 0 { p[power - 1] } else { 0.0 };
                let same = if power <= degree { p[power] } else { 0.0 };
                p[power] = scale * (below - root * same);
            }
            degree += 1;
        }
        p
    })
}

/// Sums on the reference curve.
struct Centred {
    point: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    hessian: Vec<f64>,
}

/// Moves the sums from their points onto the least-squares parabola through them.
fn recentre(sums: &[NodeSums], cubic: &Cubic) -> Vec<Centred> {
    let s = nodes();
    // Orthogonal polynomials on the symmetric nodes: 1, s, s² − mean(s²).
    let mean_square = s.iter().map(|s| s * s).sum::<f64>() / NODES as f64;
    let basis: [[f64; NODES]; 3] = [[1.0; NODES], s, std::array::from_fn(|j| s[j] * s[j] - mean_square)];
    let m = sums[0].point.len();
    let mut reference = vec![vec![0.0; m]; NODES];
    for b in &basis {
        let norm: f64 = b.iter().map(|b| b * b).sum();
        let mut coefficient = vec![0.0; m];
        for (node, b) in sums.iter().zip(b) {
            axpy(b / norm, &node.point, &mut coefficient);
        }
        for (out, b) in reference.iter_mut().zip(b) {
            axpy(*b, &coefficient, out);
        }
    }
    let offsets: Vec<Vec<f64>> = (sums.iter().zip(&reference))
        .map(|(node, to)| to.iter().zip(&node.point).map(|(a, b)| a - b).collect())
        .collect();
    // Known Hessians, moved; the others are interpolated between them on the smooth curve.
    let known: Vec<(f64, Vec<f64>)> = (0..NODES)
        .filter_map(|j| {
            let mut hessian = sums[j].hessian.clone()?;
            cubic.add_hessian(&offsets[j], &mut hessian);
            Some((s[j], hessian))
        })
        .collect();
    let centred = |j: usize| {
        let (node, step) = (&sums[j], &offsets[j]);
        let mut hessian = vec![0.0; m * m];
        for (a, (sa, h)) in known.iter().enumerate() {
            let others = known.iter().enumerate().filter(|&(b, _)| b != a);
            let weight: f64 = others.map(|(_, (sb, _))| (s[j] - sb) / (sa - sb)).product();
            axpy(weight, h, &mut hessian);
        }
        // Taylor from the point: its own Hessian is the moved one less what the move added.
        let mut gradient = vec![0.0; m];
        symmetric_times(&hessian, step, &mut gradient);
        let mut value = node.value + dot(&node.gradient, step) + 0.5 * dot(&gradient, step);
        axpy(1.0, &node.gradient, &mut gradient);
        let mut bend = vec![0.0; m];
        value -= 2.0 * cubic.add_gradient(step, &mut bend);
        axpy(-1.0, &bend, &mut gradient);
        Centred { point: reference[j].clone(), value, gradient, hessian }
    };
    (0..NODES).map(centred).collect()
}

impl Far {
    /// Interpolates the sums at the nodes of [t0, t1], given at points close to the path.
    pub fn new(t0: f64, t1: f64, sums: Vec<NodeSums>, cubic: Cubic) -> Far {
        let sums = recentre(&sums, &cubic);
        let basis = lagrange();
        let blend = |pick: &dyn Fn(&Centred) -> &[f64]| -> Vec<Vec<f64>> {
            (0..NODES)
                .map(|power| {
                    let mut out = vec![0.0; pick(&sums[0]).len()];
                    for (j, node) in sums.iter().enumerate() {
                        axpy(basis[j][power], pick(node), &mut out);
                    }
                    out
                })
                .collect()
        };
        Far {
            middle: 0.5 * (t0 + t1),
            half: 0.5 * (t1 - t0),
            point: blend(&|n| &n.point),
            value: std::array::from_fn(|power| sums.iter().enumerate().map(|(j, n)| basis[j][power] * n.value).sum()),
            gradient: blend(&|n| &n.gradient),
            hessian: blend(&|n| &n.hessian),
            cubic,
        }
    }

    fn powers(&self, t: f64) -> ([f64; NODES], [f64; NODES]) {
        let s = (t - self.middle) / self.half;
        let mut p = [1.0; NODES];
        let mut d = [0.0; NODES];
        for k in 1..NODES {
            p[k] = p[k - 1] * s;
            d[k] = k as f64 * p[k - 1] / self.half;
        }
        (p, d)
    }

    /// Evaluates everything at (t, x) into `out`.
    pub fn at(&self, t: f64, x: &[f64], out: &mut FarAt) {
        let m = x.len();
        let (p, d) = self.powers(t);
        out.reset(m);
        out.offset.extend_from_slice(x);
        let mut velocity = vec![0.0; m];
        for k in 0..NODES {
            axpy(-p[k], &self.point[k], &mut out.offset);
            axpy(p[k], &self.hessian[k], &mut out.hessian);
            axpy(d[k], &self.point[k], &mut velocity);
        }
        symmetric_times(&out.hessian, &velocity, &mut out.by_time);
        out.by_time.iter_mut().for_each(|v| *v = -*v);
        symmetric_times(&out.hessian, &out.offset, &mut out.gradient);
        out.value = 0.5 * dot(&out.gradient, &out.offset);
        for k in 0..NODES {
            out.value += p[k] * (self.value[k] + dot(&self.gradient[k], &out.offset));
            axpy(p[k], &self.gradient[k], &mut out.gradient);
            axpy(d[k], &self.gradient[k], &mut out.by_time);
        }
        out.value += self.cubic.add_gradient(&out.offset, &mut out.gradient);
    }

    /// The Hessian at the point that `at` was last evaluated for.
    pub fn hessian(&self, at: &FarAt) -> Vec<f64> {
        let mut hessian = at.hessian.clone();
        self.cubic.add_hessian(&at.offset, &mut hessian);
        hessian
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One far row of logistic type, followed along a curved reference: value, gradient and slopes must agree with
    /// direct evaluation up to the interpolation error (tiny) and second order in the offset.
    #[test]
    fn a_far_row_is_reproduced_to_second_order() {
        let row = [1.0, 0.4];
        let phi = |t: f64, z: f64| (1.0 + 0.1 * t) * (1.0 + z.exp()).ln();
        let psi = |t: f64, z: f64| (1.0 + 0.1 * t) / (1.0 + (-z).exp());
        let h = |t: f64, z: f64| (1.0 + 0.1 * t) * z.exp() / (1.0 + z.exp()).powi(2);
        let (t0, t1) = (0.3, 0.4);
        let curve = |t: f64| vec![t.sin(), 0.3 * t.cos()];
        let sums: Vec<NodeSums> = nodes()
            .iter()
            .map(|s| {
                let t = 0.5 * (t0 + t1) + 0.5 * (t1 - t0) * s;
                let c = curve(t);
                let z = dot(&row, &c);
                NodeSums {
                    value: phi(t, z),
                    gradient: row.iter().map(|x| psi(t, z) * x).collect(),
                    hessian: Some(vec![h(t, z), 0.0, h(t, z) * row[0] * row[1], h(t, z) * row[1] * row[1]]),
                    point: c,
                }
            })
            .collect();
        let middle = 0.35;
        let z = dot(&row, &curve(middle));
        let third = (h(middle, z + 1e-4) - h(middle, z - 1e-4)) / 2e-4;
        let cubic = Cubic::new(&crate::space::Dense::from_rows(1, 2, &row), &[third]);
        let far = Far::new(t0, t1, sums, cubic);
        let mut out = FarAt::default();
        for (t, e) in [(0.31, 0.0), (0.377, 1e-4), (0.4, -1e-4)] {
            let mut x = curve(t);
            x[0] += e;
            let z = dot(&row, &x);
            far.at(t, &x, &mut out);
            assert!((out.value - phi(t, z)).abs() < 1e-9, "{}", out.value - phi(t, z));
            for j in 0..2 {
                assert!((out.gradient[j] - psi(t, z) * row[j]).abs() < 1e-8);
            }
            let d = 1e-5;
            let slope = (psi(t + d, z) - psi(t - d, z)) / (2.0 * d);
            assert!((out.by_time[0] - slope * row[0]).abs() < 1e-4);
        }
    }
}
