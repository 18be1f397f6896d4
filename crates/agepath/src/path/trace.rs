//! What has been found so far, and whether to go on.

use super::chart::Chart;
use super::follow::{Record, SAME_TIME, Step};
use super::options::Progress;
use super::types::{Cause, End, Kind};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A critical point on the tracker's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawEvent {
    pub t: f64,
    pub kind: Kind,
    pub cause: Cause,
    pub size: f64,
    pub drop: f64,
}

/// A solution on the tracker's clock, over all columns.
#[derive(Debug, Clone)]
pub(crate) struct RawKnot {
    pub t: f64,
    pub x: Vec<f64>,
}

/// Events and knots in the order they were found. A rejected window takes back what it added.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub events: Vec<RawEvent>,
    pub knots: Vec<RawKnot>,
    /// Stretches that were not followed, from and to.
    pub hops: Vec<(f64, f64)>,
    /// Those of them before which the branch ran away to infinity.
    pub escapes: Vec<(f64, f64)>,
    /// How many of the events are jumps.
    jumps: usize,
    /// How many events there were at the last knot.
    events_at_knot: usize,
}

/// Knots of the same time that differ by less than this, relatively, are one.
const SAME: f64 = 1e-9;

impl Trace {
    /// Adds a knot; one that was there already is replaced by the newer, better one.
    pub fn push_knot(&mut self, knot: RawKnot) {
        let same = self.knots.last().is_some_and(|last| {
            let size = knot.x.iter().fold(0.0f64, |a, x| a.max(x.abs()));
            let apart = last.x.iter().zip(&knot.x).fold(0.0f64, |a, (p, q)| a.max((p - q).abs()));
            last.t == knot.t && apart <= SAME * size
        });
        if same {
            self.knots.pop();
        }
        self.knots.push(knot);
        self.events_at_knot = self.events.len();
    }

    pub fn push_event(&mut self, event: RawEvent) {
        self.jumps += usize::from(event.kind == Kind::Jump);
        self.events.push(event);
    }

    /// Whether the last events are jumps at this one time, too many to lead anywhere.
    pub fn is_circling(&self, t: f64) -> bool {
        let here = |event: &&RawEvent| event.kind == Kind::Jump && (event.t - t).abs() <= SAME_TIME * (1.0 + t.abs());
        self.events.iter().rev().take(CIRCLE).filter(here).count() == CIRCLE
    }

    /// A stretch that was not followed: one jump, or turning points where it begins.
    pub fn push_hop(&mut self, (t, to): (f64, f64), changes: &[Cause], jump: Option<(f64, f64)>, ran_away: bool) {
        self.hops.push((t, to));
        if ran_away {
            self.escapes.push((t, to));
        }
        match jump {
            Some((size, drop)) => self.push_event(RawEvent { t, kind: Kind::Jump, cause: Cause::Fold, size, drop }),
            None => changes.iter().for_each(|&cause| {
                self.push_event(RawEvent { t, kind: Kind::Turning, cause, size: 0.0, drop: 0.0 });
            }),
        }
    }

    pub fn mark(&self) -> (usize, usize) {
        (self.events.len(), self.knots.len())
    }

    pub fn rewind(&mut self, mark: (usize, usize)) {
        self.jumps -= self.events.drain(mark.0..).filter(|e| e.kind == Kind::Jump).count();
        self.knots.truncate(mark.1);
        let reached = self.knots.last().map(|k| k.t);
        let came_from = self.knots.first().map(|k| k.t);
        if let (Some(reached), Some(first)) = (reached, came_from) {
            let kept = |hop: &(f64, f64)| (hop.1 - first).abs() <= (reached - first).abs();
            self.hops.retain(kept);
            self.escapes.retain(kept);
        } else {
            self.hops.clear();
            self.escapes.clear();
        }
        self.events_at_knot = self.events_at_knot.min(mark.0);
    }
}

