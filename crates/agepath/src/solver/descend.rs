//! From a point that is no local minimiser down to one: trust-region Newton with the exact Hessian on the L1 face.
//!
//! The radius begins small, so that the way down is followed rather than leapt over; the objective never goes up. What makes it
//! arrive: falls that the objective's rounding hides are judged by the slopes at both ends; a saddle is left along its least
//! curvature, ever further, on whichever side falls; and a Newton step below the rounding of a prediction is the end, whatever
//! the relative residual says.

use super::trust::{Curvature, boundary_step};
use crate::error::Breakdown;
use crate::linalg::{Definiteness, axpy, dot, symmetric_times};
use crate::path::curve::{Curve, GoOn, Halt, Landing};
use crate::path::patch::{Coord, Patch, euclidean};

/// Steps before giving up; a landing takes a dozen.
const MAX_STEPS: usize = 400;
/// The first radius, relative to 1 + the size of the point.
const FIRST_RADIUS: f64 = 1e-3;
/// Finished at this relative residual.
const CONVERGED: f64 = 1e-12;
/// A residual that no longer falls is accepted below this.
const STAGNATED: f64 = 1e-10;
/// ... and so is a point whose Newton step is this small in units of predictions.
const BELOW_ROUNDING: f64 = 1e-14;
/// Differences of the objective below this share of it are rounding ...
const NOISE: f64 = 1e-13;
/// ... and below so many times that, slopes tell more.
const DOUBTFUL: f64 = 100.0;
/// A step must lower the objective by at least this share of what the model says.
const SUFFICIENT: f64 = 0.1;
/// How often a step may be taken for a smaller residual, or other zones, alone.
const MAX_DOUBTS: usize = 8;
/// Doublings along the least curvature, from the smallest length that can show.
const MAX_EXITS: usize = 40;
/// Predictions that have run away, and a residual that did not fall with them.
const RUNS_AWAY: f64 = 1e-6;
/// Newton after a fit that is not a solve: until this residual, or so many steps.
const POLISHED: f64 = 1e-13;
const MAX_POLISH: usize = 5;
/// ACS at the start, where weights drop from 1 to 0.
const MAX_ALTERNATIONS: usize = 500;

/// The quadratic model of the objective on the L1 face of a point.
struct Face {
    columns: Vec<usize>,
    signs: Vec<f64>,
    /// ∂G on the face.
    slope: Vec<f64>,
    /// Lower triangle.
    hessian: Vec<f64>,
    magnitude: Vec<f64>,
}

impl Face {
    fn pick(&self, step: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|&j| step[j]).collect()
    }

    /// The Hessian in units in which columns have the same size.
    fn scaled(&self, scales: &[f64]) -> Vec<f64> {
        let k = scales.len();
        let mut out = self.hessian.clone();
        for p in 0..k {
            for q in 0..=p {
                out[p * k + q] /= scales[p] * scales[q];
            }
        }
        out
    }

    /// What the model says a step changes.
    fn change(&self, step: &[f64]) -> f64 {
        let d = self.pick(step);
        let mut hd = vec![0.0; d.len()];
        symmetric_times(&self.hessian, &d, &mut hd);
        dot(&self.slope, &d) + 0.5 * dot(&hd, &d)
    }
}

/// How a search stands.
struct Search {
    t: f64,
    x: Vec<f64>,
    value: f64,
    radius: f64,
    /// The residual one step ago.
    last: f64,
    doubts: usize,
    /// Coefficients at zero that would come straight back.
    barred: Vec<usize>,
}

impl Search {
    fn noise(&self) -> f64 {
        NOISE * self.value.abs()
    }
}

