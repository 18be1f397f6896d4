//! What a robust statistician would choose: several branches of the path, and the choice among their ages and the ordinary fit.
//!
//! The path that comes down from infinite age starts at the ordinary fit; where bad rows lie far out in X it is on the wrong branch at
//! every age. So fits that leverage cannot break are sought first (`search`), each is followed as an exact branch of its own
//! (`branch`), and the choice is made among exact solutions on all of them (`choose`). No row is set aside: every row is judged.

mod branch;
mod choose;
mod deputies;
mod distance;
mod fit;
mod flags;
mod groups;
mod rule;
mod scale;
mod search;
mod starts;
mod strength;

pub use branch::{Branch, Callback};
pub(crate) use distance::Distances;
pub(crate) use flags::BEYOND_FLAG;
pub use flags::{FLAG, Yardstick};
pub(crate) use rule::plain_selection;
pub(crate) use scale::{efficiency, normal_quantile};
pub use strength::tuned;

use crate::dataset::{DEFAULT_FOLDS, Folds, max_folds};
use crate::decide::{Choice, DecideOptions, decide, follow};
use crate::error::{Error, Result};
use crate::loss::TargetKind;
use crate::path::{Direction, Path, PathOptions};
use crate::prepare::{Prepared, default_ages, round_down};
use crate::problem::Problem;
use deputies::Deputies;
use fit::Fitter;
use rule::{Judge, Jury};
use search::{Ages, Found, search_all};
use std::time::{Duration, Instant};

/// What a choice by folds of neighbours goes by.
pub const CAPPED: &str = "capped-mae";
/// What a choice without held-out rows goes by.
pub const SCALE: &str = "scale";

/// Which branches a study follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Branches {
    /// The one that comes down and at most three others.
    #[default]
    Auto,
    /// The one that comes down from infinite age.
    Down,
    /// The one that goes up from the smallest age.
    Up,
    /// At most so many.
    Count(usize),
}

impl Branches {
    fn most(self) -> usize {
        match self {
            Branches::Auto => 4,
            Branches::Down | Branches::Up => 1,
            Branches::Count(count) => count.max(1),
        }
    }
}

impl std::str::FromStr for Branches {
    type Err = Error;

    fn from_str(text: &str) -> Result<Branches> {
        match text {
            "auto" => Ok(Branches::Auto),
            "down" => Ok(Branches::Down),
            "up" => Ok(Branches::Up),
            _ => match text.parse() {
                Ok(count) if count > 0 => Ok(Branches::Count(count)),
                _ => Err(Error::Option {
                    name: "branches",
                    value: text.into(),
                    expected: "auto, down, up, or how many at most".into(),
                }),
            },
        }
    }
}

/// Below this many rows folds say less than the scale of the central rows.
const FEW_ROWS: usize = 100;
/// Cut-offs that are tried on every branch, in scales.
const CUTS: [f64; 8] = [1.6, 2.0, 2.4, 2.822, 3.673, 5.0, 7.0, 10.0];
/// The interval of ages begins at this share of the smallest age that is tried.
const ROOM_BELOW: f64 = 0.8;

/// Several branches and what was chosen among them.
#[derive(Debug)]
pub struct Study {
    /// The branches; the first is the one that the options of the path ask for.
    pub branches: Vec<Branch>,
    /// The chosen one.
    pub chosen: usize,
    /// The choice.
    pub choice: Choice,
    /// The options that the paths were computed with.
    pub options: PathOptions,
}

impl Study {
    /// The chosen branch.
    pub fn path(&self) -> &Path {
        &self.branches[self.chosen].path
    }
}

/// What a study is asked for.
#[derive(Debug, Clone, Default)]
pub struct StudyOptions {
    /// The interval of ages. Default: from the data.
    pub ages: Option<(f64, f64)>,
    /// Which branches are followed. Default: [`Branches::Auto`].
    pub branches: Branches,
    /// Held-out rows choose, if these options or the prepared rows name any.
    pub decide: DecideOptions,
    /// Nothing is chosen: the ordinary fit is kept. Default: no.
    pub unchosen: bool,
}