/// Budgets and the caller's callback.
pub(crate) struct Watch<'w> {
    pub callback: &'w mut dyn FnMut(&Progress) -> ControlFlow<()>,
    pub chart: Chart,
    pub start: f64,
    pub stop: f64,
    pub deadline: Option<Instant>,
    pub max_events: Option<usize>,
    /// Set when somebody said stop.
    pub end: Option<End>,
    /// When everybody was asked last.
    pub asked: Instant,
}

/// So many jumps in a row at one time go round in a circle.
const CIRCLE: usize = 30;
/// A run that is stopped before it has any point may take this long for one.
pub(crate) const GRACE: Duration = Duration::from_millis(400);
/// Everybody is asked after so long: steps take from microseconds to seconds.
const ASK_AFTER: Duration = Duration::from_millis(10);

impl Watch<'_> {
    /// Asks everybody if it is time to, or if the events are used up.
    pub fn ask(&mut self, t: f64, trace: &Trace) -> bool {
        let full = self.max_events.is_some_and(|max| trace.events.len() >= max);
        (!full && self.end.is_none() && self.asked.elapsed() < ASK_AFTER) || self.go_on(t, trace)
    }

    /// Asks everybody on what happens after the path.
    pub fn go_on_silently(&mut self) -> bool {
        let stop = self.stop;
        self.end.is_none() && self.go_on(stop, &Trace::default())
    }

    /// Asks everybody; remembers who said stop.
    pub fn go_on(&mut self, t: f64, trace: &Trace) -> bool {
        if self.end.is_some() {
            return false;
        }
        self.asked = Instant::now();
        let progress = Progress {
            age: self.chart.age(t),
            done: (t - self.start) / (self.stop - self.start),
            events: trace.events.len(),
            jumps: trace.jumps,
        };
        self.end = if (self.callback)(&progress).is_break() {
            Some(End::Interrupted)
        } else if self.deadline.is_some_and(|d| Instant::now() >= d) {
            Some(End::TimeLimit)
        } else if self.max_events.is_some_and(|max| trace.events.len() >= max) {
            Some(End::EventLimit)
        } else {
            None
        };
        self.end.is_none()
    }
}

/// Writes a follower's steps into the trace.
pub(crate) struct Recorder<'a, 'w> {
    pub trace: &'a mut Trace,
    pub watch: &'a mut Watch<'w>,
    pub col_ids: &'a [usize],
    pub columns: usize,
    /// Keep a knot for every plain move too, and for some of the turning points.
    pub keep_moves: bool,
}

/// A knot at one turning point in so many: `at` starts from the nearest one and has to find its way past the others.
const KNOT_EVERY: usize = 16;

impl Recorder<'_, '_> {
    fn knot(&mut self, t: f64, x: &[f64]) {
        let mut all = vec![0.0; self.columns];
        for (&j, &x) in self.col_ids.iter().zip(x) {
            all[j] = x;
        }
        self.trace.push_knot(RawKnot { t, x: all });
    }
}

impl Record for Recorder<'_, '_> {
    fn record(&mut self, step: Step<'_>) -> bool {
        match step {
            Step::Turn { t, x, cause } => {
                if self.keep_moves && self.trace.events.len() - self.trace.events_at_knot >= KNOT_EVERY {
                    self.knot(t, x);
                }
                self.trace.push_event(RawEvent { t, kind: Kind::Turning, cause, size: 0.0, drop: 0.0 });
                self.watch.ask(t, self.trace)
            }
            Step::Leap { t, cause, from, to, size, drop } => {
                self.knot(t, from);
                self.knot(t, to);
                self.trace.push_event(RawEvent { t, kind: Kind::Jump, cause, size, drop });
                self.watch.ask(t, self.trace)
            }
            Step::Hop { t, from, to, changes, jump, ran_away } => {
                self.knot(t, from);
                self.knot(to.0, to.1);
                self.trace.push_hop((t, to.0), changes, jump, ran_away);
                self.watch.go_on(t, self.trace)
            }
            Step::Move { t, x } => {
                if self.keep_moves {
                    self.knot(t, x);
                }
                self.watch.ask(t, self.trace)
            }
            Step::Descent { t } => self.watch.go_on(t, self.trace),
        }
    }
}
