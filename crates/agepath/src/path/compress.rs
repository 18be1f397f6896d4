//! From many rows to few: the near rows of a window, and the far part that stands for the rest.

use super::cubic::Cubic;
use super::curve::Curve;
use super::far::{Background, Far, NODES, NodeSums, nodes};
use super::patch::{Coord, Membership, Patch};
use crate::linalg::{Definiteness, axpy};
use crate::loss::Losses;
use crate::space::Design;

/// A node's point may be off the path by this much, as a relative residual: the sums are expanded around it anyway.
const CLOSE: f64 = 1e-4;
/// Newton iterations per node.
const MAX_SETTLE: usize = 5;
/// A trust radius is never smaller.
const MIN_RADIUS: f64 = 1e-7;
/// Hessians vary slowly and only multiply small offsets: every second node has one, the others interpolate.
const HESSIAN_EVERY: usize = 2;

/// A window's small problem.
pub(super) struct Compressed<'p> {
    pub child: Patch<'p>,
    /// The parent's rows and columns that the child has.
    pub near: Vec<usize>,
    pub cols: Vec<usize>,
}

/// The problem at one node.
struct Node {
    t: f64,
    point: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    loss: Losses,
    zone: Vec<u8>,
    psi: Vec<f64>,
    /// Lower triangle over the window's columns with the curvatures it was made of, at every second node.
    hessian: Option<(Vec<f64>, Vec<f64>)>,
}

/// Builds the small problem of [t, t1], t being where `patch` stands with membership `start`. None when the nodes cannot
/// be reached or too many rows are near. The membership of `patch` is `start` again afterwards.
pub(super) fn compress<'p>(patch: &mut Patch<'p>, t1: f64, trust: f64, start: &Membership) -> Option<Compressed<'p>> {
    let t0 = patch.at.t;
    let x0 = patch.at.x.clone();
    let cols = patch.working_columns();
    let (at_nodes, psi2) = visit_nodes(patch, t1, &cols)?;
    patch.membership.clone_from(start);
    if at_nodes.iter().any(|n| outside(patch, n, &cols)) {
        return None;
    }
    let radius = trust * movement(patch, &at_nodes) + MIN_RADIUS;
    let near = near_rows(patch, &at_nodes, radius);
    if near.len() > patch.rows() / 2 {
        return None;
    }
    let cubic = cubic_term(patch, &near, &cols, psi2);
    let sums = far_sums(patch, &near, &cols, &at_nodes);
    let mut child = Patch::part(patch, &near, &cols, Background::Expansion(Far::new(t0, t1, sums, cubic)), radius);
    let x: Vec<f64> = cols.iter().map(|&j| x0[j]).collect();
    child.evaluate(t0, &x);
    (child.factorize() != Definiteness::Indefinite).then_some(Compressed { child, near, cols })
}

/// Whether a column that was left out reaches its bound at a node.
fn outside(patch: &Patch, node: &Node, cols: &[usize]) -> bool {
    if cols.len() == patch.cols() {
        return false;
    }
    let mut inside = vec![false; patch.cols()];
    cols.iter().for_each(|&j| inside[j] = true);
    (0..patch.cols()).any(|j| !inside[j] && node.gradient[j].abs() >= patch.l1[j])
}

/// Goes to every node, each from an extrapolation of those before it. Also answers ∂²ψ/∂z² at the middle one.
fn visit_nodes(patch: &mut Patch, t1: f64, cols: &[usize]) -> Option<(Vec<Node>, Vec<f64>)> {
    let t0 = patch.at.t;
    let tangent = patch.tangent();
    let mut visited: Vec<Node> = Vec::with_capacity(NODES);
    let mut psi2 = Vec::new();
    for (k, s) in nodes().into_iter().enumerate() {
        let t = if k + 1 == NODES { t1 } else { 0.5 * (t0 + t1) + 0.5 * (t1 - t0) * s };
        if k > 0 {
            let guess = extrapolate(&visited, &tangent, t);
            approach(patch, t, guess)?;
        }
        let mut node = snapshot(patch, t);
        if k % HESSIAN_EVERY == 0 {
            let (a, magnitude) = patch.hessian(cols);
            if k > 0 {
                patch.release_coords();
                if patch.factor_from(&a, &magnitude, cols) == Definiteness::Indefinite {
                    return None;
                }
            }
            node.hessian = Some((a, patch.at.h.clone()));
        }
        if k == NODES / 2 {
            psi2 = patch.third_derivatives();
        }
        visited.push(node);
    }
    Some((visited, psi2))
}

fn snapshot(patch: &Patch, t: f64) -> Node {
    Node {
        t,
        point: patch.at.x.clone(),
        value: patch.value(),
        gradient: patch.at.gradient.clone(),
        loss: patch.at.loss.clone(),
        zone: patch.membership.zone.clone(),
        psi: patch.at.psi.clone(),
        hessian: None,
    }
}

/// Newton's divided differences through (t0, with its tangent) and the nodes visited so far.
fn extrapolate(visited: &[Node], tangent: &[f64], t: f64) -> Vec<f64> {
    let mut times = vec![visited[0].t];
    let mut diagonal = vec![visited[0].point.clone()];
    let mut coefficients = vec![visited[0].point.clone()];
    for (k, node) in std::iter::once(&visited[0]).chain(&visited[1..]).enumerate() {
        let mut next = vec![node.point.clone()];
        for (order, old) in diagonal.iter().enumerate() {
            let span = node.t - times[times.len() - 1 - order];
            let difference = if span == 0.0 {
                tangent.to_vec()
            } else {
                next[order].iter().zip(old).map(|(a, b)| (a - b) / span).collect()
            };
            next.push(difference);
        }
        times.push(node.t);
        coefficients.push(next[k + 1].clone());
        diagonal = next;
    }
    let mut guess = vec![0.0; tangent.len()];
    for (c, &at) in coefficients.iter().zip(&times).rev() {
        guess.iter_mut().for_each(|g| *g *= t - at);
        axpy(1.0, c, &mut guess);
    }
    guess
}

