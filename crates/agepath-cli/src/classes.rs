//! `agepath path` with more than two classes: one path per class, and what they say together.

use crate::path::{Job, Place, say_notices, say_summary, write_plots};
use crate::progress::Watcher;
use agepath::dataset::Table;
use agepath::decide::Kept;
use agepath::one_vs_rest::OneVsRest;
use agepath::path::End;
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
    let (mut runs, mut plots) = (Vec::new(), Vec::new());
    for (k, name) in classes.names().iter().enumerate() {
        let prepared = args.tune(classes.prepare(k)?)?;
        if k == 0 {
            say_notices(&prepared.notices, args.talk);
        }
        let place = Place {
            dir: &staging.dir().join(class_dir(k)),
            plot: args.plot.as_ref().map(|file| report::class_file(file, k)),
            test: test.as_ref().map(|rows| rows.against_rest(k)),
            title: &format!("class {name}: "),
        };
        let done = job.compute(&prepared, place, &watcher)?;
        plots.extend(done.plot);
        let kept = Kept::Chosen(Box::new(done.choice));
        runs.push(ClassRun::new(&prepared, Some(&kept), done.summary)?);
        if done.path.end == End::Interrupted {
            break;
        }
    }
    watcher.finish();
    let report = ClassesReport::new(classes, runs, Some(&job.command));
    let files = report::write_classes(staging.dir(), &report)?;
    staging.commit()?;
    write_plots(&plots)?;
    say_summary(&report.summary, report.suspects.as_deref(), args, &files)
}
