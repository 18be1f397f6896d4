//! `agepath path`: data in, path and everything that follows from it out.

use crate::args::{PathArgs, Talk};
use crate::classes;
use crate::output::{emit, labelled, note, table, width};
use crate::progress::Watcher;
use agepath::dataset::{Dataset, Notice, Table};
use agepath::judge::{Branch, Study, StudyOptions, study};
use agepath::one_vs_rest::OneVsRest;
use agepath::path::PathOptions;
use agepath::prepare::{PrepareOptions, Prepared, prepare};
use agepath::report::{self, PlotFormat, Report, Staging, Summary};
use agepath::suspects::Suspect;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::{Path as FilePath, PathBuf};

/// Suspects printed at the end; the others are in `suspects.csv`.
const SHOWN: usize = 5;

/// Runs the command.
pub fn run(args: &PathArgs) -> Result<()> {
    let (path_options, prepare_options, study_options) = (args.path()?, args.prepare()?, args.study()?);
    if let Some(threads) = args.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().context("cannot start the threads")?;
    }
    let table = args.table()?;
    let options = PrepareOptions { validation: args.validation(&table)?, ..prepare_options };
    let job = Job { args, path_options, study_options, command: command_line() };
    match OneVsRest::from_table(&table, &options)? {
        Some(classes) => classes::run(job, &table, &classes),
        None => job.run(&table, &args.tune(prepare(&table, &options)?)?),
    }
}

/// What was asked for, whatever the data.
pub struct Job<'a> {
    pub args: &'a PathArgs,
    pub path_options: PathOptions,
    pub study_options: StudyOptions,
    pub command: String,
}

/// What was made of a study.
pub struct Written {
    pub summary: Summary,
    pub files: Vec<&'static str>,
    pub plot: Option<Figure>,
}

/// The bytes of a figure and the file they go to.
pub type Figure = (Vec<u8>, PathBuf);

/// Figures are written after the result: they may be wanted in its directory.
pub fn write_plots(figures: &[Figure]) -> Result<()> {
    figures.iter().try_for_each(|(bytes, file)| Ok(report::write_bytes(file, bytes)?))
}

impl Job<'_> {
    fn run(&self, table: &Table, prepared: &Prepared) -> Result<()> {
        let args = self.args;
        let test = args.test_table(table)?.map(|rows| rows.dataset_like(&prepared.train)).transpose()?;
        self.study_options.decide.validate(prepared)?;
        say_notices(&prepared.notices, args.talk);
        let staging = Staging::begin(&args.output, args.overwrite())?;
        let watcher = Watcher::new(args.talk.quiet)?;
        let study = self.study(prepared, "", &watcher)?;
        let place = Place { dir: staging.dir(), plot: args.plot.clone(), test };
        let written = self.write(prepared, &study, place)?;
        watcher.finish();
        staging.commit()?;
        write_plots(written.plot.as_slice())?;
        say_summary(&written.summary, Some(&study.choice.suspects), args, &written.files)
    }

    /// Writes everything that follows from a study to its place.
    pub fn write(&self, prepared: &Prepared, study: &Study, place: Place) -> Result<Written> {
        let (path, choice) = (study.path(), Some(&study.choice));
        let others = study.branches.iter().enumerate().filter(|(b, _)| *b != study.chosen);
        let others: Vec<&Branch> = others.map(|(_, branch)| branch).collect();
        let mut files = report::write_path(place.dir, prepared, path, &others)?;

        let summary = Summary::new(prepared, path, choice);
        files.extend(report::write_choice(place.dir, prepared, choice, &summary)?);
        let report = Report {
            prepared,
            path,
            choice,
            summary: &summary,
            command: Some(&self.command),
            test: place.test.as_ref(),
        };
        files.push(report::write_report(place.dir, &report)?);
        let draw = |file: PathBuf| -> Result<Figure> { Ok((report::plot(&report, PlotFormat::of(&file)?)?, file)) };
        let plot = place.plot.map(draw).transpose()?;
        if self.args.talk.verbose {
            note(&format!("work: {:?}", path.work));
            others.iter().for_each(|b| note(&format!("work of branch \"{}\": {:?}", b.name, b.path.work)));
        }
        Ok(Written { summary, files, plot })
    }

    /// Follows the path or its branches, and decides; `title` stands before its messages.
    pub fn study(&self, prepared: &Prepared, title: &str, watcher: &Watcher) -> Result<Study> {
        let mut announce = |(low, high)| {
            if !self.args.talk.quiet {
                note(&format!("{title}ages {low}:{high}, from the losses of the ordinary fit"));
            }
        };
        Ok(study(prepared, &self.path_options, &self.study_options, &mut announce, &|p| watcher.see(p))?)
    }
}

/// Where the files of one path go, and what belongs to it alone.
pub struct Place<'a> {
    pub dir: &'a FilePath,
    pub plot: Option<PathBuf>,
    pub test: Option<Dataset>,
}

/// What the user should know beforehand.
pub fn say_notices(notices: &[Notice], talk: Talk) {
    if !talk.quiet {
        notices.iter().for_each(|n| note(&format!("note: {n}")));
    }
}

/// The figures, as JSON or as text with the first suspects and the names of the files.
pub fn say_summary(
    summary: &(impl Serialize + ToString),
    suspects: Option<&[Suspect]>,
    args: &PathArgs,
    files: &[&str],
) -> Result<()> {
    if args.talk.json {
        let text = serde_json::to_string(summary)?;
        emit(|out| writeln!(out, "{text}"))?;
    } else if !args.talk.quiet {
        let (dir, files) = (args.output.display(), files.join(", "));
        let lines = labelled(&summary.to_string(), width());
        let suspects = suspects.map(suspects_table).unwrap_or_default();
        let files = labelled(&format!("files     {dir}: {files}"), width());
        emit(|out| write!(out, "{lines}{suspects}{files}"))?;
    }
    Ok(())
}

/// The first suspects with what made them suspicious.
fn suspects_table(suspects: &[Suspect]) -> String {
    let headers = ["row", "score", "entry age", "weight", "target", "prediction"];
    let row = |s: &Suspect| {
        let [score, entry, weight] = [s.score, s.entry_age, s.weight].map(report::short);
        vec![s.row.to_string(), score, entry, weight, short_label(&s.target), short_label(&s.prediction)]
    };
    let rows: Vec<Vec<String>> = suspects.iter().take(SHOWN).map(row).collect();
    table(&headers, &rows, width())
}

/// A number as it is read, a name as it is.
fn short_label(text: &str) -> String {
    text.parse().map_or_else(|_| text.to_owned(), report::short)
}

/// What was typed, so that a shell reads it the same way again.
fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quote(&word.to_string_lossy()));
    ["agepath".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=:./,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
