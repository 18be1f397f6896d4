//! `path.json`: the path, and enough about the problem to check it against the data.

use crate::dataset::{DataError, Encoding, Injected, Scaling};
use crate::error::{Breakdown, Error};
use crate::judge::Branch;
use crate::loss::LossParameters;
use crate::model::Model;
use crate::pacing::PacingSpec;
use crate::path::{Cause, Certificate, Direction, End, Event, Gap, Kind, Knot, NO_LOSS, PINNED, Path, Work};
use crate::penalty::Penalty;
use crate::prepare::Prepared;
use crate::problem::Spec;
use crate::space::Kernel;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The first field of the file.
pub(super) const FORMAT: &str = "agepath.path/1";

/// The names of a coefficient's two states.
const STATES: &[&str] = &["zero", "active"];

/// The problem, in the words of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProblemRecord {
    /// Registry name of the model.
    pub model: String,
    /// Registry name of the loss.
    pub loss: String,
    /// The pacing and its parameters.
    pub pacing: PacingSpec,
    /// The penalty and its parameters.
    pub penalty: Penalty,
    /// The loss factor, where the loss has one.
    pub c: Option<f64>,
    /// Every number a loss may take; each loss reads its own.
    #[serde(default)]
    pub loss_parameters: LossParameters,
    /// The kernel; none in linear space.
    pub kernel: Option<Kernel>,
    /// Whether the model has an intercept.
    pub intercept: bool,
    /// Training rows.
    pub n: usize,
    /// Features.
    pub d: usize,
    /// Names of the features.
    pub features: Vec<String>,
    /// How the columns of the file became features, unless they are numbers as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Name of the target.
    pub target: String,
    /// The class names in the order −1, +1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<[String; 2]>,
    /// What was subtracted from each column.
    pub x_mean: Option<Vec<f64>>,
    /// What each column was divided by.
    pub x_scale: Option<Vec<f64>>,
    /// What was subtracted from the target.
    pub y_shift: f64,
    /// What the target was divided by.
    pub y_scale: f64,
    /// Row numbers of the training rows in the file, in the order used.
    pub rows: Vec<usize>,
    /// The targets as the solver saw them, when noise was injected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<Vec<f64>>,
    /// Sample weights, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
}

impl ProblemRecord {
    fn new(prepared: &Prepared) -> ProblemRecord {
        let (problem, train, scaling) = (&prepared.problem, &prepared.train, &prepared.scaling);
        ProblemRecord {
            model: prepared.model.name.into(),
            loss: problem.loss().name().into(),
            pacing: prepared.spec.pacing.clone(),
            penalty: prepared.spec.penalty,
            c: problem.loss().c(),
            loss_parameters: prepared.spec.loss_parameters.clone(),
            kernel: problem.kernel(),
            intercept: problem.has_intercept(),
            n: problem.rows(),
            d: problem.features(),
            features: train.features().to_vec(),
            encoding: (!prepared.encoding.is_plain()).then(|| prepared.encoding.clone()),
            target: train.target_name().into(),
            classes: train.classes().cloned(),
            x_mean: scaling.x_mean.clone(),
            x_scale: scaling.x_scale.clone(),
            y_shift: scaling.y_shift,
            y_scale: scaling.y_scale,
            rows: train.rows().to_vec(),
            y: prepared.noise.as_ref().map(|_| problem.target().to_vec()),
            weights: train.weights().map(<[f64]>::to_vec),
        }
    }

    /// The units the solver saw.
    pub fn scaling(&self) -> Scaling {
        Scaling {
            x_mean: self.x_mean.clone(),
            x_scale: self.x_scale.clone(),
            y_shift: self.y_shift,
            y_scale: self.y_scale,
        }
    }

    /// What was fitted.
    pub fn spec(&self) -> Result<Spec, Error> {
        let model = Model::by_name(&self.model)?;
        Ok(Spec {
            loss: model.loss,
            // A loss without a factor ignores it.
            loss_parameters: self.loss_parameters.clone().with_factor(self.c.unwrap_or(1.0)),
            pacing: self.pacing.clone(),
            penalty: self.penalty,
            scale: model.scale,
            kernel: self.kernel,
        })
    }
}

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFile {
    format: Cow<'static, str>,
    /// What was solved.
    pub problem: ProblemRecord,
    /// Noise that was injected into the training rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Injected>,
    ages: (f64, f64),
    direction: Direction,
    knots: Vec<KnotRecord>,
    events: Vec<EventRecord>,
    #[serde(default)]
    gaps: Vec<Gap>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    certificate: Certificate,
    work: Work,
    end: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_detail: Option<EndDetail>,
    /// The branches that were not chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    branches: Vec<BranchRecord>,
}

