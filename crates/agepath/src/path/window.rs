//! Windows: long steps that cross many events, each located and certified for the price of a few rows.
//!
//! A window [t0, t1] brings the path to a few Chebyshev nodes (semismooth Newton, crossing thresholds freely), keeps the
//! rows that come near a threshold anywhere in it, folds all others into [`Far`], and follows this small problem event by
//! event. The result is then checked against all rows between the nodes and at the end; a window that fails is tried
//! again shorter. The small problem has the same form as the large one, so windows nest.
//!
//! A window costs its nodes, its checks and its third-order term, whatever happens in it; following row by row costs a few
//! passes over the rows per event. Where windows hold too few events to pay, ever longer stretches are followed row by
//! row before the next one is tried.

use super::compress::{Compressed, compress};
use super::curve::{Curve, Halt};
use super::exact;
use super::follow::Follower;
use super::moments::Moments;
use super::patch::{Membership, Patch};
use super::trace::{RawEvent, RawKnot, Recorder, Trace, Watch};
use super::types::{Cause, Kind, Work};
use crate::linalg::{Definiteness, axpy};

/// So few rows are followed directly: as a window's near rows ...
const LEAF_ROWS: usize = 48;
/// ... or as a problem.
const FEW_ROWS: usize = 1000;
/// Windows aim at this share of the rows being near.
const NEAR_SHARE: f64 = 1.0 / 16.0;
/// A window is accepted when the relative residual over all rows, at the child's points, is below this. An event's age
/// inherits about this error.
const VERIFIED: f64 = 2e-10;
/// The end of a window is brought down to this.
const SETTLED: f64 = 1e-13;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-11;
/// Newton iterations at the end of a window.
const MAX_SETTLE: usize = 6;
/// After so many rejections in a row the next stretch is followed row by row ...
const MAX_REJECTIONS: usize = 5;
/// ... and so it is when windows have shrunk to this share of their usual length, as they do towards a fold ...
const DIRECT_BELOW: f64 = 0.03;
/// ... for this share of the usual length, or until it has jumped.
const DIRECT_SHARE: f64 = 0.25;
/// Passes over the rows of a window's nodes and checks, and of an event that is followed row by row.
const WINDOW_PASSES: usize = 15;
const EVENT_PASSES: usize = 5;
/// After a window that does not pay, this many times the events it should have had are followed row by row; twice as
/// many after the next, and so on.
const PATIENCE: usize = 4;
const MAX_PATIENCE: usize = 16;
/// Windows start out no shorter than this share of the way to go.
const MIN_SHARE: f64 = 0.05;
/// The first window's length.
const FIRST_WIDTH: f64 = 0.05;
/// The check point, between two nodes of [−1, 1].
const CHECK: f64 = 0.36;
/// The error of a window falls about with this power of its length, where kinks dominate it.
const ORDER: f64 = 3.0;

/// Everything the nested windows share.
pub(crate) struct Context<'a, 'w> {
    pub trace: &'a mut Trace,
    pub watch: &'a mut Watch<'w>,
    pub work: &'a mut Work,
    /// Where all of them end.
    pub goal: f64,
    /// What has been learned at each nesting depth.
    pub levels: Vec<Level>,
}

/// What a nesting depth has learned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    /// The length to try next.
    width: f64,
    /// The length of windows lately.
    usual: f64,
    /// The trust radius as a share of the window's movement.
    trust: f64,
    /// How often as many events as a window is worth are followed row by row when it does not pay.
    patience: usize,
    /// Windows begun since the last one that was accepted.
    tries: usize,
}

impl Default for Level {
    fn default() -> Self {
        Level { width: FIRST_WIDTH, usual: FIRST_WIDTH, trust: 0.1, patience: PATIENCE, tries: 0 }
    }
}

/// How an attempted window ended.
enum Outcome {
    Accepted {
        error: f64,
        near: usize,
    },
    /// Try this share of the length, with this trust.
    Rejected {
        share: f64,
        trust: f64,
    },
}

