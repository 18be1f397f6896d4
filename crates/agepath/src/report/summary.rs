//! The figures printed at the end, for people and as `summary.json`.

use super::Choice;
use crate::dataset::{Injected, NoiseKind};
use crate::judge::SCALE;
use crate::pacing::PacingSpec;
use crate::path::{Direction, Path};
use crate::penalty::Penalty;
use crate::prepare::Prepared;
use crate::select::Rule;
use crate::suspects::{NoiseFraction, Suspect};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// How many suspects are named.
pub(super) const NAMED: usize = 5;

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Where the data came from.
    pub data: String,
    /// Name of the target.
    pub target: String,
    /// Training rows.
    pub rows: usize,
    /// Validation rows.
    pub validation_rows: usize,
    /// Features.
    pub features: usize,
    /// Registry name of the model.
    pub model: &'static str,
    /// The penalty.
    pub penalty: Penalty,
    /// The pacing.
    pub pacing: PacingSpec,
    /// The ages covered.
    pub ages: (f64, f64),
    /// The way the path was followed.
    pub direction: Direction,
    /// Solutions stored.
    pub knots: usize,
    /// Critical points.
    pub events: usize,
    /// Jumps among them.
    pub jumps: usize,
    /// Largest relative KKT residual seen.
    pub max_kkt: f64,
    /// Solutions checked for it.
    pub checked: usize,
    /// Why the path ends.
    pub end: String,
    /// Wall-clock seconds of the path.
    pub seconds: f64,
    /// The branch that the figures are about.
    pub branch: String,
    /// Why the model was chosen.
    pub why: Option<String>,
    /// What other branches say, where they differ in more than a few rows.
    pub alternatives: Vec<String>,
    /// The chosen age; none where nothing was asked to choose one.
    pub chosen: Option<Chosen>,
    /// How much of the injected noise was found.
    pub noise: Option<NoiseFound>,
    /// What the user should know.
    pub notices: Vec<String>,
}

/// The chosen age in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chosen {
    /// The age.
    pub age: f64,
    /// Whether it is the ordinary fit, which trusts every row; the age is then the largest of the path and stands for infinity.
    pub ordinary: bool,
    /// The robust scale of the residuals, in the user's units; numbers only.
    pub sigma: Option<f64>,
    /// The cut-off of the pacing in scales, √λ/σ for linear and hard pacing; squared loss only.
    pub c: Option<f64>,
    /// The information that it keeps where all errors are normal.
    pub efficiency: Option<f64>,
    /// A row is flagged beyond this many standard deviations.
    pub cutoff: f64,
    /// Rows that are flagged: those with a score above 1.
    pub flagged: usize,
    /// What it was chosen by.
    pub metric: String,
    /// The rule it was chosen by.
    pub rule: Rule,
    /// Folds of the cross-validation; none: validation rows.
    pub folds: Option<usize>,
    /// The metric's value at the chosen age, on the validation rows or the mean over the folds.
    pub score: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// An age that was not tried can be better than the best by at most this.
    pub gap: f64,
    /// The age that the 1-SE rule chooses.
    pub one_se_age: f64,
    /// Its value for the ordinary fit, which trusts every row.
    pub ordinary_score: Option<f64>,
    /// Relative KKT residual there.
    pub kkt: f64,
    /// Coefficients: one per feature, or one per training row in kernel space.
    pub coefficients: usize,
    /// Coefficients that are not 0.
    pub active: usize,
    /// Training rows of weight 0; under a pacing that has no weight 0, those that count at most half.
    pub excluded: usize,
    /// The weight up to which a row counts as excluded.
    pub excluded_up_to: f64,
    /// Ages that were to be tried but where no solution was found.
    pub unsolved: Vec<f64>,
    /// Ages that were tried but whose solution teaches nothing.
    pub degenerate: Vec<f64>,
    /// How many of the training rows are probably wrong.
    pub noise_fraction: Option<NoiseFraction>,
    /// The most suspicious training rows, as row numbers of the file counted from 0.
    pub suspects: Vec<usize>,
}

