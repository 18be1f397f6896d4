//! Kernel space: z = Σ_i β_i k(x_i, ·) + b, the penalty being ½ α ‖f‖² in the kernel's own space.
//!
//! | name | k(x, x') |
//! |---|---|
//! | linear | xᵀx' |
//! | rbf | exp(−γ ‖x − x'‖²) |
//! | poly | (γ xᵀx' + c₀)^degree |
//! | sigmoid | tanh(γ xᵀx' + c₀) |
//! | precomputed | the features of a row are its kernel values with the training rows |
//!
//! The matrix is stored whole (a column is then one stretch of memory) and evaluated in tiles, one triangle only.

use super::{Dense, Design};
use crate::error::{Error, Result};
use crate::linalg::{self, dot, wide_loop};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// γ of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Gamma {
    /// A number above 0.
    Value(f64),
    /// `"scale"`: 1/(d · var X) over all entries of X.
    Scale(ScaleWord),
}

/// The word that stands for γ = 1/(d · var X).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleWord {
    /// `"scale"`
    Scale,
}

impl Gamma {
    /// γ = 1/(d · var X).
    pub const SCALE: Gamma = Gamma::Scale(ScaleWord::Scale);
}

impl std::fmt::Display for Gamma {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Gamma::Value(value) => write!(f, "{value}"),
            Gamma::Scale(_) => write!(f, "scale"),
        }
    }
}

impl std::str::FromStr for Gamma {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Gamma, String> {
        match text {
            "scale" => Ok(Gamma::SCALE),
            other => other.parse().map(Gamma::Value).map_err(|_| "expected a number or \"scale\"".into()),
        }
    }
}

/// A kernel by name, as it is written to files: `{"kind": "rbf", "gamma": 0.03}`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kernel {
    /// xᵀx'
    Linear,
    /// exp(−γ ‖x − x'‖²)
    Rbf {
        /// γ
        gamma: Gamma,
    },
    /// (γ xᵀx' + c₀)^degree
    Poly {
        /// γ
        gamma: Gamma,
        /// 1 or more
        degree: u32,
        /// c₀
        coef0: f64,
    },
    /// tanh(γ xᵀx' + c₀); not positive definite for every γ and c₀
    Sigmoid {
        /// γ
        gamma: Gamma,
        /// c₀
        coef0: f64,
    },
    /// The features are kernel values.
    Precomputed,
}

/// Parameters a kernel may take; each kernel reads its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelParameters {
    /// γ. Default: scale; a number above 0.
    pub gamma: Gamma,
    /// Degree of the polynomial kernel. Default 3; 1 or more.
    pub degree: u32,
    /// c₀ of the polynomial and the sigmoid kernel. Default 0.
    pub coef0: f64,
}

impl Default for KernelParameters {
    fn default() -> Self {
        KernelParameters { gamma: Gamma::SCALE, degree: 3, coef0: 0.0 }
    }
}

/// One row of the registry.
#[derive(Debug, Clone, Copy)]
pub struct KernelEntry {
    /// The name users type.
    pub name: &'static str,
    /// One line for `--help` and the documentation.
    pub summary: &'static str,
    /// The kernel for given parameters.
    pub build: fn(&KernelParameters) -> Kernel,
}

/// Every kernel.
pub const KERNELS: &[KernelEntry] = &[
    KernelEntry { name: "rbf", summary: "exp(-gamma |x - x'|^2)", build: |p| Kernel::Rbf { gamma: p.gamma } },
    KernelEntry { name: "linear", summary: "x.x'", build: |_| Kernel::Linear },
    KernelEntry {
        name: "poly",
        summary: "(gamma x.x' + coef0)^degree",
        build: |p| Kernel::Poly { gamma: p.gamma, degree: p.degree, coef0: p.coef0 },
    },
    KernelEntry {
        name: "sigmoid",
        summary: "tanh(gamma x.x' + coef0)",
        build: |p| Kernel::Sigmoid { gamma: p.gamma, coef0: p.coef0 },
    },
    KernelEntry {
        name: "precomputed",
        summary: "the columns are kernel values with the rows of the file",
        build: |_| Kernel::Precomputed,
    },
];

