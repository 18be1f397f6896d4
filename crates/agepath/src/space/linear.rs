//! Linear space: z = Xθ, rows dense or sparse.
//!
//! The intercept is a last column of ones (stored when dense, implied when sparse), so it needs no formula of its own.
//! Everything above sees the rows through four operations: predict z, accumulate Xᵀψ, accumulate XᵀHX on some columns,
//! and copy out a few rows.

use crate::error::{Error, Result};
use crate::linalg;

/// Dense rows, row-major.
#[derive(Debug, Clone)]
pub struct Dense {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

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
    pub(crate) fn from_parts(rows: usize, cols: usize, data: Vec<f64>) -> Self {
        debug_assert_eq!(data.len(), rows * cols);
        Dense { rows, cols, data }
    }

    /// Number of columns, the intercept's included.
    pub fn columns(&self) -> usize {
        self.cols
    }

    /// Row `i`, the intercept's 1 included.
    #[inline]
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }
}

impl Csr {
    #[inline]
    fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.indices[range.clone()], &self.values[range])
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

    fn from_fn(rows: usize, cols: usize, intercept: bool, at: impl Fn(usize, usize) -> f64) -> Result<Self> {
        check_finite(rows, cols, &at)?;
        let mut data = Vec::with_capacity(rows * (cols + usize::from(intercept)));
        for i in 0..rows {
            data.extend((0..cols).map(|j| at(i, j)));
            data.extend(intercept.then_some(1.0));
        }
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
            Design::Dense(x) => {
                for (i, z) in z.iter_mut().enumerate() {
                    *z = linalg::dot(x.row(i), theta);
                }
            }
            Design::Sparse(x) => {
                let shift = if x.ones { theta[x.cols] } else { 0.0 };
                for (i, z) in z.iter_mut().enumerate() {
                    let (indices, values) = x.row(i);
                    *z = shift + indices.iter().zip(values).map(|(&j, v)| theta[j as usize] * v).sum::<f64>();
                }
            }
        }
    }

    /// g += Xᵀψ.
    pub fn accumulate(&self, psi: &[f64], g: &mut [f64]) {
        for (i, &psi) in psi.iter().enumerate() {
            if psi != 0.0 {
                self.add_row(i, psi, g);
            }
        }
    }

    /// g += factor · x_i.
    pub fn add_row(&self, i: usize, factor: f64, g: &mut [f64]) {
        match self {
            Design::Dense(x) => linalg::axpy(factor, x.row(i), g),
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
                let row = x.row(i);
                for (out, &j) in out.iter_mut().zip(columns) {
                    *out = row[j];
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
        let m = columns.len();
        let whole = m == self.cols() && columns.iter().enumerate().all(|(k, &j)| k == j);
        let mut block = linalg::GramBlock::new(m);
        for (i, &h) in h.iter().enumerate() {
            if h == 0.0 {
                continue;
            }
            match self {
                Design::Dense(x) if whole => block.push(x.row(i), h, out),
                _ => block.push_with(h, out, |row| self.copy_row(i, columns, row)),
            }
        }
        block.flush(out);
    }

    /// The chosen rows and columns as a dense matrix.
    pub fn select(&self, rows: &[usize], columns: &[usize]) -> Dense {
        let m = columns.len();
        let mut data = vec![0.0; rows.len() * m];
        for (k, &i) in rows.iter().enumerate() {
            self.copy_row(i, columns, &mut data[k * m..(k + 1) * m]);
        }
        Dense { rows: rows.len(), cols: m, data }
    }

    /// Root mean square of each column (1 for a column of zeros): the unit in which its coefficient is measured.
    pub fn column_scales(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.cols()];
        match self {
            Design::Dense(x) => {
                for i in 0..x.rows {
                    for (s, v) in squares.iter_mut().zip(x.row(i)) {
                        *s += v * v;
                    }
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
