//! `agepath path`: data in, path and everything that follows from it out.

use crate::args::{PathArgs, Talk};
use crate::output::{emit, note};
use crate::progress::Watcher;
use agepath::path::{Path, PathOptions, age_path};
use agepath::prepare::{Prepared, default_ages, prepare};
use agepath::report::{self, Choice, Summary};
use agepath::select::{self, Holdout, Metric};
use agepath::{solver, suspects};
use anyhow::{Context, Result};

/// Runs the command.
pub fn run(args: &PathArgs) -> Result<()> {
    let (path_options, prepare_options) = (args.path()?, args.prepare()?);
    if let Some(threads) = args.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build_global().context("cannot start the threads")?;
    }
    let prepared = prepare(&args.table()?, &prepare_options)?;
    let holdout = holdout(&prepared, args.metric.as_deref())?;
    report::create_dir(&args.output)?;
    say_notices(&prepared, args.talk);

    // The path is on disk before anything is made of it.
    let path = follow(&prepared, path_options, args)?;
    let mut files = report::write_path(&args.output, &prepared, &path)?;

    let (choice, ordinary) = match &holdout {
        Some(h) => (choose(&prepared, &path, h)?, ordinary_score(&prepared, h)?),
        None => (None, None),
    };
    let summary = Summary::new(&prepared, &path, choice.as_ref(), ordinary);
    files.extend(report::write_choice(&args.output, &prepared, choice.as_ref(), &summary)?);
    say_summary(&summary, &path, args, &files)
}

/// The validation rows, ready to score; before the path, so that a wrong metric costs no time.
fn holdout(prepared: &Prepared, metric: Option<&str>) -> Result<Option<Holdout>> {
    let metric = Metric::choose(metric, prepared.train.kind())?;
    let rows = prepared.validation.as_ref();
    let build = |rows| Holdout::new(&prepared.problem, rows, &prepared.scaling, metric);
    Ok(rows.map(build).transpose()?)
}

fn follow(prepared: &Prepared, mut options: PathOptions, args: &PathArgs) -> Result<Path> {
    let watcher = Watcher::new(args.talk.quiet)?;
    if args.ages.is_none() {
        options.ages = default_ages(&prepared.problem)?;
        if !args.talk.quiet {
            let (low, high) = options.ages;
            note(&format!("ages {low}:{high}, from the losses of the ordinary fit"));
        }
    }
    let path = age_path(&prepared.problem, &options, &mut |progress| watcher.see(progress));
    watcher.finish();
    Ok(path?)
}

fn choose(prepared: &Prepared, path: &Path, holdout: &Holdout) -> Result<Option<Choice>> {
    let problem = &prepared.problem;
    let Some(selection) = select::choose(problem, path, holdout)? else {
        return Ok(None);
    };
    let point = path.at(problem, selection.age)?;
    let suspects = suspects::rank(problem, path, &point, &prepared.train, &prepared.scaling);
    Ok(Some(Choice { selection, point, suspects }))
}

/// What the same rows make of the fit that trusts every training row, where there is one.
fn ordinary_score(prepared: &Prepared, holdout: &Holdout) -> Result<Option<f64>> {
    match solver::fit(&prepared.problem, None) {
        Ok(fit) => Ok(holdout.score(&fit.theta)),
        Err(agepath::Error::NoSolution { .. }) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn say_notices(prepared: &Prepared, talk: Talk) {
    if !talk.quiet {
        prepared.notices.iter().for_each(|n| note(&format!("note: {n}")));
    }
}

fn say_summary(summary: &Summary, path: &Path, args: &PathArgs, files: &[&str]) -> Result<()> {
    if args.talk.verbose {
        note(&format!("work: {:?}", path.work));
    }
    if args.talk.json {
        let text = serde_json::to_string(summary)?;
        emit(|out| writeln!(out, "{text}"))?;
    } else if !args.talk.quiet {
        let (dir, files) = (args.output.display(), files.join(", "));
        emit(|out| writeln!(out, "{summary}files     {dir}: {files}"))?;
    }
    Ok(())
}
