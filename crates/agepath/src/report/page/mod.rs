//! `report.html`: one file that shows a run, without a network.
//!
//! The page's own source is in `web/` of this crate; here the data it shows is put together. Every number the page shows
//! at the slider's age is stored exactly (see [`frames`]); the page itself computes nothing but pixels.

mod classes;
mod critical;
mod encode;
pub(in crate::report) mod frames;
mod headline;
mod states;

use super::{Choice, Summary, suspects_csv};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::judge::{CAPPED, SCALE};
use crate::loss::TargetKind;
use crate::path::Path;
use crate::prepare::Prepared;
use crate::select::{Holdout, Metric, Rule};
use crate::suspects;
pub(in crate::report) use critical::{Histogram, KINDS};
use encode::Packed;
use frames::{Frame, Frames};
use serde::Serialize;
use states::{Rows, States};
use std::collections::HashMap;

/// In kernel space there are as many coefficients as rows; the decision values of this many rows are shown instead.
const TRACED: usize = 24;

/// A run, ready to be shown.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// Data and problem.
    pub prepared: &'a Prepared,
    /// The path.
    pub path: &'a Path,
    /// The chosen age and what follows from it.
    pub choice: Option<&'a Choice>,
    /// The figures printed at the end.
    pub summary: &'a Summary,
    /// What was typed to get here, if anything was.
    pub command: Option<&'a str>,
    /// Rows that nothing was chosen by; their score is drawn along the path.
    pub test: Option<&'a Dataset>,
}

/// The lines of the first panel.
#[derive(Debug, Serialize)]
struct Traces {
    /// What a line is.
    title: &'static str,
    names: Vec<String>,
    /// Per line, what one of its units is in the user's units.
    units: Vec<f64>,
    /// Frame by frame.
    values: Packed,
    /// Coefficients of the model.
    coefficients: usize,
    /// How many of them are not 0, frame by frame.
    active: Packed,
}

/// The learning curve.
#[derive(Debug, Serialize)]
struct Learning {
    metric: String,
    summary: &'static str,
    higher_is_better: bool,
    /// Who judged.
    judge: String,
    age: Packed,
    score: Packed,
    standard_error: Packed,
    ordinary: Option<f64>,
    /// Scores of the test rows at the stored ages.
    test: Option<Packed>,
}

/// A marked age.
#[derive(Debug, Serialize)]
pub(in crate::report) struct Mark {
    pub age: f64,
    pub label: &'static str,
}

#[derive(Debug, Serialize)]
struct Page<'a> {
    title: String,
    command: Option<&'a str>,
    cards: Vec<headline::Card>,
    facts: Vec<headline::Facts>,
    classes: Option<&'a [String; 2]>,
    target: &'a str,
    ages: Packed,
    marks: Vec<Mark>,
    traces: Traces,
    learning: Option<Learning>,
    states: States,
    critical: critical::Critical,
    suspects: Option<String>,
}

const TEMPLATE: &str = include_str!("../../../web/report.html");
const HEAD: &str = include_str!("../../../web/head.html");
const STYLE: &str = include_str!("../../../web/report.css");
const ECHARTS: &str = include_str!("../../../web/vendor/echarts.common.min.js");
/// One script: later parts use earlier ones.
const SCRIPTS: &[&str] = &[
    include_str!("../../../web/data.js"),
    include_str!("../../../web/axis.js"),
    include_str!("../../../web/charts.js"),
    include_str!("../../../web/table.js"),
    include_str!("../../../web/main.js"),
];