/// Which kernel a user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum KernelChoice {
    /// That of the model, if it has one.
    #[default]
    OfModel,
    /// None: linear space.
    None,
    /// This one.
    Is(Kernel),
}

/// What users type for linear space.
const NO_KERNEL: (&str, &str) = ("none", "linear in the features, with one coefficient for each");

impl KernelChoice {
    /// By registry name, or `none`.
    pub fn by_name(name: &str, parameters: &KernelParameters) -> Result<KernelChoice> {
        if name == NO_KERNEL.0 {
            Ok(KernelChoice::None)
        } else {
            Kernel::by_name(name, parameters).map(KernelChoice::Is)
        }
    }

    /// Every name with one line about it.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        KERNELS.iter().map(|k| (k.name, k.summary)).chain([NO_KERNEL])
    }

    /// The kernel, given the model's; none in linear space.
    pub fn resolve(self, of_model: Option<Kernel>) -> Option<Kernel> {
        match self {
            KernelChoice::OfModel => of_model,
            KernelChoice::None => None,
            KernelChoice::Is(kernel) => Some(kernel),
        }
    }

    /// Refuses parameters outside their range.
    pub fn validate(&self) -> Result<()> {
        if let KernelChoice::Is(kernel) = self { kernel.validate() } else { Ok(()) }
    }
}

impl Kernel {
    /// By registry name.
    pub fn by_name(name: &str, parameters: &KernelParameters) -> Result<Kernel> {
        let entry = KERNELS.iter().find(|e| e.name == name).ok_or_else(|| Error::UnknownName {
            what: "kernel",
            name: name.into(),
            choices: KernelChoice::names().map(|(name, _)| name).collect::<Vec<_>>().join(", "),
        })?;
        let kernel = (entry.build)(parameters);
        kernel.validate()?;
        Ok(kernel)
    }

    /// Refuses parameters outside their range.
    pub fn validate(&self) -> Result<()> {
        let wrong = |name, value: String, expected: &str| Err(Error::Option { name, value, expected: expected.into() });
        match self.gamma() {
            Some(Gamma::Value(g)) if !(g > 0.0 && g.is_finite()) => {
                return wrong("kernel-gamma", g.to_string(), "a finite number above 0, or scale");
            }
            _ => {}
        }
        match *self {
            Kernel::Poly { degree: 0, .. } => wrong("kernel-degree", "0".into(), "1 or more"),
            Kernel::Poly { coef0, .. } | Kernel::Sigmoid { coef0, .. } if !coef0.is_finite() => {
                wrong("kernel-coef0", coef0.to_string(), "a finite number")
            }
            _ => Ok(()),
        }
    }

    fn gamma(&self) -> Option<Gamma> {
        match *self {
            Kernel::Rbf { gamma } | Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => Some(gamma),
            Kernel::Linear | Kernel::Precomputed => None,
        }
    }

    /// The same kernel with γ as a number; rows count by their weights.
    fn resolved(self, x: &Dense, weights: Option<&[f64]>) -> Kernel {
        let number = |gamma: Gamma| match gamma {
            Gamma::Value(_) => gamma,
            Gamma::Scale(_) => Gamma::Value(scale_gamma(x, weights)),
        };
        match self {
            Kernel::Rbf { gamma } => Kernel::Rbf { gamma: number(gamma) },
            Kernel::Poly { gamma, degree, coef0 } => Kernel::Poly { gamma: number(gamma), degree, coef0 },
            Kernel::Sigmoid { gamma, coef0 } => Kernel::Sigmoid { gamma: number(gamma), coef0 },
            other => other,
        }
    }

    /// k from xᵀx', ‖x‖² and ‖x'‖²; γ is a number by now.
    #[inline]
    fn value(&self, product: f64, left: f64, right: f64) -> f64 {
        let number = |gamma: Gamma| if let Gamma::Value(g) = gamma { g } else { 1.0 };
        match *self {
            Kernel::Linear | Kernel::Precomputed => product,
            // Rounding may put the distance of equal rows below 0.
            Kernel::Rbf { gamma } => (-number(gamma) * (left + right - 2.0 * product).max(0.0)).exp(),
            Kernel::Poly { gamma, degree, coef0 } => (number(gamma) * product + coef0).powi(degree as i32),
            Kernel::Sigmoid { gamma, coef0 } => (number(gamma) * product + coef0).tanh(),
        }
    }
}