impl Patch<'_> {
    /// Descends from the last evaluated point at its t. Sets membership, evaluation and factor at the end.
    pub(crate) fn descend(&mut self, go_on: GoOn<'_>) -> Result<Landing, Halt> {
        let (t, start) = (self.at.t, self.at.x.clone());
        let from = self.merit(t, &start);
        let end = match self.problem.pacing.is_continuous() {
            true => self.settle(t, start.clone(), go_on)?,
            false => self.alternate(t, go_on)?,
        };
        let drop = from - self.value();
        Ok(Landing { size: euclidean(&end, &start), x: end, drop })
    }

    pub(crate) fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        self.norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
    }

    /// Where weights drop from 1 to 0 there is no slope to go by: ACS, until the weights stay.
    fn alternate(&mut self, t: f64, go_on: GoOn<'_>) -> Result<Vec<f64>, Halt> {
        for _ in 0..MAX_ALTERNATIONS {
            if !go_on() {
                return Err(Halt::Stopped);
            }
            let x = self.acs_step().map_err(Halt::Broken)?;
            let before = self.at.weight.value.clone();
            self.evaluate_by_value(t, &x);
            if self.at.weight.value == before {
                let (x, ..) = self.fit_weighted(t, &x, &before).map_err(Halt::Broken)?;
                let x = self.polish_fit(t, x);
                self.set_coords(&x);
                self.evaluate(t, &x);
                self.factorize();
                return Ok(x);
            }
        }
        Err(Halt::Broken(Breakdown::Stalled))
    }

    /// Newton with the present zones from a fit, which need not be exact, to rounding.
    pub(crate) fn polish_fit(&mut self, t: f64, mut x: Vec<f64>) -> Vec<f64> {
        self.set_coords(&x);
        self.evaluate(t, &x);
        for _ in 0..MAX_POLISH {
            let residual = self.violation_of_kkt();
            if residual <= POLISHED || self.factorize() == Definiteness::Indefinite {
                break;
            }
            let mut next = x.clone();
            axpy(1.0, &self.newton_step(), &mut next);
            self.snap(&mut next);
            self.evaluate(t, &next);
            if self.violation_of_kkt() >= residual {
                break;
            }
            x = next;
        }
        x
    }

    /// Descends from x at time t. Sets membership, evaluation and factor at the end.
    fn settle(&mut self, t: f64, x: Vec<f64>, go_on: GoOn<'_>) -> Result<Vec<f64>, Halt> {
        self.evaluate_by_value(t, &x);
        let radius = FIRST_RADIUS * (1.0 + self.norm(&x));
        let (value, last) = (self.value(), f64::INFINITY);
        let mut search = Search { t, x, value, radius, last, doubts: 0, barred: Vec::new() };
        for _ in 0..MAX_STEPS {
            if !go_on() {
                return Err(Halt::Stopped);
            }
            if !self.within_trust() {
                return Err(Halt::Escaped);
            }
            let face = self.face(&search);
            let residual = self.violation_of_kkt();
            let newton = self.newton_on(&face);
            if newton.as_ref().is_some_and(|step| self.rests(step, residual, search.last)) {
                let dusted = if residual > STAGNATED { self.without_dust(t, &search.x, residual) } else { None };
                return Ok(dusted.unwrap_or(search.x));
            }
            if self.runs_away(residual) {
                return Err(Halt::Broken(Breakdown::Unbounded));
            }
            let step = match newton.filter(|step| self.norm(step) <= search.radius) {
                Some(step) => step,
                None => match self.bounded_step(&face, residual, &mut search)? {
                    Some(step) => step,
                    None => continue,
                },
            };
            if let Some(next) = self.on_face(&face, step, &mut search) {
                if self.distance(&next, &search.x) <= BELOW_ROUNDING * (1.0 + self.norm(&next)) {
                    // A coefficient that was nothing but rounding has come to its bound: another face, no other point.
                    self.evaluate_by_value(t, &next);
                    search.x = next;
                } else {
                    self.take(&face, next, residual, &mut search)?;
                }
            }
        }
        Err(Halt::Broken(Breakdown::Newton { residual: search.last }))
    }

    /// The face that x lies on, with the coefficients whose bound is exceeded; sets the membership to it.
    fn face(&mut self, search: &Search) -> Face {
        self.set_coords(&search.x);
        self.release_coords();
        if !search.barred.is_empty() {
            search.barred.iter().for_each(|&j| self.membership.coord[j] = Coord::Zero);
            self.membership.relist();
        }
        self.counters.factorizations += 1;
        let columns = self.membership.active.clone();
        let (hessian, magnitude) = self.hessian(&columns);
        let signs: Vec<f64> = columns.iter().map(|&j| self.membership.coord[j].sign()).collect();
        let slope = columns.iter().zip(&signs).map(|(&j, sign)| self.at.gradient[j] + self.l1[j] * sign).collect();
        Face { columns, signs, slope, hessian, magnitude }
    }

    /// Newton's step on the face where the Hessian is positive there, and no column without curvature is pulled.
    fn newton_on(&mut self, face: &Face) -> Option<Vec<f64>> {
        if self.factor.factor(&face.hessian, &face.magnitude) == Definiteness::Indefinite {
            return None;
        }
        let pulled =
            |p: usize| self.factor.is_held(p) && self.relative(face.columns[p], face.slope[p].abs()) > STAGNATED;
        if (0..face.columns.len()).any(pulled) {
            return None;
        }
        Some(self.newton_step())
    }

    fn rests(&self, newton: &[f64], residual: f64, last: f64) -> bool {
        residual <= CONVERGED
            || (residual <= STAGNATED && residual > 0.5 * last)
            || self.norm(newton) <= BELOW_ROUNDING * (1.0 + self.norm(&self.at.x))
    }

    /// Where rows are fitted exactly, a coefficient that is nothing but rounding is all that pulls: the point with such coefficients
    /// at zero, if its residual is smaller.
    fn without_dust(&mut self, t: f64, x: &[f64], residual: f64) -> Option<Vec<f64>> {
        let dust = BELOW_ROUNDING * self.problem.predictor_scale;
        let clean = |(&x, scale): (&f64, &f64)| if (x * scale).abs() <= dust { 0.0 } else { x };
        let clean: Vec<f64> = x.iter().zip(&self.column_scales).map(clean).collect();
        self.stand_at(t, &clean);
        if self.violation_of_kkt() < residual {
            return Some(clean);
        }
        self.stand_at(t, x);
        None
    }

    /// Evaluation, membership and factor by the values at a point.
    fn stand_at(&mut self, t: f64, x: &[f64]) {
        self.evaluate_by_value(t, x);
        self.set_coords(x);
        self.release_coords();
        self.factorize();
    }

    /// Whether the predictions of all rows that count have left for infinity.
    fn runs_away(&self, residual: f64) -> bool {
        let rows = self.at.z.iter().zip(&self.at.psi);
        let nearest = rows.filter(|(_, psi)| **psi != 0.0).fold(f64::INFINITY, |a, (z, _)| a.min(z.abs()));
        nearest.is_finite() && nearest > self.problem.loss.flat_beyond() && residual > RUNS_AWAY
    }

    /// The best step of the model within the radius; none where this was a saddle, which has been left.
    fn bounded_step(&mut self, face: &Face, residual: f64, search: &mut Search) -> Result<Option<Vec<f64>>, Halt> {
        let scales: Vec<f64> = face.columns.iter().map(|&j| self.column_scales[j]).collect();
        let hessian = face.scaled(&scales);
        let slope: Vec<f64> = face.slope.iter().zip(&scales).map(|(g, s)| g / s).collect();
        let radius = search.radius * self.problem.predictor_scale;
        // Only where nothing pulls can it be a saddle.
        if residual > STAGNATED
            && let Some(p) = boundary_step(&hessian, &slope, radius)
        {
            return Ok(Some(self.unscaled(face, &p)));
        }
        let unit = face.magnitude.iter().zip(&scales).fold(0.0f64, |top, (m, s)| top.max(m / (s * s)));
        let curved = Curvature::of(&hessian, scales.len(), unit).ok_or(Halt::Broken(Breakdown::Stalled))?;
        if self.at_saddle(&slope, &curved, residual, search) {
            self.leave(face, &curved, search)?;
            return Ok(None);
        }
        Ok(Some(self.unscaled(face, &curved.step(&slope, radius))))
    }

    /// A step in scaled coordinates on the face as one over all columns.
    fn unscaled(&self, face: &Face, p: &[f64]) -> Vec<f64> {
        let mut step = vec![0.0; self.cols()];
        for (&j, p) in face.columns.iter().zip(p) {
            step[j] = p / self.column_scales[j];
        }
        step
    }

    /// Whether this is a saddle, as far as the objective can tell.
    fn at_saddle(&self, slope: &[f64], curved: &Curvature, residual: f64, search: &Search) -> bool {
        let reach = search.radius * self.problem.predictor_scale;
        curved.least().0 < 0.0 && residual <= STAGNATED && reach * dot(slope, slope).sqrt() < DOUBTFUL * search.noise()
    }

    /// Leaves a saddle along its least curvature.
    fn leave(&mut self, face: &Face, curved: &Curvature, search: &mut Search) -> Result<(), Halt> {
        let (least, direction) = curved.least();
        let way = self.unscaled(face, direction);
        let unit = self.norm(&way);
        let bound = DOUBTFUL * search.noise();
        let shows = (4.0 * bound / least.abs()).sqrt() / self.problem.predictor_scale;
        let mut length = shows.min(1e-5 * (1.0 + self.norm(&search.x)));
        for _ in 0..MAX_EXITS {
            for side in [1.0, -1.0] {
                let step: Vec<f64> = way.iter().map(|w| side * length / unit * w).collect();
                let next = self.bound(face, &search.x, &step);
                let fall = self.fall_to(face, &next, search);
                if fall > 0.1 * bound || (fall > 0.0 && length > shows) {
                    search.radius = search.radius.max(length);
                    (search.x, search.last) = (next, f64::INFINITY);
                    search.value = self.value();
                    search.barred.clear();
                    return Ok(());
                }
            }
            length *= 2.0;
        }
        Err(Halt::Broken(Breakdown::Stalled))
    }

    /// x + step with every coefficient that would change its sign on the face at zero.
    fn bound(&self, face: &Face, x: &[f64], step: &[f64]) -> Vec<f64> {
        let mut next: Vec<f64> = x.iter().zip(step).map(|(x, s)| x + s).collect();
        for (&j, sign) in face.columns.iter().zip(&face.signs) {
            if sign * next[j] < 0.0 {
                next[j] = 0.0;
            }
        }
        next
    }

    /// x + step on the face: projected where that keeps the model's promise, else to the first bound. None: some coefficients that
    /// had just been let go would come straight back; they are barred from the next step.
    fn on_face(&self, face: &Face, step: Vec<f64>, search: &mut Search) -> Option<Vec<f64>> {
        let x = &search.x;
        let crossing: Vec<usize> = (face.columns.iter().zip(&face.signs))
            .filter(|&(&j, sign)| sign * (x[j] + step[j]) < 0.0)
            .map(|(&j, _)| j)
            .collect();
        let projected = self.bound(face, x, &step);
        let moved: Vec<f64> = projected.iter().zip(x).map(|(a, b)| a - b).collect();
        if crossing.is_empty() || face.change(&moved) <= SUFFICIENT * face.change(&step) {
            return Some(projected);
        }
        let fresh: Vec<usize> = crossing.iter().copied().filter(|&j| x[j] == 0.0).collect();
        if !fresh.is_empty() {
            search.barred.extend(fresh);
            return None;
        }
        let share = crossing.iter().map(|&j| -x[j] / step[j]).fold(1.0, f64::min);
        let mut next: Vec<f64> = x.iter().zip(&step).map(|(x, s)| x + share * s).collect();
        crossing.iter().filter(|&&j| -x[j] / step[j] <= share).for_each(|&j| next[j] = 0.0);
        Some(next)
    }

    /// How far the objective falls from the search's point to `next`, where the patch stands afterwards.
    fn fall_to(&mut self, face: &Face, next: &[f64], search: &Search) -> f64 {
        self.evaluate_by_value(search.t, next);
        let by_value = search.value - self.value();
        if by_value.abs() > DOUBTFUL * search.noise() {
            return by_value;
        }
        // −½(g₀ + g₁)ᵀd: the trapezoid rule sees what the rounding of the values hides.
        let each = face.columns.iter().zip(&face.signs).zip(&face.slope);
        let along = each
            .map(|((&j, sign), before)| (self.at.gradient[j] + self.l1[j] * sign + before) * (next[j] - search.x[j]));
        -0.5 * along.sum::<f64>()
    }

    /// Takes the step to `next` if the objective falls about as the model says; else shortens the radius.
    fn take(&mut self, face: &Face, next: Vec<f64>, residual: f64, search: &mut Search) -> Result<(), Halt> {
        let step: Vec<f64> = next.iter().zip(&search.x).map(|(a, b)| a - b).collect();
        let (promised, length) = (-face.change(&step), self.norm(&step));
        let zones = self.membership.zone.clone();
        let fall = self.fall_to(face, &next, search);
        let mut good = promised > 0.0 && fall >= SUFFICIENT * promised;
        if !good && promised <= 10.0 * search.noise() && search.doubts < MAX_DOUBTS {
            // Below rounding: the residual decides, or rows that are in another zone now.
            self.set_coords(&next);
            self.release_coords();
            let there = self.violation_of_kkt();
            good = there < 0.5 * residual || (there < 10.0 * residual && zones != self.membership.zone);
            search.doubts += usize::from(good);
        }
        if good {
            search.value = self.value();
            (search.x, search.last) = (next, residual);
            search.barred.clear();
            if fall > 0.75 * promised && length > 0.8 * search.radius {
                search.radius *= 2.0;
            } else if fall < 0.25 * promised {
                search.radius = search.radius.min(0.5 * length).max(f64::MIN_POSITIVE);
            }
            return Ok(());
        }
        search.radius = (0.25 * search.radius).min(0.5 * length);
        search.last = residual;
        self.evaluate_by_value(search.t, &search.x);
        let gone = search.radius < 1e-15 * (1.0 + self.norm(&search.x));
        if gone { Err(Halt::Broken(Breakdown::Newton { residual })) } else { Ok(()) }
    }

    /// Signs of the coefficients from their values.
    pub(crate) fn set_coords(&mut self, x: &[f64]) {
        for j in 0..x.len() {
            self.membership.coord[j] = match (self.l1[j] > 0.0, x[j]) {
                (false, _) => Coord::Free,
                (true, w) if w > 0.0 => Coord::Plus,
                (true, w) if w < 0.0 => Coord::Minus,
                _ => Coord::Zero,
            };
        }
        self.membership.relist();
    }

    /// Lets coefficients go whose bound is exceeded.
    pub(crate) fn release_coords(&mut self) {
        for j in 0..self.cols() {
            let g = self.at.gradient[j];
            if self.membership.coord[j] == Coord::Zero && g.abs() > self.l1[j] * (1.0 + 1e-13) {
                self.membership.coord[j] = if g > 0.0 { Coord::Minus } else { Coord::Plus };
            }
        }
        self.membership.relist();
    }

    /// Sets coefficients to zero that have crossed it.
    pub(crate) fn bind_coords(&mut self, x: &mut [f64]) {
        for j in 0..x.len() {
            if self.membership.coord[j].sign() * x[j] < 0.0 {
                x[j] = 0.0;
                self.membership.coord[j] = Coord::Zero;
            }
        }
        self.membership.relist();
    }
}