/// A branch that was not chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BranchRecord {
    name: String,
    ages: (f64, f64),
    direction: Direction,
    knots: Vec<KnotRecord>,
    events: Vec<EventRecord>,
    certificate: Certificate,
    work: Work,
    end: String,
}

impl BranchRecord {
    fn new(branch: &Branch, in_kernel_space: bool) -> BranchRecord {
        let path = &branch.path;
        BranchRecord {
            name: branch.name.clone(),
            ages: path.ages,
            direction: path.direction,
            knots: path.knots.iter().map(|k| KnotRecord::new(k, in_kernel_space)).collect(),
            events: path.events.iter().map(EventRecord::new).collect(),
            certificate: path.certificate,
            work: path.work,
            end: path.end.to_string(),
        }
    }
}

/// A solution: `coef` in linear space; in kernel space `dual`, the pairs (i, β_i) with β_i ≠ 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct KnotRecord {
    age: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    coef: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dual: Option<Vec<(usize, f64)>>,
    intercept: f64,
}

impl KnotRecord {
    fn new(knot: &Knot, in_kernel_space: bool) -> KnotRecord {
        let dual = in_kernel_space.then(|| sparse(&knot.coef));
        let coef = (!in_kernel_space).then(|| knot.coef.clone());
        KnotRecord { age: knot.age, coef, dual, intercept: knot.intercept }
    }

    /// The knot with `size` coefficients.
    fn knot(&self, size: usize) -> Result<Knot, String> {
        let coef = match (&self.coef, &self.dual) {
            (Some(coef), None) => coef.clone(),
            (None, Some(dual)) => {
                let mut coef = vec![0.0; size];
                for &(i, beta) in dual {
                    *coef.get_mut(i).ok_or_else(|| format!("dual coefficient {i} for {size} rows"))? = beta;
                }
                coef
            }
            _ => return Err(format!("the knot at age {} needs either coef or dual", self.age)),
        };
        match coef.len() == size {
            true => Ok(Knot { age: self.age, coef, intercept: self.intercept }),
            false => Err(format!("{} coefficients where {size} are expected", coef.len())),
        }
    }
}

