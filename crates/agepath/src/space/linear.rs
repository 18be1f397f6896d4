//! Linear space: z = Xθ, rows dense or sparse.
//!
//! The intercept is a last column of ones (stored when dense, implied when sparse), so it needs no formula of its own.
//! Everything above sees the rows through four operations: predict z, accumulate Xᵀψ, accumulate XᵀHX on some columns,
//! and copy out a few rows.

use crate::error::{Error, Result};
use crate::linalg;
use rayon::prelude::*;
use std::ops::Range;

/// Dense rows, stored by columns: every kernel then runs over samples, whatever the number of features.
#[derive(Debug, Clone, Default)]
pub struct Dense {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

/// Rows handled together, so that all their columns stay in the cache.
const GRAM_BLOCK: usize = 256;
/// A Gram matrix is summed in at most so many parts ...
const GRAM_PARTS: usize = 8;
/// ... of at least so many rows, where it takes at least so many products.
const GRAM_PART_ROWS: usize = 1024;
const GRAM_SHARED: usize = 1 << 23;

/// Sparse rows in compressed form; with `ones`, a last column of ones follows the stored ones.
#[derive(Debug, Clone)]
pub struct Csr {
    rows: usize,
    /// Stored columns, the implied one not counted.
    cols: usize,
    ones: bool,
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

/// The rows of a problem.
#[derive(Debug, Clone)]
pub enum Design {
    /// Dense rows.
    Dense(Dense),
    /// Sparse rows.
    Sparse(Csr),
}

fn check_shape(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

fn check_finite(rows: usize, cols: usize, at: impl Fn(usize, usize) -> f64) -> Result<()> {
    for row in 0..rows {
        for column in 0..cols {
            let value = at(row, column);
            if !value.is_finite() {
                return Err(Error::NotFinite { row, column, value });
            }
        }
    }
    Ok(())
}

impl Dense {
    #[cfg(test)]
    pub(crate) fn from_rows(rows: usize, cols: usize, data: &[f64]) -> Self {
        let data = (0..rows * cols).map(|k| data[(k % rows) * cols + k / rows]).collect();
        Dense { rows, cols, data }
    }

    /// All values, column after column.
    pub(crate) fn data(&self) -> &[f64] {
        &self.data
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, the intercept's included.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Column `j`.
    #[inline]
    pub fn column(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// z = Xθ.
    pub fn predict(&self, theta: &[f64], z: &mut [f64]) {
        linalg::combine(theta, |j| self.column(j), z);
    }

    /// g += Xᵀψ.
    pub fn accumulate(&self, psi: &[f64], g: &mut [f64]) {
        linalg::accumulate(psi, |j| self.column(j), g);
    }

    /// The same rows with one more column.
    pub(crate) fn with_column(&self, column: &[f64]) -> Dense {
        let mut data = self.data.clone();
        data.extend_from_slice(column);
        Dense { rows: self.rows, cols: self.cols + 1, data }
    }

    /// The products of every pair of columns a ≥ b: (0,0), (1,0), (1,1), (2,0) …
    pub(crate) fn pair_products(&self) -> Dense {
        let cols = self.cols * (self.cols + 1) / 2;
        let mut data = vec![0.0; self.rows * cols];
        let mut out = data.chunks_mut(self.rows.max(1));
        for a in 0..self.cols {
            for (b, out) in (0..=a).zip(&mut out) {
                linalg::multiply(self.column(a), self.column(b), out);
            }
        }
        Dense { rows: self.rows, cols, data }
    }

    /// Lower triangle of `out` (row-major, |columns|²) += X_cᵀ diag(h) X_c over the chosen columns. Many rows are shared out among the
    /// threads, in parts that do not depend on how many there are.
    pub fn gram(&self, h: &[f64], columns: &[usize], out: &mut [f64]) {
        let (n, m) = (h.len(), columns.len());
        let part = n.div_ceil(GRAM_PARTS).max(GRAM_PART_ROWS);
        if n <= part || n * m * m < GRAM_SHARED {
            return self.gram_of(0..n, h, columns, out);
        }
        let starts: Vec<usize> = (0..n).step_by(part).collect();
        let sum = |from: usize| {
            let mut sum = vec![0.0; m * m];
            self.gram_of(from..n.min(from + part), h, columns, &mut sum);
            sum
        };
        let sums: Vec<Vec<f64>> = starts.into_par_iter().map(sum).collect();
        sums.iter().for_each(|sum| linalg::add_scaled(1.0, sum, out));
    }

    fn gram_of(&self, rows: Range<usize>, h: &[f64], columns: &[usize], out: &mut [f64]) {
        let m = columns.len();
        if m < linalg::SMALL {
            let part = |p: usize| &self.column(columns[p])[rows.clone()];
            return linalg::add_small_gram(&h[rows.clone()], m, part, out);
        }
        for from in rows.clone().step_by(GRAM_BLOCK) {
            let block = from..rows.end.min(from + GRAM_BLOCK);
            let part = |p: usize| &self.column(columns[p])[block.clone()];
            linalg::add_weighted_gram(&h[block.clone()], m, part, out);
        }
    }
}

impl Csr {
    #[inline]
    fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// x_iᵀθ
    fn product(&self, i: usize, theta: &[f64]) -> f64 {
        let shift = if self.ones { theta[self.cols] } else { 0.0 };
        let (indices, values) = self.row(i);
        shift + indices.iter().zip(values).map(|(&j, v)| theta[j as usize] * v).sum::<f64>()
    }

    fn gram(&self, h: &[f64], columns: &[usize], out: &mut [f64]) {
        let m = columns.len();
        let mut place = vec![usize::MAX; self.all_cols()];
        columns.iter().enumerate().for_each(|(k, &j)| place[j] = k);
        let mut entries: Vec<(usize, f64)> = Vec::new();
        for (i, &h) in h.iter().enumerate().filter(|(_, h)| **h != 0.0) {
            let (indices, values) = self.row(i);
            entries.clear();
            entries.extend(indices.iter().zip(values).map(|(&j, &v)| (place[j as usize], v)));
            entries.extend(self.ones.then(|| (place[self.cols], 1.0)));
            entries.retain(|e| e.0 != usize::MAX);
            for (a, &(p, v)) in entries.iter().enumerate() {
                for &(q, w) in &entries[..=a] {
                    out[p.max(q) * m + p.min(q)] += h * v * w;
                }
            }
        }
    }

    fn all_cols(&self) -> usize {
        self.cols + usize::from(self.ones)
    }
}

impl Design {
    /// From `x` in row-major order (`x[i * cols + j]`).
    pub fn from_row_major(rows: usize, cols: usize, x: &[f64], intercept: bool) -> Result<Self> {
        check_shape("values in X", rows * cols, x.len())?;
        Self::from_fn(rows, cols, intercept, |i, j| x[i * cols + j])
    }

    /// From `x` in column-major order (`x[j * rows + i]`).
    pub fn from_column_major(rows: usize, cols: usize, x: &[f64], intercept: bool) -> Result<Self> {
        check_shape("values in X", rows * cols, x.len())?;
        Self::from_fn(rows, cols, intercept, |i, j| x[j * rows + i])
    }

    /// From a function of row and column.
    pub(crate) fn from_fn(rows: usize, cols: usize, intercept: bool, at: impl Fn(usize, usize) -> f64) -> Result<Self> {
        check_finite(rows, cols, &at)?;
        let mut data = Vec::with_capacity(rows * (cols + usize::from(intercept)));
        for j in 0..cols {
            data.extend((0..rows).map(|i| at(i, j)));
        }
        data.resize(data.len() + if intercept { rows } else { 0 }, 1.0);
        Ok(Design::Dense(Dense { rows, cols: cols + usize::from(intercept), data }))
    }

    /// From compressed sparse rows: row `i` has `values[starts[i]..starts[i + 1]]` in columns `indices[..]`.
    pub fn from_csr(
        cols: usize,
        starts: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<f64>,
        intercept: bool,
    ) -> Result<Self> {
        let rows = starts.len().saturating_sub(1);
        check_shape("entries named by the last row start", starts.last().copied().unwrap_or(0), values.len())?;
        check_shape("column indices", values.len(), indices.len())?;
        for row in 0..rows {
            check_shape("row start (they must not decrease)", starts[row].max(starts[row + 1]), starts[row + 1])?;
            for k in starts[row]..starts[row + 1] {
                let column = indices[k] as usize;
                if column >= cols {
                    return Err(Error::Shape { what: "columns of sparse X", expected: cols, found: column + 1 });
                }
                if !values[k].is_finite() {
                    return Err(Error::NotFinite { row, column, value: values[k] });
                }
            }
        }
        Ok(Design::Sparse(Csr { rows, cols, ones: intercept, starts, indices, values }))
    }

    /// From compressed sparse columns: column `j` has `values[starts[j]..starts[j + 1]]` in rows `indices[..]`.
    pub fn from_csc(rows: usize, starts: &[usize], indices: &[u32], values: &[f64], intercept: bool) -> Result<Self> {
        let cols = starts.len().saturating_sub(1);
        check_shape("entries named by the last column start", starts.last().copied().unwrap_or(0), values.len())?;
        check_shape("row indices", values.len(), indices.len())?;
        let mut counts = vec![0usize; rows + 1];
        for &i in indices {
            if i as usize >= rows {
                return Err(Error::Shape { what: "rows of sparse X", expected: rows, found: i as usize + 1 });
            }
            counts[i as usize + 1] += 1;
        }
        for i in 0..rows {
            counts[i + 1] += counts[i];
        }
        let mut next = counts.clone();
        let (mut columns, mut out) = (vec![0u32; values.len()], vec![0.0; values.len()]);
        for j in 0..cols {
            check_shape("column start (they must not decrease)", starts[j].max(starts[j + 1]), starts[j + 1])?;
            for k in starts[j]..starts[j + 1] {
                let slot = &mut next[indices[k] as usize];
                columns[*slot] = j as u32;
                out[*slot] = values[k];
                *slot += 1;
            }
        }
        Self::from_csr(cols, counts, columns, out, intercept)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Design::Dense(x) => x.rows,
            Design::Sparse(x) => x.rows,
        }
    }

    /// Number of columns, the intercept's included.
    pub fn cols(&self) -> usize {
        match self {
            Design::Dense(x) => x.cols,
            Design::Sparse(x) => x.all_cols(),
        }
    }

    /// z = Xθ.
    pub fn predict(&self, theta: &[f64], z: &mut [f64]) {
        match self {
            Design::Dense(x) => x.predict(theta, z),
            Design::Sparse(x) => z.iter_mut().enumerate().for_each(|(i, z)| *z = x.product(i, theta)),
        }
    }

    /// z = Xθ for some of the rows.
    pub(crate) fn predict_rows(&self, theta: &[f64], rows: &[usize], z: &mut [f64]) {
        match self {
            Design::Dense(x) => {
                z.fill(0.0);
                for (j, t) in theta.iter().enumerate() {
                    let column = x.column(j);
                    z.iter_mut().zip(rows).for_each(|(z, &i)| *z += t * column[i]);
                }
            }
            Design::Sparse(x) => z.iter_mut().zip(rows).for_each(|(z, &i)| *z = x.product(i, theta)),
        }
    }

    /// g += Xᵀψ.
    pub fn accumulate(&self, psi: &[f64], g: &mut [f64]) {
        match self {
            Design::Dense(x) => x.accumulate(psi, g),
            Design::Sparse(_) => {
                for (i, &psi) in psi.iter().enumerate().filter(|(_, psi)| **psi != 0.0) {
                    self.add_row(i, psi, g);
                }
            }
        }
    }

    /// g += factor · x_i.
    pub fn add_row(&self, i: usize, factor: f64, g: &mut [f64]) {
        match self {
            Design::Dense(x) => {
                for (j, g) in g.iter_mut().enumerate() {
                    *g += factor * x.column(j)[i];
                }
            }
            Design::Sparse(x) => {
                let (indices, values) = x.row(i);
                for (&j, v) in indices.iter().zip(values) {
                    g[j as usize] += factor * v;
                }
                if x.ones {
                    g[x.cols] += factor;
                }
            }
        }
    }

    /// Copies the chosen columns of row `i`.
    pub fn copy_row(&self, i: usize, columns: &[usize], out: &mut [f64]) {
        match self {
            Design::Dense(x) => {
                for (out, &j) in out.iter_mut().zip(columns) {
                    *out = x.column(j)[i];
                }
            }
            Design::Sparse(x) => {
                let (indices, values) = x.row(i);
                for (out, &j) in out.iter_mut().zip(columns) {
                    *out = match indices.iter().position(|&k| k as usize == j) {
                        Some(k) => values[k],
                        None if x.ones && j == x.cols => 1.0,
                        None => 0.0,
                    };
                }
            }
        }
    }

    /// Lower triangle of `out` (row-major, |columns|²) += X_cᵀ diag(h) X_c over the chosen columns.
    pub fn gram(&self, h: &[f64], columns: &[usize], out: &mut [f64]) {
        match self {
            Design::Dense(x) => x.gram(h, columns, out),
            Design::Sparse(x) => x.gram(h, columns, out),
        }
    }

    /// The chosen rows and columns as a dense matrix.
    pub fn select(&self, rows: &[usize], columns: &[usize]) -> Dense {
        let (n, m) = (rows.len(), columns.len());
        let mut data = vec![0.0; n * m];
        match self {
            Design::Dense(x) => {
                for (k, &j) in columns.iter().enumerate() {
                    let column = x.column(j);
                    for (out, &i) in data[k * n..(k + 1) * n].iter_mut().zip(rows) {
                        *out = column[i];
                    }
                }
            }
            Design::Sparse(_) => {
                let mut row = vec![0.0; m];
                for (r, &i) in rows.iter().enumerate() {
                    self.copy_row(i, columns, &mut row);
                    for (k, &v) in row.iter().enumerate() {
                        data[k * n + r] = v;
                    }
                }
            }
        }
        Dense { rows: n, cols: m, data }
    }

    /// Root mean square of each column (1 for a column of zeros): the unit in which its coefficient is measured.
    pub fn column_scales(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.cols()];
        match self {
            Design::Dense(x) => {
                for (j, s) in squares.iter_mut().enumerate() {
                    *s = linalg::dot(x.column(j), x.column(j));
                }
            }
            Design::Sparse(x) => {
                for (&j, v) in x.indices.iter().zip(&x.values) {
                    squares[j as usize] += v * v;
                }
                if x.ones {
                    squares[x.cols] = x.rows as f64;
                }
            }
        }
        let n = self.rows().max(1) as f64;
        squares.into_iter().map(|s| if s > 0.0 { (s / n).sqrt() } else { 1.0 }).collect()
    }
}