impl Report<'_> {
    /// The page as text.
    pub fn html(&self) -> Result<String> {
        let page = self.page()?;
        let json = serde_json::to_string(&page).expect("numbers and strings always serialise");
        let parts = [
            ("{{head}}", head(&page.title)),
            ("{{data}}", encode::script_safe(&json)),
            ("{{echarts}}", ECHARTS.to_owned()),
            ("{{script}}", SCRIPTS.concat()),
        ];
        Ok(fill(TEMPLATE, &parts))
    }

    /// The stored solutions of this run; `order` as of [`Report::order`].
    pub(in crate::report) fn frames(&self, order: &[usize]) -> Result<Frames> {
        let wanted: Vec<f64> = self.marks().iter().map(|m| m.age).collect();
        Frames::choose(&self.prepared.problem, self.path, &wanted, &traced(order))
    }

    fn page(&self) -> Result<Page<'_>> {
        let (prepared, path) = (self.prepared, self.path);
        let train = &prepared.train;
        let order = self.order();
        let frames = self.frames(&order)?;
        let predict = |z: f64| match train.kind() {
            TargetKind::Real => prepared.scaling.predict(prepared.problem.loss().response(z)),
            TargetKind::Sign => z,
        };
        let rows = Rows { order: &order, number: train.rows(), target: train.y(), predict: &predict };
        Ok(Page {
            title: format!("{} · age-path of {}", self.summary.data, self.summary.target),
            command: self.command,
            cards: headline::cards(self),
            facts: headline::facts(self, frames.list.len(), frames.deviation),
            classes: train.classes(),
            target: train.target_name(),
            ages: Packed::f64(frames.list.iter().map(|f| f.age)),
            marks: self.marks(),
            traces: self.traces(&frames, &order),
            learning: self.learning(&frames)?,
            states: States::new(&prepared.problem, &frames.list, &rows),
            critical: critical::Critical::new(path, train.rows(), train.features()),
            suspects: self.choice.map(|c| suspects_csv(&c.suspects)),
        })
    }

    /// The chosen age, and what the other rule would have chosen.
    pub(in crate::report) fn marks(&self) -> Vec<Mark> {
        let Some(choice) = self.choice else { return Vec::new() };
        let selection = &choice.selection;
        let (other, label) = match selection.rule {
            Rule::Min => (selection.one_se, "1-SE"),
            Rule::OneSe => (selection.min, "best"),
        };
        let chosen = Mark { age: selection.age, label: "chosen" };
        [chosen].into_iter().chain((other.age != selection.age).then_some(Mark { age: other.age, label })).collect()
    }

    /// Indices of the training rows, most suspicious first; without a chosen age, the last to be trusted first.
    pub(in crate::report) fn order(&self) -> Vec<usize> {
        let problem = &self.prepared.problem;
        let rows = self.prepared.train.rows();
        match self.choice {
            Some(choice) => {
                let index: HashMap<usize, usize> = rows.iter().enumerate().map(|(i, &row)| (row, i)).collect();
                choice.suspects.iter().filter_map(|s| index.get(&s.row).copied()).collect()
            }
            None => {
                let entry = suspects::entry_ages(problem, self.path);
                let mut order: Vec<usize> = (0..problem.rows()).collect();
                order.sort_by(|&a, &b| entry[b].total_cmp(&entry[a]));
                order
            }
        }
    }

    /// What the lines of the first panel are, their names, and one of their units in the user's units.
    pub(in crate::report) fn lines(&self, order: &[usize]) -> (&'static str, Vec<String>, Vec<f64>) {
        let train = &self.prepared.train;
        if self.prepared.problem.kernel().is_some() {
            let rows = traced(order);
            let names = rows.iter().map(|&i| format!("row {}", train.rows()[i])).collect();
            return ("Decision values", names, vec![1.0; rows.len()]);
        }
        let (units, _) = self.prepared.scaling.undo(&vec![1.0; train.features().len()], 0.0);
        ("Coefficients", train.features().to_vec(), units)
    }

    /// The lines of the first panel that are ever other than 0.
    fn traces(&self, frames: &Frames, order: &[usize]) -> Traces {
        let list = &frames.list;
        let (title, names, units) = self.lines(order);
        let coefficients = self.prepared.problem.coefficients();
        let active = |f: &Frame| f.theta[..coefficients].iter().filter(|&&w| w != 0.0).count() as u32;
        let used: Vec<usize> = (0..names.len()).filter(|&j| list.iter().any(|f| f.trace[j] != 0.0)).collect();
        Traces {
            title,
            units: used.iter().map(|&j| units[j]).collect(),
            values: Packed::f64(list.iter().flat_map(|f| used.iter().map(|&j| f.trace[j]))),
            coefficients,
            active: Packed::u32(list.iter().map(active)),
            names: used.into_iter().map(|j| names[j].clone()).collect(),
        }
    }

    fn learning(&self, frames: &Frames) -> Result<Option<Learning>> {
        let Some(choice) = self.choice else { return Ok(None) };
        let selection = &choice.selection;
        // A score of the user's own is in no registry.
        let metric = Metric::choose(Some(&selection.metric), self.prepared.train.kind()).ok();
        Ok(Some(Learning {
            metric: selection.metric.clone(),
            summary: metric.map_or(judge_summary(&selection.metric), |m| m.summary),
            higher_is_better: selection.higher_is_better,
            judge: headline::judge(self.summary),
            age: Packed::f64(selection.curve.iter().map(|c| c.age)),
            score: Packed::f64(selection.curve.iter().map(|c| c.score)),
            standard_error: Packed::f64(selection.curve.iter().map(|c| c.standard_error)),
            ordinary: choice.ordinary_score,
            test: self.test_scores(frames)?.map(Packed::f64),
        }))
    }

    /// The score of the test rows at every stored age, by the metric that chose the age.
    pub(in crate::report) fn test_scores(&self, frames: &Frames) -> Result<Option<Vec<f64>>> {
        let (Some(rows), Some(choice)) = (self.test, self.choice) else { return Ok(None) };
        // What judges without held-out rows is in no registry: then the default metric is drawn.
        let metric = Metric::choose(Some(&choice.selection.metric), rows.kind())
            .or_else(|_| Metric::choose(None, rows.kind()))?;
        let holdout = Holdout::new(&self.prepared.problem, rows, &self.prepared.scaling, metric)?;
        Ok(Some(frames.list.iter().map(|f| holdout.score(&holdout.predict(&f.theta))).collect()))
    }
}