/// The pairs (i, β_i) with β_i ≠ 0.
pub fn sparse(dual: &[f64]) -> Vec<(usize, f64)> {
    dual.iter().copied().enumerate().filter(|(_, beta)| *beta != 0.0).collect()
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct EventRecord {
    age: f64,
    kind: Kind,
    cause: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drop: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct EndDetail {
    age: f64,
    reason: Breakdown,
}

impl PathFile {
    /// The file of a run.
    pub fn new(prepared: &Prepared, path: &Path) -> PathFile {
        PathFile {
            format: FORMAT.into(),
            problem: ProblemRecord::new(prepared),
            noise: prepared.noise.clone(),
            ages: path.ages,
            direction: path.direction,
            knots: path.knots.iter().map(|k| KnotRecord::new(k, prepared.problem.kernel().is_some())).collect(),
            events: path.events.iter().map(EventRecord::new).collect(),
            gaps: path.gaps.clone(),
            notes: path.notes.clone(),
            certificate: path.certificate,
            work: path.work,
            end: path.end.to_string(),
            end_detail: match path.end {
                End::Degenerate { age, reason } => Some(EndDetail { age, reason }),
                _ => None,
            },
            branches: Vec::new(),
        }
    }

    /// With the branches that were not chosen.
    pub fn with_branches(self, others: &[&Branch]) -> PathFile {
        let in_kernel_space = self.problem.kernel.is_some();
        let branches = others.iter().map(|branch| BranchRecord::new(branch, in_kernel_space)).collect();
        PathFile { branches, ..self }
    }

    /// From the bytes of `file`.
    pub fn parse(bytes: &[u8], file: &str) -> Result<PathFile, DataError> {
        let wrong = |message: String| DataError::NotPath { file: file.into(), message };
        let parsed: PathFile = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string()))?;
        if parsed.format != FORMAT {
            return Err(wrong(format!("its format is \"{}\", not \"{FORMAT}\"", parsed.format)));
        }
        Ok(parsed)
    }

    /// The path; `file` is what messages call the file.
    pub fn path(&self, file: &str) -> Result<Path, Error> {
        let wrong = |message: String| DataError::NotPath { file: file.into(), message };
        self.check_sizes().and_then(|()| self.check_values()).map_err(wrong)?;
        let size = if self.problem.kernel.is_some() { self.problem.n } else { self.problem.d };
        let mut zones = self.problem.pacing.build()?.zones().to_vec();
        zones.extend([NO_LOSS, PINNED]);
        let events = self.events.iter().map(|e| {
            e.event(&zones)
                .filter(|event| self.is_inside(event))
                .ok_or_else(|| wrong(format!("the event at age {} is not understood", e.age)))
        });
        Ok(Path {
            ages: self.ages,
            direction: self.direction,
            knots: self.knots.iter().map(|k| k.knot(size)).collect::<Result<_, String>>().map_err(wrong)?,
            events: events.collect::<Result<_, DataError>>()?,
            gaps: self.gaps.clone(),
            notes: self.notes.clone(),
            certificate: self.certificate,
            work: self.work,
            end: self.end().ok_or_else(|| wrong(format!("its end \"{}\" is not understood", self.end)))?,
        })
    }

    /// Every vector has an entry per feature or row; a file edited by hand may not.
    fn check_sizes(&self) -> Result<(), String> {
        let ProblemRecord { n, d, features, x_mean, x_scale, rows, y, weights, .. } = &self.problem;
        let differs = |what: &str, found: usize, expected: usize| match found == expected {
            true => Ok(()),
            false => Err(format!("{found} {what} where {expected} are expected")),
        };
        differs("feature names", features.len(), *d)?;
        for units in [x_mean, x_scale].into_iter().flatten() {
            differs("column units", units.len(), *d)?;
        }
        differs("row numbers", rows.len(), *n)?;
        for list in [y, weights].into_iter().flatten() {
            differs("targets or weights", list.len(), *n)?;
        }
        Ok(())
    }

    /// Ages and units are such that a path can be read from them.
    fn check_values(&self) -> Result<(), String> {
        let ProblemRecord { model, loss, x_mean, x_scale, y_shift, y_scale, .. } = &self.problem;
        let positive = |v: f64| v.is_finite() && v > 0.0;
        let units = x_scale.iter().flatten().all(|&v| positive(v)) && x_mean.iter().flatten().all(|v| v.is_finite());
        if !units || !y_shift.is_finite() || !positive(*y_scale) {
            return Err("its units are not positive numbers".into());
        }
        if Model::by_name(model).is_ok_and(|known| known.loss != loss) {
            return Err(format!("the model {model} does not have the {loss} loss"));
        }
        let (low, high) = self.ages;
        if !positive(low) || !positive(high) || low > high {
            return Err(format!("{low} to {high} are not the ages of a path"));
        }
        let forward = |a: f64, b: f64| if self.direction == Direction::Down { a >= b } else { a <= b };
        let ordered = self.knots.windows(2).all(|pair| forward(pair[0].age, pair[1].age));
        let inside = self.knots.iter().all(|k| positive(k.age) && k.intercept.is_finite());
        match ordered && inside && !self.knots.is_empty() {
            true => Ok(()),
            false => Err("it has no knots, or their ages are not in order".into()),
        }
    }

    fn is_inside(&self, event: &Event) -> bool {
        match event.cause {
            Cause::Sample { index, .. } => index < self.problem.n,
            Cause::Feature { index, .. } => index < self.problem.d,
            Cause::Fold => true,
        }
    }

    fn end(&self) -> Option<End> {
        if let Some(EndDetail { age, reason }) = self.end_detail {
            return Some(End::Degenerate { age, reason });
        }
        let plain = [End::Complete, End::Gaps, End::EventLimit, End::TimeLimit, End::Interrupted];
        plain.into_iter().find(|end| end.to_string() == self.end)
    }
}

impl EventRecord {
    fn new(event: &Event) -> EventRecord {
        let (cause, index, states) = match event.cause {
            Cause::Sample { index, from, to } => ("sample", Some(index), Some((from, to))),
            Cause::Feature { index, from, to } => ("feature", Some(index), Some((from, to))),
            Cause::Fold => ("fold", None, None),
        };
        let jump = event.kind == Kind::Jump;
        EventRecord {
            age: event.age,
            kind: event.kind,
            cause: cause.into(),
            index,
            from: states.map(|(from, _)| from.into()),
            to: states.map(|(_, to)| to.into()),
            size: jump.then_some(event.size),
            drop: jump.then_some(event.drop),
        }
    }

