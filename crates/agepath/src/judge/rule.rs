//! The rule: fits that were found become branches, and one exact solution on them, or the ordinary fit, is chosen.

use super::branch::{self, Branch, Callback};
use super::choose::{Candidate, Score, judge_by_folds};
use super::distance::Distances;
use super::fit::Fitter;
use super::flags::Yardstick;
use super::groups::{FOLDS, grouped_folds};
use super::scale::m_scale;
use super::search::{Ages, Found, SEARCH_EFFICIENCY};
use super::{CAPPED, CUTS, FEW_ROWS, SCALE};
use crate::decide::{Choice, Reasons};
use crate::error::{Error, Result};
use crate::path::{PathOptions, Point};
use crate::prepare::Prepared;
use crate::problem::Problem;
use crate::report::short;
use crate::select::{self, Rule, Selection, is_degenerate};

/// Rows per parameter below which folds say less than the scale of the central rows.
const FEW_ROWS_PER_PARAMETER: usize = 5;
/// Ages that are tried on the branch that comes down, evenly spaced in their logarithm.
const SPACED: usize = 14;
/// Another candidate must beat the ordinary fit by so many standard errors of the difference.
const MARGIN: f64 = 0.5;
/// Two fits are one if their predictions differ by less than this share of the scale on average.
const SAME: f64 = 0.05;

/// The rows that search and judge: all of them, or some that stand for all.
pub(super) struct Jury<'p> {
    pub problem: &'p Problem,
    pub distances: Distances,
}

/// Makes the choice.
pub(super) struct Judge<'p> {
    pub prepared: &'p Prepared,
    pub jury: Jury<'p>,
    pub distances: Distances,
    pub fitter: Fitter<'p>,
    pub found: Vec<Found>,
    pub list: Vec<Branch>,
    /// The branch of each fit that was found, and the age it was settled at.
    pub homes: Vec<Option<(usize, f64)>>,
}

