//! `agepath path`: data in, path and everything that follows from it out.

use crate::args::{PathArgs, Talk};
use crate::output::{emit, labelled, note, table, width};
use crate::progress::Watcher;
use agepath::decide::decide;
use agepath::path::{Path, PathOptions, age_path};
use agepath::prepare::{PrepareOptions, Prepared, default_ages, prepare};
use agepath::report::{self, Report, Summary};
use agepath::suspects::Suspect;
use anyhow::{Context, Result};

/// Suspects printed at the end; the others are in `suspects.csv`.
const SHOWN: usize = 5;

/// Runs the command.
pub fn run(args: &PathArgs) -> Result<()> {
    let (mut path_options, prepare_options, decide_options) = (args.path()?, args.prepare()?, args.decide()?);
    if let Some(threads) = args.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().context("cannot start the threads")?;
    }
    let table = args.table()?;
    let prepared = prepare(&table, &PrepareOptions { validation: args.validation(&table)?, ..prepare_options })?;
    let test = args.test(&table, &prepared.train)?;
    decide_options.validate(&prepared)?;
    report::create_dir(&args.output)?;
    say_notices(&prepared, args.talk);

    // The path is on disk before anything is made of it.
    let watcher = Watcher::new(args.talk.quiet)?;
    let path = follow(&prepared, &mut path_options, args, &watcher)?;
    let mut files = report::write_path(&args.output, &prepared, &path)?;

    let choice = decide(&prepared, &path, &path_options, &decide_options, &|progress| watcher.see(progress))?;
    watcher.finish();
    let summary = Summary::new(&prepared, &path, choice.as_ref());
    files.extend(report::write_choice(&args.output, &prepared, choice.as_ref(), &summary)?);
    let command = command_line();
    let report = Report {
        prepared: &prepared,
        path: &path,
        choice: choice.as_ref(),
        summary: &summary,
        command: Some(&command),
        test: test.as_ref(),
    };
    files.push(report::write_report(&args.output, &report)?);
    if let Some(file) = &args.plot {
        report::write_plot(file, &report)?;
    }
    if args.talk.verbose {
        note(&format!("work: {:?}", path.work));
    }
    say_summary(&report, args, &files)
}

fn follow(prepared: &Prepared, options: &mut PathOptions, args: &PathArgs, watcher: &Watcher) -> Result<Path> {
    if args.ages.is_none() {
        options.ages = default_ages(&prepared.problem)?;
        if !args.talk.quiet {
            let (low, high) = options.ages;
            note(&format!("ages {low}:{high}, from the losses of the ordinary fit"));
        }
    }
    Ok(age_path(&prepared.problem, options, &mut |progress| watcher.see(progress))?)
}

fn say_notices(prepared: &Prepared, talk: Talk) {
    if !talk.quiet {
        prepared.notices.iter().for_each(|n| note(&format!("note: {n}")));
    }
}

fn say_summary(report: &Report, args: &PathArgs, files: &[&str]) -> Result<()> {
    if args.talk.json {
        let text = serde_json::to_string(report.summary)?;
        emit(|out| writeln!(out, "{text}"))?;
    } else if !args.talk.quiet {
        let (dir, files) = (args.output.display(), files.join(", "));
        let lines = labelled(&report.summary.to_string(), width());
        let suspects = report.choice.map(|c| suspects_table(&c.suspects)).unwrap_or_default();
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