/// 1/(d · var X); 1 for a constant X.
fn scale_gamma(x: &Dense, weights: Option<&[f64]>) -> f64 {
    let ones;
    let weights = match weights {
        Some(weights) => weights,
        None => {
            ones = vec![1.0; x.rows()];
            &ones
        }
    };
    let columns = || (0..x.cols()).map(|j| x.column(j));
    let total = x.cols() as f64 * weights.iter().sum::<f64>();
    let mean = columns().map(|c| dot(c, weights)).sum::<f64>() / total;
    let square = |c: &[f64]| c.iter().zip(weights).map(|(v, w)| w * (v - mean) * (v - mean)).sum::<f64>();
    let spread = x.cols() as f64 * columns().map(square).sum::<f64>() / total;
    if spread > 0.0 { 1.0 / spread } else { 1.0 }
}

/// Share of the memory that is free which a kernel matrix may take: the tracker needs as much again in the worst case.
const MEMORY_SHARE: f64 = 0.45;
/// Refuses a matrix that would not fit, before it is allocated.
fn check_memory(rows: usize, cols: usize, available: u64) -> Result<()> {
    let bytes = rows as u128 * cols as u128 * 8;
    let limit = (available as f64 * MEMORY_SHARE) as u128;
    if bytes <= limit { Ok(()) } else { Err(Error::KernelTooLarge { rows, cols, bytes, limit }) }
}

/// The training rows in kernel space.
#[derive(Debug)]
pub struct Gram {
    kernel: Kernel,
    /// The training rows; empty for a precomputed kernel.
    x: Dense,
    squares: Vec<f64>,
    n: usize,
    /// n × n, symmetric.
    values: Vec<f64>,
}

/// Rows and columns of a tile: large enough for the matrix product, small enough for the cache.
const TILE: usize = 128;

impl Gram {
    /// The kernel matrix of the rows of `design`, which has no intercept column. Sample weights (none: all 1) matter for
    /// γ = 1/(d · var X) only.
    pub fn new(design: &Design, kernel: Kernel, weights: Option<&[f64]>) -> Result<Gram> {
        kernel.validate()?;
        let n = design.rows();
        check_memory(n, n, crate::memory::available())?;
        let all = |count: usize| (0..count).collect::<Vec<_>>();
        let x = design.select(&all(n), &all(design.cols()));
        if kernel == Kernel::Precomputed {
            return Gram::precomputed(&x);
        }
        let kernel = kernel.resolved(&x, weights);
        let squares = row_squares(&x);
        let mut gram = Gram { kernel, x, squares, n, values: vec![0.0; n * n] };
        gram.fill();
        gram.check_finite()?;
        Ok(gram)
    }

    fn precomputed(x: &Dense) -> Result<Gram> {
        let n = x.rows();
        if x.cols() != n {
            return Err(Error::Shape { what: "columns of a precomputed kernel", expected: n, found: x.cols() });
        }
        let mut values = vec![0.0; n * n];
        for j in 0..n {
            values[j * n..(j + 1) * n].copy_from_slice(x.column(j));
        }
        for i in 0..n {
            for j in 0..i {
                let (a, b) = (values[i * n + j], values[j * n + i]);
                if (a - b).abs() > 1e-8 * (a.abs() + b.abs()) + f64::MIN_POSITIVE {
                    return Err(Error::Option {
                        name: "kernel",
                        value: format!("precomputed, with {a} in row {j}, column {i} but {b} in row {i}, column {j}"),
                        expected: "a symmetric matrix".into(),
                    });
                }
                let middle = 0.5 * (a + b);
                (values[i * n + j], values[j * n + i]) = (middle, middle);
            }
        }
        Ok(Gram { kernel: Kernel::Precomputed, x: Dense::default(), squares: Vec::new(), n, values })
    }

