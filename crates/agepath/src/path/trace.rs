//! What has been found so far, and whether to go on.

use super::chart::Chart;
use super::follow::{Record, Step};
use super::options::Progress;
use super::types::{Cause, End, Kind};
use std::ops::ControlFlow;
use std::time::Instant;

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

/// Ages that could not be followed, on the tracker's clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawGap {
    pub from: f64,
    pub to: f64,
    pub residual: f64,
}

impl RawGap {
    /// Whether a path with it is complete all the same.
    pub fn is_narrow(&self) -> bool {
        (self.to - self.from).abs() <= super::types::NARROW_GAP && self.residual <= super::types::CERTIFIED
    }
}

/// Events and knots in the order they were found. A rejected window takes back what it added.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub events: Vec<RawEvent>,
    pub knots: Vec<RawKnot>,
    pub gaps: Vec<RawGap>,
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

    pub fn mark(&self) -> (usize, usize) {
        (self.events.len(), self.knots.len())
    }

    pub fn rewind(&mut self, mark: (usize, usize)) {
        self.jumps -= self.events.drain(mark.0..).filter(|e| e.kind == Kind::Jump).count();
        self.knots.truncate(mark.1);
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
}

impl Watch<'_> {
    /// Asks everybody; remembers who said stop.
    pub fn go_on(&mut self, t: f64, trace: &Trace) -> bool {
        if self.end.is_some() {
            return false;
        }
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

/// Asking everybody costs a little: once in so many events.
const ASK_EVERY: usize = 64;
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
                !self.trace.events.len().is_multiple_of(ASK_EVERY) || self.watch.go_on(t, self.trace)
            }
            Step::Leap { t, cause, from, to, size, drop } => {
                self.knot(t, from);
                self.knot(t, to);
                self.trace.push_event(RawEvent { t, kind: Kind::Jump, cause, size, drop });
                !self.trace.events.len().is_multiple_of(ASK_EVERY) || self.watch.go_on(t, self.trace)
            }
            Step::Move { t, x } => {
                if self.keep_moves {
                    self.knot(t, x);
                }
                true
            }
            Step::Descent { t } => self.watch.go_on(t, self.trace),
        }
    }
}