    /// The event, its names looked up among the pacing's zones and the states of a coefficient.
    fn event(&self, zones: &[&'static str]) -> Option<Event> {
        let find = |list: &[&'static str], name: &Option<Cow<'static, str>>| {
            let name = name.as_deref()?;
            list.iter().copied().find(|known| *known == name)
        };
        let cause = match self.cause.as_ref() {
            "sample" => {
                Cause::Sample { index: self.index?, from: find(zones, &self.from)?, to: find(zones, &self.to)? }
            }
            "feature" => {
                Cause::Feature { index: self.index?, from: find(STATES, &self.from)?, to: find(STATES, &self.to)? }
            }
            "fold" => Cause::Fold,
            _ => return None,
        };
        Some(Event {
            age: self.age,
            kind: self.kind,
            cause,
            size: self.size.unwrap_or(0.0),
            drop: self.drop.unwrap_or(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{ReadOptions, builtin};
    use crate::prepare::{PrepareOptions, prepare};

    fn path(end: End) -> Path {
        let event = |age, kind, cause, size| Event { age, kind, cause, size, drop: size / 2.0 };
        let (from, to) = ("E", "D");
        Path {
            ages: (0.1, 1.0 / 3.0),
            direction: Direction::Down,
            knots: vec![Knot { age: 0.1, coef: [vec![1.0 / 3.0, -0.0], vec![2.5; 8]].concat(), intercept: 1e-300 }],
            events: vec![
                event(0.3, Kind::Turning, Cause::Sample { index: 7, from, to }, 0.0),
                event(0.2, Kind::Turning, Cause::Feature { index: 1, from: "zero", to: "active" }, 0.0),
                event(0.15, Kind::Jump, Cause::Fold, 0.25),
            ],
            gaps: vec![Gap { from: 0.2, to: 0.19, residual: 1e-7 }],
            notes: Vec::new(),
            certificate: Certificate::default(),
            work: Work::default(),
            end,
        }
    }

    #[test]
    fn the_file_reads_back_as_the_same_path() {
        let table = builtin("diabetes", &ReadOptions::default()).unwrap();
        let options = PrepareOptions { noise: Some("outliers:0.3".parse().unwrap()), ..PrepareOptions::default() };
        let prepared = prepare(&table, &options).unwrap();
        let stalled = End::Degenerate { age: 0.2, reason: Breakdown::Newton { residual: 1e-3 } };
        for end in [End::Complete, End::Gaps, End::Interrupted, stalled] {
            let written = PathFile::new(&prepared, &path(end));
            let text = serde_json::to_vec(&written).unwrap();
            let read = PathFile::parse(&text, "path.json").unwrap();
            assert_eq!(read, written);
            let back = read.path("path.json").unwrap();
            assert_eq!((&back.events, &back.gaps), (&path(end).events, &path(end).gaps));
            assert_eq!(back.knots, path(end).knots);
            assert_eq!(back.gaps, path(end).gaps);
            assert_eq!(back.end, end);
            assert_eq!(read.problem.spec().unwrap(), prepared.spec);
            assert_eq!(read.problem.y.as_deref(), Some(prepared.problem.target()));
        }
    }

    #[test]
    fn the_words_of_the_file_are_the_promised_ones() {
        let table = builtin("diabetes", &ReadOptions::default()).unwrap();
        let prepared = prepare(&table, &PrepareOptions::default()).unwrap();
        let value = serde_json::to_value(PathFile::new(&prepared, &path(End::Complete))).unwrap();
        assert_eq!(value["format"], "agepath.path/1");
        assert_eq!(value["problem"]["pacing"]["kind"], "linear");
        assert_eq!(value["problem"]["penalty"]["kind"], "l1");
        assert_eq!(value["problem"]["penalty"]["alpha"], 0.005);
        assert!(value["problem"]["c"].is_null() && value["problem"]["kernel"].is_null());
        assert!(value["problem"].get("y").is_none() && value.get("noise").is_none());
        let sample =
            serde_json::json!({"age": 0.3, "kind": "turning", "cause": "sample", "index": 7, "from": "E", "to": "D"});
        assert_eq!(value["events"][0], sample);
        let fold = serde_json::json!({"age": 0.15, "kind": "jump", "cause": "fold", "size": 0.25, "drop": 0.125});
        assert_eq!(value["events"][2], fold);
        assert_eq!(value["end"], "complete");
        assert_eq!(value["direction"], "down");
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "{}", "[1, 2]", "not json"] {
            let error = PathFile::parse(text.as_bytes(), "x/path.json").unwrap_err();
            assert!(matches!(error, DataError::NotPath { .. }), "{error}");
        }
    }

    #[test]
    fn edited_files_are_refused_instead_of_trusted() {
        let table = builtin("diabetes", &ReadOptions::default()).unwrap();
        let prepared = prepare(&table, &PrepareOptions::default()).unwrap();
        let good = PathFile::new(&prepared, &path(End::Complete));
        assert!(good.path("path.json").is_ok());
        let mut short = good.clone();
        short.knots[0].coef.as_mut().unwrap().pop();
        let mut far = good.clone();
        far.events[0].index = Some(1_000_000);
        let mut odd = good.clone();
        odd.end = "tired".into();
        for (bad, word) in [(short, "9 coefficients"), (far, "event"), (odd, "tired")] {
            let message = bad.path("path.json").unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }
}
