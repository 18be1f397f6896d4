//! `suspects.csv` and `train.npz`.

use super::replace;
use crate::dataset::{Dataset, format_number, write_rows};
use crate::error::Result;
use crate::suspects::Suspect;
use std::io;
use std::path::Path;

/// The columns of `suspects.csv`.
const SUSPECT_COLUMNS: [&str; 11] = [
    "row",
    "score",
    "entry_age",
    "weight",
    "loss",
    "target",
    "prediction",
    "held_out_loss",
    "held_out_prediction",
    "leverage",
    "kind",
];

/// Writes the training rows, most suspicious first.
pub fn write_suspects(path: &Path, suspects: &[Suspect]) -> Result<()> {
    replace(path, |out| put_suspects(out, suspects))
}

/// The text of `suspects.csv`.
pub fn suspects_csv(suspects: &[Suspect]) -> String {
    let mut text = Vec::new();
    put_suspects(&mut text, suspects).expect("writing to memory cannot fail");
    String::from_utf8(text).expect("numbers and strings are UTF-8")
}

fn put_suspects(out: impl io::Write, suspects: &[Suspect]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(SUSPECT_COLUMNS)?;
    for s in suspects {
        let numbers = [s.score, s.entry_age, s.weight, s.loss].map(format_number);
        csv.write_field(s.row.to_string())?;
        numbers.iter().try_for_each(|n| csv.write_field(n))?;
        let loss = s.held_out_loss.map(format_number).unwrap_or_default();
        let prediction = s.held_out_prediction.as_deref().unwrap_or_default();
        let leverage = s.leverage.map(format_number).unwrap_or_default();
        csv.write_record([&s.target, &s.prediction, &loss, prediction, &leverage, s.kind()])?;
    }
    csv.flush()
}

/// Writes rows in the user's units; the numbers read back to the last bit.
pub fn write_train(path: &Path, data: &Dataset) -> Result<()> {
    replace(path, |out| write_rows(out, data))
}