/// Follows `patch` from where it stands (evaluated, factored) to `stop`.
pub(crate) fn follow(patch: &mut Patch, stop: f64, ctx: &mut Context, depth: usize) -> Result<(), Halt> {
    if ctx.levels.len() <= depth {
        ctx.levels.push(Level::default());
    }
    let span = (stop - patch.at.t).abs();
    ctx.levels[depth].width = ctx.levels[depth].width.max(MIN_SHARE * span);
    let mut rejections = 0;
    while patch.at.t != stop {
        if depth == 0 {
            by_moments(patch, stop, ctx)?;
            if patch.at.t == stop {
                break;
            }
        }
        let few = patch.rows() <= if depth == 0 { FEW_ROWS } else { LEAF_ROWS };
        if few || !can_pay(patch) {
            return directly(patch, stop, ctx, depth, Until::Stop);
        }
        let t0 = patch.at.t;
        if depth == 0 && !ctx.watch.go_on(t0, ctx.trace) {
            return Err(Halt::Stopped);
        }
        let left = stop - t0;
        let ahead = |width: f64| {
            if left.abs() < 1.2 * width { stop } else { t0 + left.signum() * width }
        };
        let level = ctx.levels[depth];
        if rejections > MAX_REJECTIONS || level.width < DIRECT_BELOW * level.usual {
            let stretch = DIRECT_SHARE * level.usual;
            directly(patch, ahead(stretch), ctx, depth, Until::Jump)?;
            ctx.levels[depth].width = stretch;
            rejections = 0;
            continue;
        }
        let t1 = ahead(level.width);
        let mark = ctx.trace.mark();
        ctx.levels[depth].tries += 1;
        match window(patch, t1, ctx, depth) {
            Ok(Outcome::Accepted { error, near }) => {
                rejections = 0;
                ctx.work.windows += usize::from(depth == 0);
                let events = ctx.trace.events.len() - mark.0;
                ctx.levels[depth].learn((t1 - t0).abs(), error, near as f64 / patch.rows() as f64);
                let level = &mut ctx.levels[depth];
                let worth = level.tries * worth(patch.cols());
                level.tries = 0;
                if events >= worth {
                    level.patience = PATIENCE;
                } else if patch.at.t != stop {
                    let budget = level.patience * worth;
                    level.patience = (2 * level.patience).min(MAX_PATIENCE);
                    directly(patch, stop, ctx, depth, Until::Events(budget))?;
                }
            }
            Ok(Outcome::Rejected { share, trust }) => {
                ctx.trace.rewind(mark);
                ctx.work.restarts += 1;
                rejections += 1;
                ctx.levels[depth].width = share * (t1 - t0).abs();
                ctx.levels[depth].trust = trust;
            }
            Err(halt) => {
                ctx.trace.rewind(mark);
                return Err(halt);
            }
        }
    }
    Ok(())
}

/// Follows as far as moments stand for the rows, if they do.
fn by_moments(patch: &mut Patch, stop: f64, ctx: &mut Context) -> Result<(), Halt> {
    while patch.at.t != stop && patch.rows() > LEAF_ROWS {
        match Moments::of_all_rows(patch) {
            Some(moments) => exact::follow(patch, moments, stop, ctx)?,
            None => break,
        }
    }
    Ok(())
}

/// How many events a window over `m` columns has to hold to pay: its third-order term alone costs m³/6 products per
/// row, a pass 2m.
fn worth(m: usize) -> usize {
    (WINDOW_PASSES + m * m / 12) / EVENT_PASSES
}

/// Whether a window can hold as many events as it is worth: no more rows than it keeps near can change their zone in it. With
/// hundreds of columns its third-order term alone would not fit into memory.
fn can_pay(patch: &Patch) -> bool {
    worth(patch.cols()) as f64 <= NEAR_SHARE * patch.rows() as f64
}

impl Level {
    /// Chooses the next length from how this one went.
    fn learn(&mut self, width: f64, error: f64, near: f64) {
        let by_error = 0.8 * (VERIFIED / error.max(1e-16)).powf(1.0 / ORDER);
        let by_rows = NEAR_SHARE / near.max(1e-6);
        let used = width.max(0.5 * self.width);
        self.width = used * by_error.min(by_rows).clamp(0.3, 2.0);
        self.usual = used.max(0.7 * self.usual);
        self.trust = (0.9 * self.trust).max(0.02);
    }
}

/// When a stretch that is followed row by row ends before its stop.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Until {
    Stop,
    Jump,
    Events(usize),
}

/// Follows event by event with every row of `patch` at hand.
pub(super) fn directly(
    patch: &mut Patch,
    stop: f64,
    ctx: &mut Context,
    depth: usize,
    until: Until,
) -> Result<(), Halt> {
    let (t, x) = (patch.at.t, patch.at.x.clone());
    let (col_ids, columns) = (patch.col_ids.clone(), patch.problem.design.cols());
    let circling = ctx.trace.is_circling(t);
    let mut recorder =
        Recorder { trace: ctx.trace, watch: ctx.watch, col_ids: &col_ids, columns, keep_moves: depth == 0 };
    let mut follower = Follower::new(patch, t, x);
    follower.circling = circling;
    follower.goal = (depth == 0).then_some(ctx.goal);
    match until {
        Until::Stop => {}
        Until::Jump => follower.stop_after_jump = true,
        Until::Events(budget) => follower.event_budget = budget,
    }
    follower.advance(stop, &mut recorder)
}

