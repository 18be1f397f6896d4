//! Branches: paths of local minimisers that differ on part of the interval.

use crate::error::{Error, Result};
use crate::path::{Cause, Direction, End, Event, Gap, Path, PathOptions, Progress, Work, age_path};
use crate::problem::Problem;
use std::ops::ControlFlow;

/// Watches a path; may stop it.
pub type Callback<'a> = dyn Fn(&Progress) -> ControlFlow<()> + Sync + 'a;

/// One branch of a study.
#[derive(Debug, Clone)]
pub struct Branch {
    /// How it was found.
    pub name: String,
    /// The branch.
    pub path: Path,
}

/// The branch through `theta` at `age`, over the interval of `options`: followed up and down from there and told upwards.
pub(crate) fn through(
    problem: &Problem,
    options: &PathOptions,
    theta: &[f64],
    age: f64,
    callback: &Callback,
) -> Result<Path> {
    let (low, high) = options.ages;
    let follow = |ages: (f64, f64), direction: Direction| {
        let options = PathOptions { ages, direction, from: Some(theta.to_vec()), ..options.clone() };
        age_path(problem, &options, &mut |progress| callback(progress))
    };
    if age <= low {
        return follow((low, high), Direction::Up);
    }
    if age >= high {
        return follow((low, high), Direction::Down);
    }
    let up = follow((age, high), Direction::Up)?;
    match follow((low, age), Direction::Down) {
        Ok(down) => Ok(joined(down, up)),
        // Nothing to follow below: the branch begins here.
        Err(Error::NoSolution { .. }) => Ok(up),
        Err(other) => Err(other),
    }
}

/// Two paths that leave one point in opposite directions, as one that goes up. A jump keeps its size and its drop, which were those of
/// the way it was found.
fn joined(down: Path, up: Path) -> Path {
    let mut knots = down.knots;
    // Both begin with the point they share; twice the same age would be a jump.
    knots.remove(0);
    knots.reverse();
    knots.extend(up.knots);
    let mut events: Vec<Event> = down.events.into_iter().rev().map(turned).collect();
    events.extend(up.events);
    let mut gaps: Vec<Gap> = down.gaps.into_iter().rev().map(|g| Gap { from: g.to, to: g.from, ..g }).collect();
    gaps.extend(up.gaps);
    let mut certificate = up.certificate;
    certificate.max_kkt = certificate.max_kkt.max(down.certificate.max_kkt);
    certificate.knots_checked += down.certificate.knots_checked.saturating_sub(1);
    certificate.between_checked += down.certificate.between_checked;
    let (a, b) = (down.work, up.work);
    let work = Work {
        newton: a.newton + b.newton,
        factorizations: a.factorizations + b.factorizations,
        updates: a.updates + b.updates,
        restarts: a.restarts + b.restarts,
        acs_fits: a.acs_fits + b.acs_fits,
        windows: a.windows + b.windows,
        active: a.active.max(b.active),
        seconds: a.seconds + b.seconds,
    };
    Path {
        ages: (down.ages.0, up.ages.1),
        direction: Direction::Up,
        knots,
        events,
        gaps,
        notes: [down.notes, up.notes].concat(),
        certificate,
        work,
        end: if up.end == End::Complete { down.end } else { up.end },
    }
}

/// An event as it looks from the other side.
fn turned(event: Event) -> Event {
    let cause = match event.cause {
        Cause::Sample { index, from, to } => Cause::Sample { index, from: to, to: from },
        Cause::Feature { index, from, to } => Cause::Feature { index, from: to, to: from },
        Cause::Fold => Cause::Fold,
    };
    Event { cause, ..event }
}