impl Judge<'_> {
    fn problem(&self) -> &Problem {
        &self.prepared.problem
    }

    /// Follows the fits that were found, each on a branch that is not known yet.
    pub fn follow_found(&mut self, options: &PathOptions, most: usize, callback: &Callback) -> Result<()> {
        let ages = Ages(&self.prepared.problem);
        for k in 0..self.found.len() {
            let Found { sigma, theta, name } = self.found[k].clone();
            let sigma = ages.scale(sigma);
            let (low, high) = options.ages;
            let cut = ages.cut_of_efficiency(SEARCH_EFFICIENCY, sigma);
            let age = ages.at(cut, sigma).clamp(low, high);
            let rows = vec![1.0; self.problem().rows()];
            let Some(theta) = self.fitter.settle(theta, age, &rows, SETTLE_STEPS) else {
                self.homes.push(None);
                continue;
            };
            let known = (0..self.list.len()).find(|&b| self.is_on(b, &theta, age, sigma));
            let home = match known {
                Some(b) => Some(b),
                None if self.list.len() < most => self.follow_new(options, (name, &theta), age, callback)?,
                None => None,
            };
            self.homes.push(home.map(|b| (b, age)));
        }
        Ok(())
    }

    fn follow_new(
        &mut self,
        options: &PathOptions,
        (name, theta): (&str, &[f64]),
        age: f64,
        callback: &Callback,
    ) -> Result<Option<usize>> {
        match branch::through(&self.prepared.problem, options, theta, age, callback) {
            Ok(path) => {
                let same = self.list.iter().filter(|b| b.name.starts_with(name)).count();
                let name = if same > 0 { format!("{name} {}", same + 1) } else { name.to_owned() };
                self.list.push(Branch { name, path });
                Ok(Some(self.list.len() - 1))
            }
            Err(Error::NoSolution { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Whether branch `b` has this solution at this age.
    fn is_on(&self, b: usize, theta: &[f64], age: f64, sigma: f64) -> bool {
        let problem = self.problem();
        let Ok(point) = self.list[b].path.at(problem, age) else { return false };
        let (here, there) = (problem.predict(theta), problem.predict(&point.theta(problem)));
        let apart: f64 = here.iter().zip(&there).map(|(a, b)| (a - b).abs()).sum();
        apart < SAME * sigma * here.len() as f64
    }

    pub fn choose(&mut self) -> Result<(usize, Choice)> {
        let ordinary = match self.ordinary() {
            Some(candidate) => candidate,
            None => return self.largest(),
        };
        let (n, parameters) = (self.problem().rows(), self.problem().parameters());
        match n < FEW_ROWS || n < FEW_ROWS_PER_PARAMETER * parameters {
            true => self.choose_by_scale(ordinary),
            false => self.choose_by_folds(ordinary),
        }
    }

    /// The fit that trusts every row.
    fn ordinary(&mut self) -> Option<Candidate> {
        let (zero, ones) = (vec![0.0; self.problem().parameters()], vec![1.0; self.problem().rows()]);
        let theta = self.fitter.weighted(&zero, &ones)?;
        let point = Point::ordinary(&self.prepared.problem, self.list[0].path.ages.1, &theta);
        Some(Candidate { branch: None, point, theta })
    }

    /// Without an ordinary fit (nothing bounds it), the largest age that has a solution.
    fn largest(&self) -> Result<(usize, Choice)> {
        let path = &self.list[0].path;
        let mut ages: Vec<f64> = path.knots.iter().map(|k| k.age).collect();
        ages.sort_unstable_by(|a, b| b.total_cmp(a));
        let point = ages.iter().find_map(|&age| path.at(self.problem(), age).ok());
        let point = point.map_or_else(|| path.at(self.problem(), path.ages.1), Ok)?;
        let theta = point.theta(self.problem());
        let candidate = Candidate { branch: Some(0), point, theta };
        let why = "there is no ordinary fit: nothing bounds it; the largest age is kept".into();
        self.finish(candidate, (why, false), None)
    }

    fn at(&self, branch: usize, age: f64) -> Option<Candidate> {
        let path = &self.list[branch].path;
        if !(path.ages.0..=path.ages.1).contains(&age) {
            return None;
        }
        let point = path.at(self.problem(), age).ok()?;
        let theta = point.theta(self.problem());
        (!is_degenerate(self.problem(), &point)).then_some(Candidate { branch: Some(branch), point, theta })
    }

    /// Few rows: the branch with the smallest scale of the central rows, at the age of the search.
    fn choose_by_scale(&mut self, ordinary: Candidate) -> Result<(usize, Choice)> {
        let first = self.found.iter().zip(&self.homes).find_map(|(f, home)| home.map(|h| (f.sigma, h)));
        let candidate = first.and_then(|(sigma, (b, age))| self.at(b, age).map(|c| (sigma, c)));
        let Some((sigma, candidate)) = candidate else {
            let why = "no branch has a solution that enough rows carry: the ordinary fit is kept".into();
            return self.finish(ordinary, (why, false), None);
        };
        let residuals = self.fitter.residuals(&candidate.theta);
        let stick = Yardstick::with_sigma(&residuals, sigma);
        let plain = self.yardstick(&ordinary);
        if !stick.evidence && !plain.evidence {
            return self.finish(ordinary, (NO_EVIDENCE.into(), true), None);
        }
        let why = match sigma > 0.0 {
            true => format!(
                "the smallest robust scale of the rows in the middle of X ({} central of {})",
                self.distances.central().iter().sum::<f64>(),
                residuals.len()
            ),
            false => "half of the rows are fitted exactly: every other row stands out".into(),
        };
        self.finish(candidate, (why, true), None)
    }

    /// Many rows: the smallest capped error on held-out neighbours.
    fn choose_by_folds(&mut self, ordinary: Candidate) -> Result<(usize, Choice)> {
        let mut candidates = vec![ordinary];
        for b in 0..self.list.len() {
            candidates.extend(self.ages_of(b).into_iter().filter_map(|age| self.at(b, age)));
        }
        let Jury { problem: jury, distances } = &self.jury;
        let scores = judge_by_folds(jury, &candidates, &grouped_folds(distances, jury.rows()));
        let counts = &jury.counts;
        let judged = || scores.iter().enumerate().filter_map(|(k, s)| s.as_ref().map(|s| (k, s)));
        let best = judged().reduce(|a, b| if b.1.mean < a.1.mean { b } else { a });
        let Some((best, score)) = best else {
            let why = "held-out rows could judge no candidate: the ordinary fit is kept".into();
            return self.finish(candidates.swap_remove(0), (why, false), None);
        };
        let plain = scores[0].as_ref();
        let (gap, error) = plain.map_or((f64::INFINITY, 0.0), |plain| score.advantage_over(plain, counts));
        let kept = if gap <= MARGIN * error { 0 } else { best };
        let why = match (kept, best) {
            (0, 0) => "no age predicts held-out rows better than the ordinary fit, which is kept".into(),
            (0, _) => NO_EVIDENCE.into(),
            _ => format!("the smallest error on held-out neighbours, {FOLDS} folds"),
        };
        let selection = self.selection(&candidates, &scores, kept);
        self.finish(candidates.swap_remove(kept), (why, true), selection)
    }

    /// The ages that are tried on a branch.
    fn ages_of(&self, b: usize) -> Vec<f64> {
        let ages = Ages(self.problem());
        let scales = self.found.iter().zip(&self.homes).filter(|(_, home)| home.is_some_and(|(h, _)| h == b));
        let mut sigma = scales.map(|(f, _)| f.sigma).fold(f64::INFINITY, f64::min);
        if b == 0 && sigma.is_infinite() {
            sigma = self.found.iter().map(|f| f.sigma).fold(f64::INFINITY, f64::min);
        }
        let mut out = Vec::new();
        if sigma.is_finite() {
            out.extend(CUTS.iter().map(|c| ages.at(*c, ages.scale(sigma))));
        }
        if b == 0 {
            let (low, high) = self.list[0].path.ages;
            let step = (high / low).ln() / SPACED as f64;
            out.extend((0..SPACED).map(|k| high * (-step * k as f64).exp()));
        }
        out
    }

    /// The curve of the chosen branch, as a selection by held-out rows.
    fn selection(&self, candidates: &[Candidate], scores: &[Option<Score>], kept: usize) -> Option<Selection> {
        let unit = self.prepared.scaling.y_scale;
        let counts = &self.jury.problem.counts;
        let entry = |k: usize| {
            let score = scores[k].as_ref()?;
            let age = candidates[k].point.age;
            Some(select::Candidate {
                age,
                score: unit * score.mean,
                standard_error: unit * score.standard_error(counts),
            })
        };
        let chosen = entry(kept)?;
        let branch = candidates[kept].branch.unwrap_or(0);
        let mut curve: Vec<select::Candidate> =
            (1..candidates.len()).filter(|&k| candidates[k].branch == Some(branch)).filter_map(entry).collect();
        curve.sort_unstable_by(|a, b| a.age.total_cmp(&b.age));
        Some(Selection {
            metric: CAPPED.into(),
            folds: Some(FOLDS),
            curve,
            ordinary: scores[0].as_ref().map(|s| unit * s.mean),
            ..plain_selection(chosen)
        })
    }

    /// The scale that residuals of a candidate are measured with: that of the central rows or of all, whichever is smaller.
    fn yardstick(&self, candidate: &Candidate) -> Yardstick {
        let residuals = self.fitter.residuals(&candidate.theta);
        let parameters = self.problem().parameters();
        let counts = &self.problem().counts;
        let central: Vec<f64> = self.distances.central().iter().zip(counts).map(|(m, n)| m * n).collect();
        let sigma = m_scale(&residuals, counts, parameters).min(m_scale(&residuals, &central, parameters));
        Yardstick::with_sigma(&residuals, sigma)
    }

    fn finish(
        &self,
        candidate: Candidate,
        (why, judged): (String, bool),
        selection: Option<Selection>,
    ) -> Result<(usize, Choice)> {
        let chosen = candidate.branch.unwrap_or(0);
        let stick = self.yardstick(&candidate);
        let unit = self.prepared.scaling.y_scale;
        let selection = selection.unwrap_or_else(|| {
            plain_selection(select::Candidate {
                age: candidate.point.age,
                score: unit * stick.sigma,
                standard_error: 0.0,
            })
        });
        let reasons = Reasons {
            branch: self.list[chosen].name.clone(),
            why,
            ordinary: candidate.branch.is_none(),
            judged,
            alternatives: self.alternatives(chosen, &candidate, &stick),
        };
        let path = &self.list[chosen].path;
        Ok((chosen, Choice::new(self.prepared, path, (candidate.point, selection), reasons, (&self.distances, stick))))
    }

    /// Other branches at the chosen age that disagree about more than a few rows, in words.
    fn alternatives(&self, chosen: usize, candidate: &Candidate, stick: &Yardstick) -> Vec<String> {
        let problem = self.problem();
        let flagged = |theta: &[f64]| -> Vec<bool> {
            self.fitter.residuals(theta).iter().map(|&r| stick.score(r) > 1.0).collect()
        };
        let ours = flagged(&candidate.theta);
        let few = (ALTERNATIVE_SHARE * ours.len() as f64).max(ALTERNATIVE_ROWS);
        let others = self.list.iter().enumerate().filter(|(b, _)| *b != chosen);
        let differ = others.filter_map(|(_, branch)| {
            let point = branch.path.at(problem, candidate.point.age).ok()?;
            let theirs = flagged(&point.theta(problem));
            let apart = ours.iter().zip(&theirs).filter(|(a, b)| a != b).count();
            let text = format!("branch \"{}\" at age {} flags {apart} rows otherwise", branch.name, short(point.age));
            (apart as f64 > few).then_some(text)
        });
        differ.collect()
    }
}

/// Branches that disagree on more rows than this, and on more than this share, are two explanations.
const ALTERNATIVE_ROWS: f64 = 3.0;
const ALTERNATIVE_SHARE: f64 = 0.05;

/// Fits over all rows that a found fit is settled with.
const SETTLE_STEPS: usize = 100;

const NO_EVIDENCE: &str = "no evidence of bad rows: the ordinary fit is kept";

/// A choice that is not made from a curve.
pub(crate) fn plain_selection(at: select::Candidate) -> Selection {
    Selection {
        age: at.age,
        score: at.score,
        standard_error: at.standard_error,
        rule: Rule::Min,
        metric: SCALE.into(),
        higher_is_better: false,
        folds: None,
        min: at,
        one_se: at,
        gap: 0.0,
        curve: vec![at],
        unsolved: Vec::new(),
        degenerate: Vec::new(),
        ordinary: None,
    }
}