/// Follows one branch or several and chooses among their ages and the ordinary fit. Held-out rows choose where they were asked to; else a
/// regression is judged by all of its rows, and anything else by folds. `announce` is told the interval if it comes from the data.
pub fn study(
    prepared: &Prepared,
    path: &PathOptions,
    options: &StudyOptions,
    announce: &mut dyn FnMut((f64, f64)),
    callback: &Callback,
) -> Result<Study> {
    let by_rows = prepared.validation.is_some() || options.decide.is_about_rows();
    let path = match options.branches {
        Branches::Down => PathOptions { direction: Direction::Down, ..path.clone() },
        Branches::Up => PathOptions { direction: Direction::Up, ..path.clone() },
        _ => path.clone(),
    };
    if !by_rows && !options.unchosen && can_study(prepared) {
        return study_branches(prepared, &path, (options.ages, options.branches), announce, callback);
    }
    let (base, path) = follow(&prepared.problem, &path, options.ages, announce, &mut |p| callback(p))?;
    let mut decide_options = options.decide.clone();
    if prepared.validation.is_none() && decide_options.folds.is_none() && !options.unchosen {
        let count = DEFAULT_FOLDS.min(max_folds(&prepared.train));
        decide_options.folds = (count > 1).then_some(Folds::Count(count));
    }
    let choice = decide(prepared, &base, &path, &decide_options, callback)?;
    let name = base.direction.name().into();
    Ok(Study { branches: vec![Branch { name, path: base }], chosen: 0, choice, options: path })
}

/// Whether a study can be made of a problem: numbers, squared errors, one coefficient per feature.
fn can_study(prepared: &Prepared) -> bool {
    let problem = &prepared.problem;
    problem.products.is_none() && problem.loss().target() == TargetKind::Real && prepared.spec.loss == "squared"
}

/// Follows the branches of a problem and chooses among them.
fn study_branches(
    prepared: &Prepared,
    options: &PathOptions,
    (ages, branches): (Option<(f64, f64)>, Branches),
    announce: &mut dyn FnMut((f64, f64)),
    callback: &Callback,
) -> Result<Study> {
    let begun = Instant::now();
    let problem = &prepared.problem;
    let deputies = Deputies::of(prepared, options.seed)?;
    let jury = match &deputies {
        Some(some) => Jury { problem: &some.problem, distances: Distances::new(&some.train) },
        None => Jury { problem, distances: Distances::new(&prepared.train) },
    };
    let searched = match branches {
        Branches::Down | Branches::Up => Vec::new(),
        _ => search_all(&mut Fitter::new(jury.problem), jury.problem, &jury.distances, options.seed),
    };
    let found: Vec<Found> = searched.iter().flatten().cloned().collect();
    let interval = match ages {
        Some(ages) => ages,
        None => interval_for(problem, &found)?,
    };
    if ages.is_none() {
        announce(interval);
    }
    let (base, options) = match follow(problem, options, Some(interval), &mut |_| (), &mut |p| callback(p)) {
        // Where the path breaks off above, `follow` knows what to do when it may choose the interval.
        Err(Error::NoSolution { .. }) if ages.is_none() => {
            follow(problem, options, None, announce, &mut |p| callback(p))?
        }
        other => other?,
    };
    let distances = match &deputies {
        Some(_) => jury.distances.of(&prepared.train),
        None => jury.distances.clone(),
    };
    let fitter = Fitter::new(problem);
    let mut judge = Judge { prepared, jury, distances, fitter, found, list: Vec::new(), homes: Vec::new() };
    judge.list.push(Branch { name: base.direction.name().into(), path: base });
    let left = options.time_limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    // Without time for more there are no more branches.
    let most = if left == Some(Duration::ZERO) { 1 } else { branches.most() };
    judge.follow_found(&PathOptions { time_limit: left, ..options.clone() }, most, callback)?;
    let (chosen, choice) = judge.choose()?;
    Ok(Study { branches: judge.list, chosen, choice, options })
}

/// The default interval, widened to the ages of all fits that were found.
fn interval_for(problem: &Problem, found: &[Found]) -> Result<(f64, f64)> {
    let (low, high) = default_ages(problem)?;
    let ages = Ages(problem);
    let smallest = found.iter().map(|f| ages.at(CUTS[0], ages.scale(f.sigma))).fold(f64::INFINITY, f64::min);
    Ok((low.min(round_down(ROOM_BELOW * smallest.min(high))), high))
}