/// Tries one window; on acceptance `patch` stands at t1, otherwise where it was.
fn window(patch: &mut Patch, t1: f64, ctx: &mut Context, depth: usize) -> Result<Outcome, Halt> {
    let t0 = patch.at.t;
    let level = ctx.levels[depth];
    let start = (patch.membership.clone(), patch.at.x.clone());
    let reject = |patch: &mut Patch, share: f64, trust: f64| {
        patch.membership.clone_from(&start.0);
        patch.evaluate(t0, &start.1);
        patch.factorize();
        Ok(Outcome::Rejected { share, trust })
    };
    let Some(small) = compress(patch, t1, level.trust, &start.0) else {
        return reject(patch, 0.4, (0.7 * level.trust).max(0.02));
    };
    let Compressed { mut child, near, cols } = small;
    let mut is_near = vec![false; patch.rows()];
    near.iter().for_each(|&i| is_near[i] = true);
    let first_event = ctx.trace.events.len();
    let check_at = 0.5 * (t0 + t1) + 0.5 * (t1 - t0) * CHECK;
    let mut error = 0.0f64;
    for stop in [check_at, t1] {
        let went = follow(&mut child, stop, ctx, depth + 1);
        match went {
            Ok(()) => {}
            Err(Halt::Stopped) => return Err(Halt::Stopped),
            Err(Halt::Escaped | Halt::Broken(_)) => {
                collect(ctx.work, &child);
                let gone = child.norm(&child.at.far.offset);
                let reached = ((child.at.t - t0) / (t1 - t0)).clamp(0.0, 1.0);
                // Just outside: trust more. Far outside: a jump; end the window before it.
                if gone > child.trust && gone < 8.0 * child.trust {
                    return reject(patch, 1.0, (2.5 * level.trust).min(20.0));
                }
                return reject(patch, if reached > 0.05 { 0.98 * reached } else { 0.25 }, level.trust);
            }
        }
        error = error.max(check(patch, &child, &cols, &is_near, &start.0.zone));
        if error > VERIFIED {
            break;
        }
    }
    collect(ctx.work, &child);
    if error > VERIFIED {
        let by_error = 0.7 * (VERIFIED / error).powf(1.0 / ORDER);
        let share = first_break(&ctx.trace.events[first_event..], t0, t1).unwrap_or(by_error.clamp(0.1, 0.6));
        return reject(patch, share, level.trust);
    }
    adopt(patch, &child, &near, &cols, &start.0);
    if !settle_end(patch, t1, &child, &cols) {
        return reject(patch, 0.5, level.trust);
    }
    if depth == 0 {
        let mut x = patch.at.x.clone();
        patch.snap(&mut x);
        ctx.trace.push_knot(RawKnot { t: t1, x });
    }
    Ok(Outcome::Accepted { error, near: near.len() })
}

pub(super) fn collect(work: &mut Work, child: &Patch) {
    work.factorizations += child.counters.factorizations;
    work.updates += child.counters.updates;
    work.acs_fits += child.counters.acs_fits;
}

/// The relative KKT violation over all rows at the child's point; infinite if a far row has left its zone.
fn check(patch: &mut Patch, child: &Patch, cols: &[usize], is_near: &[bool], zones: &[u8]) -> f64 {
    let x = scatter(patch.cols(), cols, &child.at.x);
    patch.evaluate_losses(child.at.t, &x);
    patch.rezone();
    if (0..patch.rows()).any(|i| !is_near[i] && patch.membership.zone[i] != zones[i]) {
        return f64::INFINITY;
    }
    patch.evaluate_gradient();
    patch.set_coords(&x);
    patch.violation_of_kkt()
}

/// A vector over some of m columns as one over all.
pub(super) fn scatter(m: usize, cols: &[usize], x: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; m];
    for (&j, &x) in cols.iter().zip(x) {
        all[j] = x;
    }
    all
}

/// Where in the window, as a share of it, the first coefficient event or jump lies: the far part's reference curve is
/// smooth and cannot follow those, so a window that fails should end there.
fn first_break(events: &[RawEvent], t0: f64, t1: f64) -> Option<f64> {
    let at = |t: f64| (t - t0) / (t1 - t0);
    events
        .iter()
        .filter(|e| matches!(e.cause, Cause::Feature { .. }) || e.kind == Kind::Jump)
        .map(|e| at(e.t))
        .find(|s| *s > 0.02)
        .filter(|s| *s < 0.95)
}

/// Takes over the child's memberships.
fn adopt(patch: &mut Patch, child: &Patch, near: &[usize], cols: &[usize], start: &Membership) {
    patch.membership.clone_from(start);
    for (r, &i) in near.iter().enumerate() {
        patch.membership.zone[i] = child.membership.zone[r];
    }
    for (k, &j) in cols.iter().enumerate() {
        patch.membership.coord[j] = child.membership.coord[k];
    }
    patch.membership.active = child.membership.active.iter().map(|&k| cols[k]).collect();
    patch.membership.relist();
}

/// Brings the end of a window to rounding accuracy over all rows, and tests its stability.
fn settle_end(patch: &mut Patch, t1: f64, child: &Patch, cols: &[usize]) -> bool {
    let mut x = scatter(patch.cols(), cols, &child.at.x);
    patch.evaluate(t1, &x);
    if patch.factorize() == Definiteness::Indefinite {
        return false;
    }
    let mut last = f64::INFINITY;
    for _ in 0..MAX_SETTLE {
        let residual = patch.residual();
        if residual <= SETTLED || (residual <= STAGNATED && residual > 0.3 * last) {
            return true;
        }
        last = residual;
        axpy(1.0, &patch.newton_step(), &mut x);
        patch.evaluate(t1, &x);
    }
    false
}
