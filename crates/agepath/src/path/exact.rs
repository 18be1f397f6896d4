//! Windows over an exact background: for squared loss with a polynomial pacing the far rows are [`Moments`], so a window
//! needs no nodes and no check. It ends where the point leaves the tube in which far rows provably keep their zones, and
//! the next one begins there. A window with many near rows is a problem of the same form, so windows nest.

use super::curve::{Curve, Halt};
use super::far::Background;
use super::moments::Moments;
use super::patch::Patch;
use super::trace::RawKnot;
use super::window::{Context, Until, collect, directly, scatter};
use crate::linalg::axpy;

/// Windows aim at this many near rows ...
const NEAR_ROWS: usize = 64;
/// ... or at this share of all rows, whichever is more.
const NEAR_SHARE: usize = 16;
/// The tube around the tangent line is this wide, relative to how far the line goes.
const TUBE: f64 = 0.5;
/// ... and at least this wide.
const MIN_TUBE: f64 = 1e-6;
/// The first window's length.
const FIRST_WIDTH: f64 = 0.02;
/// Shorter windows do not have fewer near rows: those are there at any length.
const MIN_WIDTH: f64 = 1e-5;
/// Below this residual over all rows a window's end needs no polish.
const SETTLED: f64 = 1e-13;
/// A residual that no longer falls is accepted below this; above it, the moments are centred anew.
const STAGNATED: f64 = 1e-11;
/// Moments are made anew when a column they are not about has used up this share of its bound ...
const NEARLY_ACTIVE: f64 = 0.9;
/// ... or when this share of their columns would do.
const MUCH_FEWER: f64 = 0.8;
/// A window that advances by less, with no event, got nowhere.
const NOWHERE: f64 = 1e-8;
/// A residual above this is no rounding.
const LOST: f64 = 1e-9;
/// Windows that get nowhere, one after the other, before a stretch is followed row by row.
const MAX_STUCK: usize = 3;

/// Follows `patch` (evaluated and factored) to `stop`, or to where moments no longer pay. `moments` hold its rows and its
/// background. A patch with a background hands what it cannot do itself to its parent: it stops where it is, and says that
/// it escaped.
pub(super) fn follow(patch: &mut Patch, mut moments: Moments, stop: f64, ctx: &mut Context) -> Result<(), Halt> {
    let nested = patch.far.is_some();
    let aim = NEAR_ROWS.max(patch.rows() / NEAR_SHARE);
    // Rows that the moments leave out, each with the zone it had when it was taken out.
    let mut near: Vec<usize> = Vec::new();
    let mut width = FIRST_WIDTH;
    let mut tube = 1.0;
    let mut stuck = 0;
    patch.factorize();
    let mut tangent = patch.tangent();
    while patch.at.t != stop {
        let t0 = patch.at.t;
        if !ctx.watch.go_on(t0, ctx.trace) {
            return Err(Halt::Stopped);
        }
        let mark = ctx.trace.mark();
        let start = (patch.membership.clone(), patch.at.x.clone());
        let left = stop - t0;
        let speed = patch.norm(&tangent);
        let (next, t1, radius) = loop {
            let t1 = if left.abs() < 1.2 * width { stop } else { t0 + left.signum() * width };
            let radius = tube * TUBE * (t1 - t0).abs() * speed + MIN_TUBE;
            let next = near_rows(patch, t1, &tangent, radius);
            if next.len() < 4 * aim || width < MIN_WIDTH {
                break (next, t1, radius);
            }
            width *= 0.5;
        };
        exchange(&mut moments, patch, &near, &next);
        near = next;
        moments.measure_from(t0, &patch.at.x, &tangent);
        let background = Background::Moments(Box::new(moments.clone()));
        let mut child = Patch::part(patch, &near, &moments.columns, background, radius);
        child.evaluate(t0, &moments.pick(&patch.at.x));
        let went = if child.rows() < 4 * NEAR_ROWS || 2 * child.rows() > patch.rows() {
            directly(&mut child, t1, ctx, 1, Until::Stop)
        } else {
            let inside = moments.with_rows_of(&child);
            follow(&mut child, inside, t1, ctx)
        };
        collect(ctx.work, &child);
        ctx.work.windows += 1;
        let progressed = (child.at.t - t0).abs() > NOWHERE * (1.0 + t0.abs()) || ctx.trace.events.len() > mark.0;
        adopt(patch, &child, &near, &moments.columns);
        let at_rest = settle(patch, &child, &moments.columns);
        let entered = bounds_used(patch, &moments.columns) >= 1.0;
        let settled = at_rest && !entered;
        if nested && !(settled && patch.within_trust()) {
            ctx.trace.rewind(mark);
            patch.membership = start.0;
            patch.evaluate(t0, &start.1);
            patch.factorize();
            return Err(Halt::Escaped);
        }
        if !settled {
            ctx.work.restarts += 1;
            let lost = patch.residual() > LOST || entered;
            if lost {
                // Not the same path any more: take the window back and follow a stretch row by row.
                ctx.trace.rewind(mark);
                patch.membership = start.0;
                patch.evaluate(t0, &start.1);
                patch.factorize();
                directly(patch, t1, ctx, 0, Until::Jump)?;
            }
            // Otherwise rounding has piled up in the moments. Centre them here.
            let Some(renewed) = renewed(patch, &mut near) else { return Ok(()) };
            moments = renewed;
            if lost {
                tangent = patch.tangent();
                continue;
            }
        }
        ctx.trace.push_knot(knot(patch));
        match went {
            Ok(()) => {
                let fill = aim as f64 / near.len().max(1) as f64;
                width = ((t1 - t0).abs().max(0.5 * width) * fill.clamp(0.5, 2.0)).max(MIN_WIDTH);
                tube = (0.9 * tube).max(0.2);
                stuck = 0;
            }
            // Still inside: it is a jump that leads out, and all rows must see it.
            Err(Halt::Escaped) if child.norm(&child.at.far.offset) < 0.5 * radius && !progressed => stuck = MAX_STUCK,
            Err(Halt::Escaped) => {
                tube = (1.5 * tube).min(10.0);
                stuck = if progressed { 0 } else { stuck + 1 };
            }
            // What ends the path here may look different with all rows at hand.
            Err(Halt::Broken(_)) => stuck = MAX_STUCK,
            Err(Halt::Stopped) => return Err(Halt::Stopped),
        }
        let mut outdated = false;
        if stuck >= MAX_STUCK && patch.at.t != stop {
            if nested {
                return Err(Halt::Escaped);
            }
            let left = stop - patch.at.t;
            let stretch = width.max(FIRST_WIDTH);
            let end = if left.abs() < stretch { stop } else { patch.at.t + left.signum() * stretch };
            directly(patch, end, ctx, 0, Until::Jump)?;
            stuck = 0;
            outdated = true;
        }
        if outdated || (!nested && other_columns(patch, &moments.columns)) {
            let Some(renewed) = renewed(patch, &mut near) else { return Ok(()) };
            moments = renewed;
        }
        tangent = patch.tangent();
    }
    Ok(())
}

