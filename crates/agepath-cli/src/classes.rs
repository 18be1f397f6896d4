//! `agepath path` with more than two classes: one path per class, and what they say together.

use crate::path::{Figure, Job, Place, say_notices, say_summary, write_plots};
use crate::progress::Watcher;
use agepath::dataset::Table;
use agepath::decide::Kept;
use agepath::judge::Study;
use agepath::one_vs_rest::{OneVsRest, Verdict};
use agepath::path::End;
use agepath::prepare::Prepared;
use agepath::report::{self, ClassRun, ClassesReport, Staging, class_dir};
use anyhow::Result;

/// Runs the command.
pub fn run(job: Job, table: &Table, classes: &OneVsRest) -> Result<()> {
    let args = job.args;
    let test = args.test_table(table)?.map(|rows| rows.many_classes_like(&classes.train)).transpose()?;
    let study_options = classes.share_folds(&job.study_options, job.path_options.seed)?;
    let job = Job { study_options, ..job };
    classes.validate(&job.study_options.decide)?;
    say_notices(&classes.notices, args.talk);

    let staging = Staging::begin(&args.output, args.overwrite())?;
    let watcher = Watcher::new(args.talk.quiet)?;
    let write = |k: usize, prepared: &Prepared, study: &Study| -> Result<(ClassRun, Option<Figure>)> {
        let place = Place {
            dir: &staging.dir().join(class_dir(k)),
            plot: args.plot.as_ref().map(|file| report::class_file(file, k)),
            test: test.as_ref().map(|rows| rows.against_rest(k)),
        };
        let written = job.write(prepared, study, place)?;
        let kept = Kept::Chosen(Box::new(study.choice.clone()));
        Ok((ClassRun::new(prepared, Some(&kept), written.summary)?, written.plot))
    };
    let (mut studies, mut runs) = (Vec::new(), Vec::new());
    for (k, name) in classes.names().iter().enumerate() {
        let prepared = args.tune(classes.prepare(k)?)?;
        if k == 0 {
            say_notices(&prepared.notices, args.talk);
        }
        let study = job.study(&prepared, &format!("class {name}: "), &watcher)?;
        runs.push(write(k, &prepared, &study)?);
        let stopped = study.path().end == End::Interrupted;
        studies.push(study);
        if stopped {
            break;
        }
    }
    let verdicts: Vec<Verdict> = runs.iter().filter_map(|(run, _)| run.verdict().cloned()).collect();
    if classes.prefers_ordinary(&verdicts) {
        for (k, mut study) in studies.into_iter().enumerate() {
            let prepared = args.tune(classes.prepare(k)?)?;
            study.choice = study.choice.clone().better_together(&prepared, study.path())?;
            runs[k] = write(k, &prepared, &study)?;
        }
    }
    let (runs, plots): (Vec<ClassRun>, Vec<Option<Figure>>) = runs.into_iter().unzip();
    let plots: Vec<Figure> = plots.into_iter().flatten().collect();
    watcher.finish();
    let report = ClassesReport::new(classes, runs, Some(&job.command));
    let files = report::write_classes(staging.dir(), &report)?;
    staging.commit()?;
    write_plots(&plots)?;
    say_summary(&report.summary, report.suspects.as_deref(), args, &files)
}
