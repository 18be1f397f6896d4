//! What a reader should know first, and how it was computed, in words.

use super::Report;
use crate::dataset::format_number;
use crate::report::summary::{Summary, short};
use crate::select::Rule;
use serde::Serialize;

/// One figure of the headline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Card {
    title: &'static str,
    value: String,
    detail: String,
}

pub(super) fn card(title: &'static str, value: impl Into<String>, detail: impl Into<String>) -> Card {
    Card { title, value: value.into(), detail: detail.into() }
}

/// The chosen age and why, the error before and after, the rows suspected, the certificate.
pub(super) fn cards(report: &Report) -> Vec<Card> {
    let summary = report.summary;
    let mut out = Vec::new();
    match &summary.chosen {
        Some(chosen) => {
            let why = match chosen.rule {
                Rule::Min => format!("best {} on {}", chosen.metric, judge(summary)),
                Rule::OneSe => {
                    format!("largest age within one standard error of the best {} on {}", chosen.metric, judge(summary))
                }
            };
            out.push(card("Chosen age", short(chosen.age), why));
            out.push(error_card(summary));
            let share = 100.0 * chosen.excluded as f64 / summary.rows.max(1) as f64;
            let of = format!("of {} training rows ({share:.0} %) {}", summary.rows, chosen.fate());
            let about = chosen.noise_fraction.map(|f| {
                let [share, error] = [f.estimate, f.standard_error].map(|v| 100.0 * v);
                format!("; about {share:.1} ± {error:.1} % of the rows look wrong")
            });
            out.push(card("Rows suspected", chosen.excluded.to_string(), of + &about.unwrap_or_default()));
        }
        None => out.push(card("Chosen age", "none", "no validation rows, or no age that they could judge")),
    }
    let detail = format!("largest relative KKT residual over {} solutions checked", summary.checked);
    out.push(card("Certificate", format!("{:.1e}", summary.max_kkt), detail));
    if let Some(noise) = &summary.noise
        && let Some(found) = noise.found
    {
        let detail = format!("corrupted rows are among the {} most suspicious", noise.rows);
        out.push(card("Noise found", format!("{found} of {}", noise.rows), detail));
    }
    out
}

fn error_card(summary: &Summary) -> Card {
    let Some(chosen) = &summary.chosen else { return card("Error", "", "") };
    let error = format!("± {} {} on {}", short(chosen.standard_error), chosen.metric, judge(summary));
    let detail = match chosen.ordinary_score {
        Some(before) => {
            let change = 100.0 * (chosen.score - before) / before.abs();
            let change = if change.is_finite() { format!(" ({change:+.1} %)") } else { String::new() };
            format!("{error}; {} for the ordinary fit{change}", short(before))
        }
        None => error,
    };
    card("Score at the chosen age", short(chosen.score), detail)
}

/// The rows that chose the age, in words.
pub(super) fn judge(summary: &Summary) -> String {
    match summary.chosen.as_ref().and_then(|c| c.folds) {
        Some(count) => format!("the held-out rows of {count} folds"),
        None => format!("{} validation rows", summary.validation_rows),
    }
}

/// A titled list of labels and values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Facts {
    title: &'static str,
    items: Vec<(&'static str, String)>,
}

/// Problem, data and computation.
pub(super) fn facts(report: &Report, frames: usize, deviation: f64) -> Vec<Facts> {
    let (prepared, path, summary) = (report.prepared, report.path, report.summary);
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    let (problem, work) = (&prepared.problem, &path.work);
    let mut model = vec![
        ("model", format!("{} ({})", prepared.model.name, prepared.model.summary)),
        ("loss", problem.loss().name().to_owned()),
        ("pacing", json(serde_json::to_string(&prepared.spec.pacing))),
        ("penalty", json(serde_json::to_string(&prepared.spec.penalty))),
        ("intercept", if problem.has_intercept() { "yes" } else { "no" }.to_owned()),
    ];
    model.extend(problem.loss().c().map(|c| ("loss factor C", format_number(c))));
    let mut data = vec![
        ("data", summary.data.clone()),
        ("target", summary.target.clone()),
        ("training rows", summary.rows.to_string()),
        ("validation rows", summary.validation_rows.to_string()),
        ("features", summary.features.to_string()),
        ("columns", if prepared.scaling.x_mean.is_some() { "standardised" } else { "as they are" }.to_owned()),
    ];
    if let Some([minus, plus]) = prepared.train.classes() {
        data.push(("classes", format!("−1: {minus}, +1: {plus}")));
    } else {
        let (shift, scale) = (short(prepared.scaling.y_shift), short(prepared.scaling.y_scale));
        data.push(("target scaling", format!("(y − {shift}) / {scale}")));
    }
    data.extend(summary.noise.map(|n| ("injected noise", format!("{} in {} rows", n.kind.name(), n.rows))));
    data.extend(summary.notices.iter().map(|n| ("note", n.clone())));
    let direction = json(serde_json::to_string(&path.direction)).trim_matches('"').to_owned();
    let computation = vec![
        ("agepath", env!("CARGO_PKG_VERSION").to_owned()),
        ("ages", format!("{} to {}", short(path.ages.0), short(path.ages.1))),
        ("direction", direction),
        ("end of the path", summary.end.clone()),
        ("critical points", format!("{}, {} of them jumps", summary.events, summary.jumps)),
        ("seconds", format!("{:.3}", work.seconds)),
        ("passes over all rows", work.newton.to_string()),
        ("factorisations", work.factorizations.to_string()),
        ("rank-one updates", work.updates.to_string()),
        ("windows", format!("{} ({} tried again)", work.windows, work.restarts)),
        ("ACS fits", work.acs_fits.to_string()),
        ("largest KKT residual", format!("{:.1e}", summary.max_kkt)),
        ("solutions checked", summary.checked.to_string()),
        ("solutions in this page", format!("{frames}; between them plots draw straight lines")),
        ("lines miss the path by", format!("{:.2} % of the plot's height at most, where measured", 100.0 * deviation)),
    ];
    vec![
        Facts { title: "Problem", items: model },
        Facts { title: "Data", items: data },
        Facts { title: "Computation", items: computation },
    ]
}