/// What a choice without a metric of the registry went by.
fn judge_summary(metric: &str) -> &'static str {
    match metric {
        CAPPED => "mean absolute error of held-out neighbours, no row counting for more than ten scales",
        SCALE => "robust scale of the residuals",
        _ => "a score of your own",
    }
}

/// Rows whose decision values are traced in kernel space: evenly from the most suspicious to the least.
fn traced(order: &[usize]) -> Vec<usize> {
    states::spread(order.len(), TRACED).into_iter().map(|k| order[k]).collect()
}

/// The beginning of every page, what it may load included.
fn head(title: &str) -> String {
    fill(HEAD, &[("{{title}}", encode::html_safe(title)), ("{{style}}", STYLE.to_owned())])
}

/// Replaces each placeholder once, in the order of the template: what is put in is never looked at again.
fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::with_capacity(template.len() + parts.iter().map(|(_, text)| text.len()).sum::<usize>());
    let mut rest = template;
    for (name, text) in parts {
        if let Some((before, after)) = rest.split_once(name) {
            out.push_str(before);
            out.push_str(text);
            rest = after;
        }
    }
    out + rest
}

#[cfg(test)]
pub(in crate::report) mod tests {
    use super::*;
    use crate::dataset::{ReadOptions, Table, builtin};
    use crate::decide::{DecideOptions, decide};
    use crate::path::{PathOptions, age_path};
    use crate::prepare::{PrepareOptions, prepare};
    use std::ops::ControlFlow;

    /// A whole run.
    pub struct Run {
        pub prepared: Prepared,
        pub path: Path,
        choice: Option<Choice>,
        summary: Summary,
    }

    impl Run {
        pub fn new(table: Table) -> Run {
            let noise = Some("outliers:0.3".parse().unwrap());
            let prepared = prepare(&table, &PrepareOptions { noise, ..PrepareOptions::default() }).unwrap();
            let options = PathOptions { ages: (0.5, 10.0), certify: Some(10), ..PathOptions::default() };
            let go_on = |_: &_| ControlFlow::Continue(());
            let path = age_path(&prepared.problem, &options, &mut |p| go_on(p)).unwrap();
            let choice = Some(decide(&prepared, &path, &options, &DecideOptions::default(), &go_on).unwrap());
            let summary = Summary::new(&prepared, &path, choice.as_ref());
            Run { prepared, path, choice, summary }
        }