    /// Tiles on and below the diagonal, then their mirror images.
    fn fill(&mut self) {
        let (n, x, squares, kernel) = (self.n, &self.x, &self.squares, self.kernel);
        self.values.par_chunks_mut(TILE * n).enumerate().for_each(|(block, rows)| {
            let first = block * TILE;
            let height = rows.len() / n;
            let mut tile = vec![0.0; TILE * TILE];
            for left in (0..=first).step_by(TILE) {
                let width = TILE.min(n - left);
                linalg::row_products(x.data(), n, first..first + height, left..left + width, &mut tile);
                for i in 0..height {
                    for j in 0..width {
                        let (p, q) = (first + i, left + j);
                        rows[i * n + q] = kernel.value(tile[i * width + j], squares[p], squares[q]);
                    }
                }
            }
        });
        // The matrix is symmetric to the last bit: above the diagonal stands what is below it.
        for i in 0..n {
            for j in 0..i {
                self.values[j * n + i] = self.values[i * n + j];
            }
        }
    }

    fn check_finite(&self) -> Result<()> {
        match self.values.iter().position(|v| !v.is_finite()) {
            None => Ok(()),
            Some(k) => Err(Error::Option {
                name: "kernel",
                value: format!("{} between rows {} and {}", self.values[k], k / self.n, k % self.n),
                expected: "a smaller degree or gamma, so that its values are finite".into(),
            }),
        }
    }

    /// How many training rows there are.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The kernel, γ as a number.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// k(x_i, ·) at every training row.
    #[inline]
    pub fn column(&self, i: usize) -> &[f64] {
        &self.values[i * self.n..(i + 1) * self.n]
    }

    /// k(x_i, x_j)
    #[inline]
    pub fn entry(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.n + j]
    }

    /// out += Σ_k coef_k k(x_{index_k}, ·) over the training rows.
    pub fn accumulate(&self, index: &[usize], coef: &[f64], out: &mut [f64]) {
        let chunk = out.len().div_ceil(rayon::current_num_threads()).max(PARALLEL_ROWS);
        out.par_chunks_mut(chunk).enumerate().for_each(|(k, out)| {
            add_columns(self, k * chunk, index, coef, out);
        });
    }

    /// Kernel values of other rows with the training rows, row after row.
    pub fn cross(&self, other: &Dense) -> Result<Vec<f64>> {
        let (rows, d) = (other.rows(), other.cols());
        check_memory(rows, self.n, crate::memory::available())?;
        let row = |x: &Dense, i: usize| (0..d).map(|j| x.column(j)[i]).collect::<Vec<f64>>();
        if self.kernel == Kernel::Precomputed {
            return Ok((0..rows).flat_map(|i| row(other, i)).collect());
        }
        let train: Vec<Vec<f64>> = (0..self.n).map(|i| row(&self.x, i)).collect();
        let mut out = vec![0.0; rows * self.n];
        out.par_chunks_mut(self.n.max(1)).enumerate().for_each(|(i, out)| {
            let new = row(other, i);
            let square = dot(&new, &new);
            for ((out, old), s) in out.iter_mut().zip(&train).zip(&self.squares) {
                *out = self.kernel.value(dot(&new, old), square, *s);
            }
        });
        Ok(out)
    }
}

/// Shorter stretches than this are not worth a second thread.
const PARALLEL_ROWS: usize = 2048;

fn row_squares(x: &Dense) -> Vec<f64> {
    let mut out = vec![0.0; x.rows()];
    for j in 0..x.cols() {
        for (out, v) in out.iter_mut().zip(x.column(j)) {
            *out += v * v;
        }
    }
    out
}

