//! Work in the background: the GIL is free, Ctrl-C is heard, progress is told.
//!
//! Python delivers signals to its main thread only, and only while that thread asks for them. So the work goes to a
//! thread of its own, and the caller's thread asks, waits and tells.

use crate::errors::exception;
use agepath::path::Progress;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often signals are looked for and progress is told.
const PERIOD: Duration = Duration::from_millis(50);

/// How long an interrupted run may take to stop. After that it is left to stop on its own, and Python goes on.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the work and its watcher share.
#[derive(Default)]
pub struct Watch {
    stop: AtomicBool,
    seen: Mutex<Option<Progress>>,
}

impl Watch {
    /// To be called by the tracker, from any thread.
    pub fn see(&self, progress: &Progress) -> ControlFlow<()> {
        if let Ok(mut seen) = self.seen.try_lock() {
            *seen = Some(*progress);
        }
        if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs `work` on `threads` threads of its own (none: one per core), which end with it: nothing is left that a fork
/// could break. `progress` is called with (share done, age, critical points, jumps); what it raises stops the work.
pub fn run<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Watch) -> agepath::Result<T> + Send + 'static,
) -> PyResult<T> {
    let watch = Arc::new(Watch::default());
    let shared = watch.clone();
    let (sender, mut receiver) = sync_channel(1);
    let job = move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
        let outcome = pool.map(|pool| catch_unwind(AssertUnwindSafe(|| pool.install(|| work(&shared)))));
        // Nobody waits any more after an interruption.
        let _ = sender.send(outcome);
    };
    std::thread::Builder::new().name("agepath".into()).spawn(job)?;
    let mut patience = None;
    let mut raised = None;
    loop {
        // Exclusively borrowed: a receiver may go to another thread, but not be shared with one.
        let exclusive = &mut receiver;
        match py.detach(move || exclusive.recv_timeout(PERIOD)) {
            Ok(outcome) => return raised.map_or_else(|| finish(outcome), Err),
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the engine's thread is gone")),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if patience.is_some_and(|until| Instant::now() > until) {
            return Err(raised.unwrap_or_else(|| PyRuntimeError::new_err("interrupted")));
        }
        if raised.is_none()
            && let Err(error) = py.check_signals().and_then(|()| tell(progress, &watch))
        {
            watch.stop.store(true, Ordering::Relaxed);
            raised = Some(error);
            patience = Some(Instant::now() + PATIENCE);
        }
    }
}

type Outcome<T> = Result<std::thread::Result<agepath::Result<T>>, rayon::ThreadPoolBuildError>;

fn finish<T>(outcome: Outcome<T>) -> PyResult<T> {
    match outcome {
        Ok(Ok(result)) => result.map_err(exception),
        Ok(Err(payload)) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            let text = text.unwrap_or_else(|| "no message".into());
            Err(PyRuntimeError::new_err(format!("internal error in agepath, please report it: {text}")))
        }
        Err(error) => Err(PyOSError::new_err(format!("cannot start the threads: {error}"))),
    }
}

fn tell(progress: Option<&Bound<'_, PyAny>>, watch: &Watch) -> PyResult<()> {
    let Some(callback) = progress else { return Ok(()) };
    let seen = watch.seen.lock().map(|seen| *seen).unwrap_or_default();
    if let Some(p) = seen {
        callback.call1((p.done, p.age, p.events, p.jumps))?;
    }
    Ok(())
}
