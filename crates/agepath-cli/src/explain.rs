//! `agepath explain`: the words of this field in a few lines each.

use crate::output::{emit, labelled, width};
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

/// Options of `agepath explain`.
#[derive(Args)]
pub struct ExplainArgs {
    /// The word [default: all of them]
    #[arg(value_parser = words())]
    word: Option<String>,
}

/// Word and meaning.
const GLOSSARY: &[(&str, &str)] = &[
    (
        "age",
        "How much loss is forgiven, λ. At a large age every row counts and the fit is the ordinary one; at a small age only the \
         easiest rows count. A numeric target is scaled by its robust standard deviation, so √λ is a cut-off in robust sigmas: \
         to a statistician, λ = (cσ)² with c the tuning constant.",
    ),
    (
        "pacing",
        "The rule by which a row's loss and the age decide how much the row counts, from 1 to 0. `hard`: 1 below the age, else 0 \
         (trimming). `linear`: 1 − loss/age (a smooth redescender). `mixture`: 1, then less, then 0 (between Huber and \
         trimming). `log`: never quite 0 (like Cauchy). `huber`: Huber's weights. To a statistician, the choice of ρ.",
    ),
    (
        "weight",
        "How much a row counts at an age, from 0 to 1. It follows from the row's loss; nothing else is estimated.",
    ),
    (
        "zone",
        "A range of losses in which the pacing is one formula. E: easy, M: in the middle (mixture pacing), D: doubted, the zone of \
         the largest losses, where the weight is 0 for most pacings.",
    ),
    ("path", "The solution at every age of an interval, exactly: a curve with corners and, here and there, a gap."),
    (
        "turning",
        "A turning point: an age at which a row changes its zone, or a coefficient becomes 0 or leaves 0. The path has a corner there \
         and goes on.",
    ),
    (
        "jump",
        "An age at which the local minimum that the path follows ceases to exist, and the solution moves elsewhere, often because a \
         group of rows is given up or taken back together. To a statistician: the root of the estimating equation vanishes.",
    ),
    (
        "branch",
        "One family of local minima that is followed as the age moves. Below infinity the problem may have several: roots of one \
         estimating equation. `down` follows the one that comes from the ordinary fit, `up` one that starts from few rows.",
    ),
    (
        "proof",
        "The certificate of a path: the largest relative residual of the optimality conditions over all solutions that are kept and over random ages between \
         them. 1e-9 or less means: solved.",
    ),
    (
        "suspect",
        "A training row whose loss is large compared with the chosen age. `score` is its loss over the last threshold: above 1, the \
         row is in the zone of the largest losses. With --cv, by a path that has not seen the row.",
    ),
    (
        "entry",
        "`entry_age` of a row: the largest age at which it is still doubted. The larger, the worse the row fits with the others; \
         inf: at every age up to the largest; 0: never.",
    ),
    (
        "ordinary",
        "The ordinary fit: the model at infinite age, where every row counts fully. Scores are given beside it, because if the path \
         does not beat it, there is no reason to doubt rows.",
    ),
    (
        "end",
        "Why a path ends where it ends. `complete`: all ages asked for are covered. `degenerate`: below that age the rows left \
         no longer determine a fit, for example rows of one class only.",
    ),
];

fn words() -> PossibleValuesParser {
    GLOSSARY.iter().map(|(word, _)| PossibleValue::new(word)).collect::<Vec<_>>().into()
}

/// Runs the command.
pub fn run(args: &ExplainArgs) -> Result<()> {
    let wanted = GLOSSARY.iter().filter(|(word, _)| args.word.as_ref().is_none_or(|w| w == word));
    let text: String = wanted.map(|(word, meaning)| format!("{word:<10}{meaning}\n")).collect();
    emit(|out| write!(out, "{}", labelled(&text, width())))?;
    Ok(())
}

/// What `--help` says of the words.
pub const AFTER_HELP: &str = "`agepath explain` tells what age, pacing, zone, jump and the other words mean.";

#[cfg(test)]
mod tests {
    use super::GLOSSARY;

    #[test]
    fn every_word_fits_its_column_and_is_explained_once() {
        for (k, (word, meaning)) in GLOSSARY.iter().enumerate() {
            assert!(word.len() < 10, "{word}");
            assert!(meaning.ends_with('.') && meaning.len() > 40, "{word}");
            assert!(GLOSSARY[..k].iter().all(|(other, _)| other != word), "{word}");
        }
    }
}