/// How many corrupted rows are among the most suspicious ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NoiseFound {
    /// What was done to them.
    pub kind: NoiseKind,
    /// How many rows were corrupted.
    pub rows: usize,
    /// How many of them are among as many most suspicious rows.
    pub found: Option<usize>,
}

impl Summary {
    /// The figures of a run.
    pub fn new(prepared: &Prepared, path: &Path, choice: Option<&Choice>) -> Summary {
        Summary {
            data: prepared.train.name().into(),
            target: prepared.train.target_name().into(),
            rows: prepared.problem.rows(),
            validation_rows: prepared.validation.as_ref().map_or(0, |v| v.len()),
            features: prepared.problem.features(),
            model: prepared.model.name,
            penalty: prepared.spec.penalty,
            pacing: prepared.spec.pacing.clone(),
            ages: path.ages,
            direction: path.direction,
            knots: path.knots.len(),
            events: path.events.len(),
            jumps: path.jumps().count(),
            max_kkt: path.certificate.max_kkt,
            checked: path.certificate.knots_checked + path.certificate.between_checked,
            end: path.end.to_string(),
            seconds: path.work.seconds,
            branch: choice.map_or_else(|| path.direction.name().into(), |c| c.reasons.branch.clone()),
            why: choice.map(|c| c.reasons.why.clone()),
            alternatives: choice.map(|c| c.reasons.alternatives.clone()).unwrap_or_default(),
            chosen: choice.map(|c| Chosen::new(c, prepared.problem.pacing().left_out())),
            noise: found(prepared.noise.as_ref(), choice.map(|c| &c.suspects[..])),
            notices: prepared.notices.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Chosen {
    /// Who chose the age, in a word.
    pub(super) fn judge(&self) -> String {
        match self.folds {
            Some(count) => format!("{count}-fold"),
            None => "validation".into(),
        }
    }

    /// What happens to the rows that are excluded.
    pub(super) fn fate(&self) -> &'static str {
        if self.excluded_up_to == 0.0 { "are left out" } else { "count at most half" }
    }

    fn new(choice: &Choice, left_out: f64) -> Chosen {
        let Choice { selection, point, suspects, standing, .. } = choice;
        let ordinary = choice.reasons.ordinary;
        Chosen {
            age: selection.age,
            ordinary,
            sigma: standing.sigma,
            c: standing.cut.filter(|_| !ordinary),
            efficiency: if ordinary { Some(1.0) } else { standing.efficiency },
            cutoff: standing.cutoff,
            flagged: standing.flagged,
            metric: selection.metric.clone(),
            rule: selection.rule,
            folds: selection.folds,
            score: selection.score,
            standard_error: selection.standard_error,
            gap: selection.gap,
            one_se_age: selection.one_se.age,
            ordinary_score: choice.ordinary_score,
            kkt: point.kkt,
            coefficients: point.coef.len(),
            active: point.coef.iter().filter(|&&w| w != 0.0).count(),
            excluded: point.weights.iter().filter(|&&weight| weight <= left_out).count(),
            excluded_up_to: left_out,
            unsolved: selection.unsolved.clone(),
            degenerate: selection.degenerate.clone(),
            noise_fraction: choice.noise_fraction,
            suspects: suspects.iter().take(NAMED).map(|s| s.row).collect(),
        }
    }
}

/// How much of the noise is among the first suspects.
pub(super) fn found(noise: Option<&Injected>, suspects: Option<&[Suspect]>) -> Option<NoiseFound> {
    let noise = noise?;
    let among = |list: &[Suspect]| {
        let worst = list.iter().take(noise.rows.len());
        worst.filter(|s| noise.rows.binary_search(&s.row).is_ok()).count()
    };
    Some(NoiseFound { kind: noise.kind, rows: noise.rows.len(), found: suspects.map(among) })
}

impl Display for Summary {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "data      {}: {} training rows, {} validation rows, {} features, target \"{}\"",
            self.data, self.rows, self.validation_rows, self.features, self.target
        )?;
        write_noise(self.noise.as_ref(), f)?;
        let (low, high) = self.ages;
        writeln!(f, "path      {} over ages {} to {}: {}", self.model, short(low), short(high), self.end)?;
        writeln!(f, "          {} critical points, {} of them jumps; {:.2} s", self.events, self.jumps, self.seconds)?;
        writeln!(f, "          largest KKT residual {:.1e} over {} solutions checked", self.max_kkt, self.checked)?;
        match &self.chosen {
            Some(chosen) => self.write_chosen(chosen, f),
            None => writeln!(f, "age       none chosen"),
        }
    }
}