wide_loop! {
    /// out += Σ coef·column, of the rows from `from` on.
    fn add_columns(gram: &Gram, from: usize, index: &[usize], coef: &[f64], out: &mut [f64]) {
        let rows = out.len();
        let part = |i: usize| &gram.values[i * gram.n + from..][..rows];
        for (i, c) in index.chunks_exact(4).zip(coef.chunks_exact(4)) {
            let (p, q, r, s) = (part(i[0]), part(i[1]), part(i[2]), part(i[3]));
            for (k, out) in out.iter_mut().enumerate() {
                *out += (c[0] * p[k] + c[1] * q[k]) + (c[2] * r[k] + c[3] * s[k]);
            }
        }
        let rest = index.len() / 4 * 4;
        for (&i, &c) in index[rest..].iter().zip(&coef[rest..]) {
            linalg::axpy(c, part(i), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(n: usize, d: usize) -> (Design, Vec<f64>) {
        let x: Vec<f64> = (0..n * d).map(|k| ((k * 37 % 101) as f64 - 50.0) / 40.0).collect();
        (Design::from_row_major(n, d, &x, false).unwrap(), x)
    }

    #[test]
    fn every_kernel_equals_its_formula() {
        let (n, d) = (150, 3);
        let (design, x) = design(n, d);
        let gamma = Gamma::Value(0.4);
        let parameters = KernelParameters { gamma, degree: 2, coef0: 0.5 };
        for entry in KERNELS.iter().filter(|e| e.name != "precomputed") {
            let gram = Gram::new(&design, (entry.build)(&parameters), None).unwrap();
            for (i, j) in [(0, 0), (3, 140), (140, 3), (129, 128)] {
                let (a, b) = (&x[i * d..(i + 1) * d], &x[j * d..(j + 1) * d]);
                let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                let distance: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
                let want = match entry.name {
                    "linear" => product,
                    "rbf" => (-0.4 * distance).exp(),
                    "poly" => (0.4 * product + 0.5) * (0.4 * product + 0.5),
                    _ => (0.4 * product + 0.5).tanh(),
                };
                assert!((gram.entry(i, j) - want).abs() < 1e-13, "{} at {i}, {j}", entry.name);
            }
            let cross = gram.cross(&design.select(&[3, 4], &[0, 1, 2])).unwrap();
            for (j, v) in cross.iter().enumerate() {
                assert!((v - gram.entry(3 + j / n, j % n)).abs() < 1e-13, "{}", entry.name);
            }
        }
    }

    #[test]
    fn products_with_columns_equal_plain_sums() {
        let (design, _) = design(150, 3);
        let gram = Gram::new(&design, Kernel::Rbf { gamma: Gamma::SCALE }, None).unwrap();
        let index = [5usize, 149, 0, 77, 12, 13];
        let coef = [0.3, -2.0, 1.5, 0.7, -0.2, 0.9];
        let mut out = vec![1.0; 150];
        gram.accumulate(&index, &coef, &mut out);
        for (i, out) in out.iter().enumerate() {
            let want: f64 = 1.0 + index.iter().zip(&coef).map(|(&k, c)| c * gram.entry(i, k)).sum::<f64>();
            assert!((out - want).abs() < 1e-13);
        }
    }

    #[test]
    fn a_row_of_weight_two_is_two_rows() {
        let rows = |list: &[[f64; 2]]| Design::from_row_major(list.len(), 2, list.as_flattened(), false).unwrap();
        let scale = Kernel::Rbf { gamma: Gamma::SCALE };
        let (a, b, c) = ([1.0, 2.0], [0.5, -1.0], [7.0, 3.0]);
        let repeated = Gram::new(&rows(&[a, a, b]), scale, None).unwrap();
        let weighted = Gram::new(&rows(&[a, b, c]), scale, Some(&[2.0, 1.0, 0.0])).unwrap();
        assert!((repeated.entry(0, 2) - weighted.entry(0, 1)).abs() < 1e-15);
    }

    #[test]
    fn too_large_a_matrix_is_refused_with_its_size() {
        let error = check_memory(100_000, 100_000, 16 << 30).unwrap_err();
        assert!(error.to_string().contains("74.5 GiB"), "{error}");
        assert!(check_memory(10_000, 10_000, 22 << 30).is_ok());
    }

    #[test]
    fn a_precomputed_kernel_must_be_square_and_symmetric() {
        let square = Design::from_row_major(2, 2, &[1.0, 0.5, 0.5, 1.0], false).unwrap();
        assert_eq!(Gram::new(&square, Kernel::Precomputed, None).unwrap().entry(0, 1), 0.5);
        let skew = Design::from_row_major(2, 2, &[1.0, 0.5, 0.4, 1.0], false).unwrap();
        assert!(Gram::new(&skew, Kernel::Precomputed, None).unwrap_err().to_string().contains("symmetric"));
        let tall = Design::from_row_major(2, 1, &[1.0, 0.5], false).unwrap();
        assert!(matches!(Gram::new(&tall, Kernel::Precomputed, None), Err(Error::Shape { .. })));
    }
}
