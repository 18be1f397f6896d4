//! Inner products of the training rows: a kernel matrix, or in linear space the rows themselves, K = XXᵀ being a product of
//! two thin factors that nobody needs to multiply out.

use super::{Design, Gram, Kernel};
use crate::linalg::dot;
use std::borrow::Cow;
use std::sync::Arc;

/// Inner products of the training rows.
#[derive(Debug)]
pub(crate) enum Products {
    /// In kernel space.
    Kernel(Gram),
    /// In linear space.
    Rows(Rows),
}

impl Products {
    /// How many training rows there are.
    pub fn len(&self) -> usize {
        match self {
            Products::Kernel(gram) => gram.len(),
            Products::Rows(rows) => rows.design.rows(),
        }
    }

    /// The kernel; none in linear space.
    pub fn kernel(&self) -> Option<Kernel> {
        match self {
            Products::Kernel(gram) => Some(gram.kernel()),
            Products::Rows(_) => None,
        }
    }

    /// The rows of linear space if there are more of them than columns.
    pub fn rows_if_thin(&self) -> Option<&Rows> {
        match self {
            Products::Rows(rows) if rows.design.cols() < rows.design.rows() => Some(rows),
            _ => None,
        }
    }

    /// The products of row `i` with every row.
    pub fn column(&self, i: usize) -> Cow<'_, [f64]> {
        match self {
            Products::Kernel(gram) => Cow::Borrowed(gram.column(i)),
            Products::Rows(rows) => {
                let mut out = vec![0.0; self.len()];
                rows.design.predict(&rows.combination(&[i], &[1.0]), &mut out);
                Cow::Owned(out)
            }
        }
    }

    /// The products of row `i` with the rows `index`.
    pub fn gather(&self, i: usize, index: &[usize], out: &mut [f64]) {
        match self {
            Products::Kernel(gram) => {
                let column = gram.column(i);
                out.iter_mut().zip(index).for_each(|(out, &j)| *out = column[j]);
            }
            Products::Rows(rows) => rows.design.predict_rows(&rows.combination(&[i], &[1.0]), index, out),
        }
    }

    /// The square of row `i`.
    pub fn square(&self, i: usize) -> f64 {
        match self {
            Products::Kernel(gram) => gram.entry(i, i),
            Products::Rows(rows) => rows.squares[i],
        }
    }

    /// out += Σ_k coef_k K_{index_k} over the training rows.
    pub fn accumulate(&self, index: &[usize], coef: &[f64], out: &mut [f64]) {
        match self {
            Products::Kernel(gram) => gram.accumulate(index, coef, out),
            Products::Rows(_) if index.is_empty() => {}
            Products::Rows(rows) => {
                let mut z = vec![0.0; out.len()];
                rows.design.predict(&rows.combination(index, coef), &mut z);
                out.iter_mut().zip(&z).for_each(|(out, z)| *out += z);
            }
        }
    }
}

/// The rows of a design, of which the last column may be the intercept's: it has no part in products.
#[derive(Debug)]
pub(crate) struct Rows {
    design: Arc<Design>,
    /// How many columns are features.
    features: usize,
    squares: Vec<f64>,
}

/// From this share of all rows on, a combination of rows is summed up column by column.
const MANY: usize = 8;

impl Rows {
    pub fn new(design: Arc<Design>, intercept: bool) -> Rows {
        let features = design.cols() - usize::from(intercept);
        let mut rows = Rows { design, features, squares: Vec::new() };
        let square = |i: usize| {
            let x = rows.combination(&[i], &[1.0]);
            dot(&x, &x)
        };
        rows.squares = (0..rows.design.rows()).map(square).collect();
        rows
    }

    /// The design, the intercept's column included.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// How many features there are.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Σ_k coef_k x_{index_k}, with 0 for the intercept.
    pub fn combination(&self, index: &[usize], coef: &[f64]) -> Vec<f64> {
        let mut w = vec![0.0; self.design.cols()];
        if index.len() * MANY < self.design.rows() {
            index.iter().zip(coef).for_each(|(&i, c)| self.design.add_row(i, *c, &mut w));
        } else {
            let mut all = vec![0.0; self.design.rows()];
            index.iter().zip(coef).for_each(|(&i, c)| all[i] = *c);
            self.design.accumulate(&all, &mut w);
        }
        w[self.features..].fill(0.0);
        w
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same rows dense and sparse, with and without an intercept, against the linear kernel's matrix.
    #[test]
    fn rows_multiply_like_the_linear_kernel() {
        let (n, d) = (40, 3);
        let x: Vec<f64> =
            (0..n * d).map(|k| if k % 4 == 1 { 0.0 } else { (k * 37 % 101) as f64 / 40.0 - 1.2 }).collect();
        let gram = Gram::new(&Design::from_row_major(n, d, &x, false).unwrap(), Kernel::Linear, None).unwrap();
        let stored: Vec<(u32, f64)> = (0..n * d).map(|k| ((k % d) as u32, x[k])).collect();
        let (indices, values): (Vec<u32>, Vec<f64>) = stored.into_iter().unzip();
        let starts: Vec<usize> = (0..=n).map(|i| i * d).collect();
        for intercept in [false, true] {
            let dense = Design::from_row_major(n, d, &x, intercept).unwrap();
            let sparse = Design::from_csr(d, starts.clone(), indices.clone(), values.clone(), intercept).unwrap();
            for design in [dense, sparse] {
                let products = Products::Rows(Rows::new(Arc::new(design), intercept));
                assert_eq!((products.len(), products.kernel()), (n, None));
                let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-13, "{a} against {b}");
                products.column(7).iter().zip(gram.column(7)).for_each(|(a, b)| close(*a, *b));
                close(products.square(9), gram.entry(9, 9));
                let mut part = [0.0; 3];
                products.gather(5, &[39, 5, 0], &mut part);
                [39, 5, 0].iter().zip(part).for_each(|(&j, a)| close(a, gram.entry(5, j)));
                for count in [2, 30] {
                    let index: Vec<usize> = (0..count).map(|k| (k * 7) % n).collect();
                    let coef: Vec<f64> = (0..count).map(|k| 0.3 * k as f64 - 1.0).collect();
                    let (mut a, mut b) = (vec![1.0; n], vec![1.0; n]);
                    products.accumulate(&index, &coef, &mut a);
                    gram.accumulate(&index, &coef, &mut b);
                    a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{a} against {b}"));
                }
            }
        }
    }
}