impl Summary {
    fn write_chosen(&self, chosen: &Chosen, f: &mut Formatter<'_>) -> fmt::Result {
        match chosen.ordinary {
            true => write!(f, "age       none needed")?,
            false => write!(f, "age       {}", short(chosen.age))?,
        }
        if let (Some(c), Some(efficiency)) = (chosen.c, chosen.efficiency) {
            write!(f, ", c = {} σ ({:.0} % efficient on normal errors)", short(c), 100.0 * efficiency)?;
        }
        match (chosen.metric.as_str(), chosen.ordinary_score) {
            (SCALE, _) => {}
            (metric, ordinary) => {
                let (score, error) = (short(chosen.score), short(chosen.standard_error));
                write!(f, ": {} {metric} {score} ± {error}", chosen.judge())?;
                if let Some(score) = ordinary.filter(|_| !chosen.ordinary) {
                    write!(f, ", against {} for the ordinary fit", short(score))?;
                }
            }
        }
        writeln!(f)?;
        if let Some(why) = &self.why {
            writeln!(f, "why       {why} (branch \"{}\")", self.branch)?;
        }
        if !self.alternatives.is_empty() {
            writeln!(f, "          two explanations of these data: {}", self.alternatives.join("; "))?;
        }
        if !chosen.unsolved.is_empty() {
            let ages: Vec<String> = chosen.unsolved.iter().map(|&a| short(a)).collect();
            writeln!(f, "          no solution found at {}", ages.join(", "))?;
        }
        writeln!(
            f,
            "model     {} of {} coefficients are not 0; {} training rows {}",
            chosen.active,
            chosen.coefficients,
            chosen.excluded,
            chosen.fate()
        )?;
        self.write_suspects(chosen, f)?;
        write_found(self.noise.as_ref(), f)
    }

    fn write_suspects(&self, chosen: &Chosen, f: &mut Formatter<'_>) -> fmt::Result {
        let scale = chosen.sigma.map(|sigma| format!(" (σ = {})", short(sigma))).unwrap_or_default();
        let cutoff = short(chosen.cutoff);
        match chosen.flagged {
            0 => writeln!(f, "suspects  no row stands out beyond {cutoff} σ{scale}")?,
            count => {
                let rows: Vec<String> = chosen.suspects.iter().take(count).map(ToString::to_string).collect();
                let more = if count > rows.len() { ", …" } else { "" };
                writeln!(f, "suspects  {count} rows stand out beyond {cutoff} σ{scale}: {}{more}", rows.join(", "))?;
            }
        }
        if let Some(fraction) = chosen.noise_fraction {
            let percent = |share: f64| format!("{:.1}", 100.0 * share);
            let (share, error) = (percent(fraction.estimate), percent(fraction.standard_error));
            writeln!(f, "          about {share} ± {error} % of the training rows look wrong")?;
        }
        Ok(())
    }
}

/// The line about injected noise.
pub(super) fn write_noise(noise: Option<&NoiseFound>, f: &mut Formatter<'_>) -> fmt::Result {
    match noise {
        Some(noise) => writeln!(f, "noise     {} training rows corrupted ({})", noise.rows, noise.kind.name()),
        None => Ok(()),
    }
}

/// The line about what was found of it.
pub(super) fn write_found(noise: Option<&NoiseFound>, f: &mut Formatter<'_>) -> fmt::Result {
    match noise {
        Some(NoiseFound { rows, found: Some(found), .. }) => {
            writeln!(f, "          {found} of the {rows} corrupted rows are among the {rows} most suspicious")
        }
        _ => Ok(()),
    }
}

/// Four significant digits: enough to read, and plainly not the exact value.
pub fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    crate::dataset::format_number(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened() {
        assert_eq!(short(1.0 / 3.0), "0.3333");
        assert_eq!(short(12345.6), "12350");
        assert_eq!(short(0.0), "0");
    }
}