        pub fn report(&self) -> Report<'_> {
            let (prepared, path, summary) = (&self.prepared, &self.path, &self.summary);
            let command = Some("agepath path '<x>'");
            Report {
                prepared,
                path,
                choice: self.choice.as_ref(),
                summary,
                command,
                test: prepared.validation.as_ref(),
            }
        }
    }

    /// Real numbers under names that would end a script, an attribute or a template.
    pub fn hostile() -> Table {
        let mut table = builtin("diabetes", &ReadOptions::default()).unwrap();
        for (name, bad) in table.features.iter_mut().zip(["<script>", "</script>", "{{script}}", "'\"&", "\u{2028}"]) {
            *name = bad.into();
        }
        table.file = "<!--".into();
        table
    }

    fn data(page: &str) -> serde_json::Value {
        let start = page.find("id=\"data\">").unwrap() + 10;
        let end = start + page[start..].find("</script>").unwrap();
        serde_json::from_str(&page[start..end]).unwrap()
    }

    #[test]
    fn hostile_names_change_nothing_but_the_names() {
        let run = Run::new(hostile());
        let page = run.report().html().unwrap();
        let tame = Run::new(builtin("diabetes", &ReadOptions::default()).unwrap()).report().html().unwrap();
        for tag in ["<script", "</script", "<!--"] {
            assert_eq!(page.matches(tag).count(), tame.matches(tag).count(), "{tag}");
        }
        let names: Vec<String> = serde_json::from_value(data(&page)["traces"]["names"].clone()).unwrap();
        assert!(["<script>", "</script>", "{{script}}", "\u{2028}"].iter().all(|n| names.iter().any(|m| m == n)));
        assert_eq!(data(&page)["command"], "agepath path '<x>'");
    }

    #[test]
    fn validation_rows_given_as_test_rows_score_the_same() {
        let run = Run::new(builtin("diabetes", &ReadOptions::default()).unwrap());
        let report = run.report();
        let frames = report.frames(&report.order()).unwrap();
        let scores = report.test_scores(&frames).unwrap().unwrap();
        let choice = run.choice.as_ref().unwrap();
        assert!(!choice.reasons.ordinary, "rows so bad are not trusted");
        let selection = &choice.selection;
        let at = frames.list.iter().position(|f| f.age == selection.age).unwrap();
        assert!((scores[at] - selection.score).abs() < 1e-9 * selection.score, "{} {}", scores[at], selection.score);
    }

    #[test]
    fn nothing_in_the_page_points_elsewhere() {
        let run = Run::new(builtin("diabetes", &ReadOptions::default()).unwrap());
        let page = run.report().html().unwrap();
        let own = page.replace(ECHARTS, "");
        assert!(!own.contains("http:") && !own.contains("https:") && !own.contains("src="));
        assert!(!own.contains("{{"), "every placeholder is filled");
        assert!(page.len() < 1_500_000, "{} bytes", page.len());
    }

    #[test]
    fn suspects_in_the_page_are_the_file() {
        let run = Run::new(builtin("diabetes", &ReadOptions::default()).unwrap());
        let page = run.report().html().unwrap();
        assert_eq!(data(&page)["suspects"], suspects_csv(&run.choice.as_ref().unwrap().suspects));
    }

    #[test]
    fn stored_solutions_are_exact_and_lines_between_them_look_exact() {
        let run = Run::new(builtin("diabetes", &ReadOptions::default()).unwrap());
        let (problem, report) = (&run.prepared.problem, run.report());
        let frames = report.frames(&report.order()).unwrap();
        let list = &frames.list;
        assert!(list.is_sorted_by(|a, b| a.age <= b.age));
        assert_eq!((list[0].age, list[list.len() - 1].age), run.path.ages);
        assert!(report.marks().iter().all(|m| list.iter().any(|f| f.age == m.age)));
        let range = list.iter().flat_map(|f| &f.trace).fold(0.0, |m: f64, v| m.max(v.abs()));
        for pair in list.windows(2) {
            assert!(problem.kkt(&pair[0].theta, 1.0 / pair[0].age) < 1e-9, "age {}", pair[0].age);
            if pair[0].age < pair[1].age {
                // A third of the way, where no refinement has looked.
                let age = pair[0].age.powf(2.0 / 3.0) * pair[1].age.powf(1.0 / 3.0);
                let exact = run.path.at(problem, age).unwrap();
                for (j, w) in exact.coef.iter().enumerate() {
                    let line = (2.0 * pair[0].trace[j] + pair[1].trace[j]) / 3.0;
                    assert!((w - line).abs() < 0.02 * range, "coefficient {j} at age {age}: {w} {line}");
                }
            }
        }
    }
}
