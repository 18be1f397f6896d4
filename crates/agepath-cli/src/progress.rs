//! Shows where the tracker is, and stops it on Ctrl-C.

use crate::output::note;
use agepath::path::Progress;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Steps of the bar.
const STEPS: u64 = 1000;

/// What the shell expects of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Watches one path.
pub struct Watcher {
    bar: Option<ProgressBar>,
    stop: Arc<AtomicBool>,
}

impl Watcher {
    /// With a bar on a terminal unless `quiet`. The first Ctrl-C stops the path, the second the program.
    pub fn new(quiet: bool) -> Result<Watcher> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
            note("stopping, writing what is there…; press Ctrl-C again to leave at once");
        })
        .context("cannot listen for Ctrl-C")?;
        let wanted = !quiet && std::io::stderr().is_terminal();
        Ok(Watcher { bar: wanted.then(bar).transpose()?, stop })
    }

    /// To be called by the tracker.
    pub fn see(&self, progress: &Progress) -> ControlFlow<()> {
        if let Some(bar) = &self.bar {
            bar.set_position((progress.done * STEPS as f64) as u64);
            let rate = progress.events as f64 / bar.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
            bar.set_message(format!(
                "age {:.4}, {} critical points ({rate:.0}/s), {} jumps",
                progress.age, progress.events, progress.jumps
            ));
        }
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{bar:16} {percent:>3}% {elapsed} gone, {eta} to go: {wide_msg}")?;
    Ok(ProgressBar::new(STEPS).with_style(style))
}