/// Newton from a guess until the point is close to the path, letting zones and coefficients change as they like. This
/// is a reference for the window, not a claim: hard pacing may not settle at all.
fn approach(patch: &mut Patch, t: f64, mut x: Vec<f64>) -> Option<()> {
    for (x, coord) in x.iter_mut().zip(&patch.membership.coord) {
        if *coord == Coord::Zero {
            *x = 0.0;
        }
    }
    patch.bind_coords(&mut x);
    let mut first = f64::INFINITY;
    for iteration in 0..MAX_SETTLE {
        patch.evaluate_by_value(t, &x);
        let residual = patch.violation_of_kkt();
        if !residual.is_finite() || residual > 100.0 * first {
            return None;
        }
        first = first.min(residual);
        if iteration > 0 && residual <= CLOSE {
            return Some(());
        }
        patch.release_coords();
        if patch.factor_size() != patch.membership.active.len() && patch.factorize() == Definiteness::Indefinite {
            return None;
        }
        axpy(1.0, &patch.newton_step(), &mut x);
        patch.bind_coords(&mut x);
    }
    None
}

/// How far the path moves through the nodes.
fn movement(patch: &Patch, at_nodes: &[Node]) -> f64 {
    let step = |w: &[Node]| {
        let apart: Vec<f64> = w[0].point.iter().zip(&w[1].point).map(|(a, b)| a - b).collect();
        patch.norm(&apart)
    };
    at_nodes.windows(2).map(step).sum()
}

/// Rows that may touch a threshold while x stays within `radius` of the reference.
fn near_rows(patch: &Patch, at_nodes: &[Node], radius: f64) -> Vec<usize> {
    let cuts: Vec<_> = at_nodes.iter().map(|n| patch.problem.pacing.cuts(patch.chart.inverse_age(n.t))).collect();
    let thresholds = cuts[0].as_slice().len();
    let is_near = |&i: &usize| {
        let zone = patch.membership.zone[i];
        if at_nodes.iter().any(|n| n.zone[i] != zone) {
            return true;
        }
        let reach = radius * patch.problem.predictor_scale * patch.row_norms[i];
        let close = |k: usize, side: f64| {
            let (mut least, mut low, mut high) = (f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY);
            for (node, cuts) in at_nodes.iter().zip(&cuts) {
                let (l, cut) = (node.loss.get(i), cuts.as_slice()[k].value);
                let guard = side * (l.value * cut - 1.0);
                let change = cut * (l.slope.abs() * reach + 0.5 * l.curvature * reach * reach);
                least = least.min(guard - change);
                low = low.min(guard);
                high = high.max(guard);
            }
            // Between nodes a guard may dip below its values there by a fraction of how much it moves.
            least < 0.5 * (high - low)
        };
        let zone = zone as usize;
        (zone > 0 && close(zone - 1, 1.0)) || (zone < thresholds && close(zone, -1.0))
    };
    (0..patch.rows()).filter(is_near).collect()
}

/// The sums over the far rows at every node, restricted to `cols`: all rows less the near ones and the penalty.
fn far_sums(patch: &Patch, near: &[usize], cols: &[usize], at_nodes: &[Node]) -> Vec<NodeSums> {
    let k = cols.len();
    let rows = patch.design.select(near, cols);
    let all: Vec<usize> = (0..k).collect();
    let pick = |from: &[f64]| cols.iter().map(|&j| from[j]).collect::<Vec<_>>();
    let each = |node: &Node| {
        let u = patch.chart.inverse_age(node.t);
        let (mut gradient, point, mut value) = (pick(&node.gradient), pick(&node.point), node.value);
        for (p, &j) in cols.iter().enumerate() {
            gradient[p] -= patch.l2[j] * point[p];
            value -= patch.l1[j] * point[p].abs() + 0.5 * patch.l2[j] * point[p] * point[p];
        }
        let hessian = node.hessian.as_ref().map(|(a, h)| {
            let mut a = a.clone();
            for (p, &j) in cols.iter().enumerate() {
                a[p * k + p] -= patch.l2[j];
            }
            let without: Vec<f64> = near.iter().map(|&i| -h[i]).collect();
            rows.gram(&without, &all, &mut a);
            a
        });
        let without: Vec<f64> = near.iter().map(|&i| -node.psi[i]).collect();
        rows.accumulate(&without, &mut gradient);
        for &i in near {
            value -= patch.scale[i] * patch.problem.pacing.primitive(node.loss.value[i], u);
        }
        NodeSums { point, value, gradient, hessian }
    };
    at_nodes.iter().map(each).collect()
}

/// The far rows' third-order term around the middle node.
fn cubic_term(patch: &Patch, near: &[usize], cols: &[usize], mut psi2: Vec<f64>) -> Cubic {
    near.iter().for_each(|&i| psi2[i] = 0.0);
    match &*patch.design {
        Design::Dense(x) if cols.len() == patch.cols() => Cubic::new(x, &psi2),
        design => {
            let rows: Vec<usize> = (0..patch.rows()).filter(|&i| psi2[i] != 0.0).collect();
            let kept: Vec<f64> = rows.iter().map(|&i| psi2[i]).collect();
            Cubic::new(&design.select(&rows, cols), &kept)
        }
    }
}
