//! (I + B)x = b for a B that is known by its products: GMRES (Saad and Schultz 1986), and how large B is.

use super::{axpy, dot};

/// Rounds of the power method on the projection of B; its cost is nothing beside one product.
const POWER_ROUNDS: usize = 12;

/// A solution.
#[derive(Debug)]
pub(crate) struct Solved {
    pub x: Vec<f64>,
    /// The spectral radius of B as far as `b` reveals it. Below 1, I + B has been regular all the way from I.
    pub radius: f64,
    /// The residual, relative to b.
    pub residual: f64,
}

/// Stops at a residual of `tolerance`, relative to b, or after `max_rounds` products.
pub(crate) fn solve_near_identity(
    b: Vec<f64>,
    mut times: impl FnMut(&[f64]) -> Vec<f64>,
    tolerance: f64,
    max_rounds: usize,
) -> Solved {
    let norm = dot(&b, &b).sqrt();
    if norm == 0.0 || !norm.is_finite() {
        return Solved { x: b, radius: 0.0, residual: 0.0 };
    }
    let mut basis = vec![scaled(b, 1.0 / norm)];
    // Columns of the projections of B, and of I + B after the rotations that made it triangular.
    let (mut projected, mut triangle): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    let mut rotations: Vec<(f64, f64)> = Vec::new();
    let mut right = vec![norm];
    while right[rotations.len()].abs() > tolerance * norm && rotations.len() < max_rounds {
        let k = rotations.len();
        let mut next = times(&basis[k]);
        let mut column: Vec<f64> = Vec::with_capacity(k + 2);
        for v in &basis {
            let h = dot(v, &next);
            axpy(-h, v, &mut next);
            column.push(h);
        }
        let below = dot(&next, &next).sqrt();
        column.push(below);
        projected.push(column.clone());
        column[k] += 1.0;
        for (i, (c, s)) in rotations.iter().enumerate() {
            (column[i], column[i + 1]) = (c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]);
        }
        let length = column[k].hypot(below);
        if length == 0.0 {
            break;
        }
        let (c, s) = (column[k] / length, below / length);
        column[k] = length;
        column.truncate(k + 1);
        rotations.push((c, s));
        triangle.push(column);
        right.push(-s * right[k]);
        right[k] *= c;
        basis.push(scaled(next, if below > 0.0 { 1.0 / below } else { 0.0 }));
    }
    let k = rotations.len();
    let mut y = right[..k].to_vec();
    for j in (0..k).rev() {
        y[j] /= triangle[j][j];
        let (yj, column) = (y[j], &triangle[j]);
        y[..j].iter_mut().zip(column).for_each(|(y, t)| *y -= yj * t);
    }
    let mut x = vec![0.0; basis[0].len()];
    y.iter().zip(&basis).for_each(|(y, v)| axpy(*y, v, &mut x));
    Solved { x, radius: radius(&projected), residual: right[k].abs() / norm }
}

fn scaled(mut v: Vec<f64>, by: f64) -> Vec<f64> {
    v.iter_mut().for_each(|v| *v *= by);
    v
}

/// The spectral radius of a Hessenberg matrix, given by columns, by the power method.
fn radius(columns: &[Vec<f64>]) -> f64 {
    let k = columns.len();
    let mut v = vec![0.0; k + 1];
    v[0] = 1.0;
    let mut size = 0.0;
    for _ in 0..POWER_ROUNDS {
        let mut next = vec![0.0; k + 1];
        columns.iter().zip(&v).for_each(|(column, v)| axpy(*v, column, &mut next[..column.len()]));
        next[k] = 0.0;
        size = dot(&next, &next).sqrt();
        if size == 0.0 {
            return 0.0;
        }
        v = scaled(next, 1.0 / size);
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B with eigenvalues 0.4 (many) and three others, not symmetric.
    fn product(v: &[f64]) -> Vec<f64> {
        let n = v.len();
        (0..n)
            .map(|i| match i {
                0 => -0.7 * v[0] + 0.2 * v[n - 1],
                1 => 0.1 * v[1],
                2 => 0.6 * v[2],
                _ => 0.4 * v[i],
            })
            .collect()
    }

    #[test]
    fn as_many_rounds_as_distinct_eigenvalues() {
        let b: Vec<f64> = (0..50).map(|i| 1.0 + (i as f64).sin()).collect();
        let mut products = 0;
        let solved = solve_near_identity(
            b.clone(),
            |v| {
                products += 1;
                product(v)
            },
            1e-12,
            30,
        );
        assert_eq!(products, 4);
        let bx = product(&solved.x);
        for ((x, bx), b) in solved.x.iter().zip(&bx).zip(&b) {
            assert!((x + bx - b).abs() < 1e-11);
        }
        assert!(solved.residual <= 1e-12);
        assert!((solved.radius - 0.7).abs() < 0.1, "{}", solved.radius);
    }

    #[test]
    fn a_solution_that_is_out_of_reach_says_so() {
        // B is minus a cyclic shift: I + B is singular.
        let shift = |v: &[f64]| (0..v.len()).map(|i| -v[(i + 1) % v.len()]).collect::<Vec<_>>();
        let mut b = vec![0.0; 20];
        b[0] = 1.0;
        let solved = solve_near_identity(b, shift, 1e-6, 8);
        assert!(solved.residual > 0.1);
    }
}
