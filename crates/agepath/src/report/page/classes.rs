//! The page of several classes: figures, one line per class with a link to its own page, and the suspects.

use super::encode::script_safe;
use super::headline::{Card, card};
use super::{fill, head};
use crate::report::classes::{ClassSummary, ClassesReport};
use crate::report::summary::short;
use crate::report::{REPORT_FILE, suspects_csv};
use serde::Serialize;

const TEMPLATE: &str = include_str!("../../../web/classes.html");
const SCRIPTS: &[&str] = &[
    include_str!("../../../web/data.js"),
    include_str!("../../../web/table.js"),
    include_str!("../../../web/classes.js"),
];

/// The columns beside the name of a class.
const COLUMNS: [&str; 8] =
    ["age", "score", "± se", "ordinary fit", "rows left out", "critical points", "jumps", "largest KKT"];

#[derive(Debug, Serialize)]
struct Page<'a> {
    title: String,
    command: Option<&'a str>,
    cards: Vec<Card>,
    columns: [&'static str; 8],
    classes: Vec<Line>,
    suspects: Option<String>,
    notices: &'a [String],
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    link: String,
    cells: [String; 8],
}

impl ClassesReport<'_> {
    /// The page as text.
    pub fn html(&self) -> String {
        let page = self.page();
        let json = serde_json::to_string(&page).expect("numbers and strings always serialise");
        let parts =
            [("{{head}}", head(&page.title)), ("{{data}}", script_safe(&json)), ("{{script}}", SCRIPTS.concat())];
        fill(TEMPLATE, &parts)
    }

    fn page(&self) -> Page<'_> {
        let summary = &self.summary;
        Page {
            title: format!("{} · age-paths of {}", summary.data, summary.target),
            command: self.command,
            cards: self.cards(),
            columns: COLUMNS,
            classes: summary.classes.iter().map(line).collect(),
            suspects: self.suspects.as_deref().map(suspects_csv),
            notices: &summary.notices,
        }
    }

    fn cards(&self) -> Vec<Card> {
        let summary = &self.summary;
        let (done, all) = (summary.classes.len(), summary.class_count);
        let count = if done == all { all.to_string() } else { format!("{done} of {all}") };
        let of = format!("of {} training rows with {} features, one path each", summary.rows, summary.features);
        let mut out = vec![card("Classes", count, of)];
        if let Some(accuracy) = &summary.accuracy {
            let error = format!("± {} {} accuracy of all together", short(accuracy.standard_error), summary.judge());
            let before = accuracy.ordinary_score.map(|s| format!("; {} for the ordinary fits", short(s)));
            out.push(card("Score at the chosen ages", short(accuracy.score), error + &before.unwrap_or_default()));
        }
        let worst = summary.classes.iter().map(|c| c.run.max_kkt).fold(0.0, f64::max);
        let checked: usize = summary.classes.iter().map(|c| c.run.checked).sum();
        let detail = format!("largest relative KKT residual over {checked} solutions checked");
        out.push(card("Certificate", format!("{worst:.1e}"), detail));
        if let Some(noise) = &summary.noise
            && let Some(found) = noise.found
        {
            let detail = format!("corrupted rows are among the {} most suspicious", noise.rows);
            out.push(card("Noise found", format!("{found} of {}", noise.rows), detail));
        }
        out
    }
}

fn line(class: &ClassSummary) -> Line {
    let (run, chosen) = (&class.run, class.run.chosen.as_ref());
    let number = |value: Option<f64>| value.map(short).unwrap_or_default();
    Line {
        name: class.class.clone(),
        link: format!("{}/{REPORT_FILE}", class.directory),
        cells: [
            number(class.age),
            chosen.map(|c| format!("{} {}", short(c.score), c.metric)).unwrap_or_default(),
            number(chosen.map(|c| c.standard_error)),
            number(chosen.and_then(|c| c.ordinary_score)),
            chosen.map(|c| c.excluded.to_string()).unwrap_or_default(),
            run.events.to_string(),
            run.jumps.to_string(),
            format!("{:.1e}", run.max_kkt),
        ],
    }
}