fn knot(patch: &Patch) -> RawKnot {
    let mut x = patch.at.x.clone();
    patch.snap(&mut x);
    RawKnot { t: patch.at.t, x: scatter(patch.problem.design.cols(), &patch.col_ids, &x) }
}

/// Moments centred where the patch stands, with no row left out.
fn renewed(patch: &mut Patch, near: &mut Vec<usize>) -> Option<Moments> {
    near.clear();
    patch.factorize();
    Moments::of_all_rows(patch)
}

/// How much of its bound the gradient of a column not among `columns` has used up: at 1 it becomes active.
fn bounds_used(patch: &Patch, columns: &[usize]) -> f64 {
    let others = (0..patch.cols()).filter(|j| columns.binary_search(j).is_err());
    others.map(|j| patch.at.gradient[j].abs() / patch.l1[j]).fold(0.0, f64::max)
}

/// Whether moments of other columns would serve better: one may become active, or many no longer can.
fn other_columns(patch: &Patch, columns: &[usize]) -> bool {
    let working = patch.working_columns().len();
    bounds_used(patch, columns) > NEARLY_ACTIVE || (working as f64) < MUCH_FEWER * columns.len() as f64
}

/// Rows that may touch a threshold by t1 while x stays within `radius` of the tangent line.
fn near_rows(patch: &Patch, t1: f64, tangent: &[f64], radius: f64) -> Vec<usize> {
    let n = patch.rows();
    let mut dz = vec![0.0; n];
    patch.design.predict(tangent, &mut dz);
    let ahead = t1 - patch.at.t;
    let (now, then) = (patch.at.cuts, patch.problem.pacing.cuts(patch.chart.inverse_age(t1)));
    let (now, then) = (now.as_slice(), then.as_slice());
    let is_near = |&i: &usize| {
        let r = patch.at.z[i] - patch.target[i];
        let (go, reach) = (ahead * dz[i], radius * patch.problem.predictor_scale * patch.row_norms[i]);
        let (low, high) = (r + go.min(0.0) - reach, r + go.max(0.0) + reach);
        let largest = low.abs().max(high.abs()).powi(2);
        let smallest = if low * high <= 0.0 { 0.0 } else { low.abs().min(high.abs()).powi(2) };
        let zone = patch.membership.zone[i] as usize;
        let may_fall = zone > 0 && smallest * now[zone - 1].value.min(then[zone - 1].value) <= 1.0;
        let may_rise = zone < now.len() && largest * now[zone].value.max(then[zone].value) >= 1.0;
        may_fall || may_rise
    };
    (0..n).filter(is_near).collect()
}

/// Takes the new near rows out of the moments and puts the old ones back, each in its present zone.
fn exchange(moments: &mut Moments, patch: &Patch, old: &[usize], new: &[usize]) {
    // Both lists are sorted.
    let without =
        |a: &[usize], b: &[usize]| a.iter().copied().filter(|i| b.binary_search(i).is_err()).collect::<Vec<usize>>();
    moments.add(patch, &without(old, new), 1.0);
    moments.add(patch, &without(new, old), -1.0);
}

/// Takes over the child's memberships and its factor.
fn adopt(patch: &mut Patch, child: &Patch, near: &[usize], columns: &[usize]) {
    for (&i, &zone) in near.iter().zip(&child.membership.zone) {
        patch.membership.zone[i] = zone;
    }
    for (&j, &coord) in columns.iter().zip(&child.membership.coord) {
        patch.membership.coord[j] = coord;
    }
    patch.membership.active = child.membership.active.iter().map(|&k| columns[k]).collect();
    patch.factor.clone_from(&child.factor);
}

/// Evaluates all rows where the child stands and polishes; false if rounding keeps the residual up.
fn settle(patch: &mut Patch, child: &Patch, columns: &[usize]) -> bool {
    let (t, mut x) = (child.at.t, scatter(patch.cols(), columns, &child.at.x));
    patch.evaluate(t, &x);
    let mut last = f64::INFINITY;
    for _ in 0..5 {
        let residual = patch.residual();
        if residual <= SETTLED || residual > 0.5 * last {
            return residual <= STAGNATED;
        }
        last = residual;
        axpy(1.0, &patch.newton_step(), &mut x);
        patch.evaluate(t, &x);
    }
    patch.residual() <= STAGNATED
}
