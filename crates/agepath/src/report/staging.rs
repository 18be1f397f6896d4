//! A result is written aside and swapped in whole: whoever looks at the directory, at any moment, sees the files of one run.
//!
//! The files are written to a directory beside the one that was asked for, which then changes places with it (one system call on
//! Linux and macOS). Where that cannot be (another file system, no right to write beside it, a process that works in it),
//! the files are moved in one by one, the manifest first: a directory in between is refused by its readers.
//! Files of other origin in the directory are kept, and come along.

use super::manifest::{self, MANIFEST_FILE};
use super::{CLASS_PREFIX, FILES, PATH_FILE, write_error};
use crate::dataset::DataError;
use crate::error::Result;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the names of directories begin with that hold a result being written.
const PREFIX: &str = ".agepath-";

/// How many names a message lists.
const LISTED: usize = 3;

/// How often a place that other writers change is tried again.
const TRIES: usize = 100;

/// Which directories may be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overwrite {
    /// Those that are empty or hold an earlier result.
    #[default]
    Results,
    /// Any; files of other names are kept.
    Anything,
}

/// A result that is being written. Dropped before it is committed, it leaves nothing behind.
#[derive(Debug)]
pub struct Staging {
    target: PathBuf,
    dir: PathBuf,
    /// Held while this writer lives, so that others know whether the directory was left behind.
    _alive: Option<File>,
}

impl Staging {
    /// Begins a result that is to become `target`.
    pub fn begin(target: &Path, overwrite: Overwrite) -> Result<Staging> {
        let target = resolve(target).map_err(|e| write_error(target, &e))?;
        if overwrite == Overwrite::Results {
            refuse_others(&target)?;
        }
        sweep(&target);
        let (dir, alive) = make_aside(&target).map_err(|e| write_error(&target, &e))?;
        Ok(Staging { target, dir, _alive: alive })
    }

    /// Where the files are to be written.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes the manifest and swaps the result in.
    pub fn commit(self) -> Result<()> {
        manifest::seal(&self.dir)?;
        self.publish().map_err(|e| write_error(&self.target, &e).into())
    }

    fn publish(&self) -> io::Result<()> {
        sync(&self.dir);
        if self.dir.parent() != Some(&self.target) && self.swap()? {
            sync(&self.dir);
            return Ok(());
        }
        fs::create_dir_all(&self.target)?;
        let _alone = lock_place(&self.target)?;
        fs::rename(self.dir.join(MANIFEST_FILE), self.target.join(MANIFEST_FILE))?;
        remove_results(&self.target)?;
        merge(&self.dir, &self.target, Conflict::Replace)?;
        sync(&self.target);
        Ok(())
    }

    /// Changes places with the target; false where the system cannot.
    fn swap(&self) -> io::Result<bool> {
        for _ in 0..TRIES {
            // Succeeds if nothing is there, or an empty directory.
            match fs::rename(&self.dir, &self.target) {
                Err(e) if matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {}
                Err(e) if is_unsupported(&e) => return Ok(false),
                done => return done.map(|()| true),
            }
            let alone = match lock_place(&self.target) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                lock => lock?,
            };
            // A directory keeps its permissions from one result to the next.
            let permissions = fs::metadata(&self.target)?.permissions();
            fs::set_permissions(&self.dir, permissions)?;
            match exchange(&self.dir, &self.target) {
                Ok(()) => {
                    drop(alone);
                    retire(&self.dir, &self.target)?;
                    return Ok(true);
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) if is_unsupported(&e) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(false)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Gone already after a swap; otherwise there is nobody left to tell.
        let _ = retire(&self.dir, &self.target);
    }
}

/// The directory itself where the name is a link; its parent is made.
fn resolve(target: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(target) {
        Ok(found) if found.is_dir() => return Ok(found),
        Ok(_) => return Err(io::Error::new(ErrorKind::NotADirectory, "it is a file, not a directory")),
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        Err(_) => {}
    }
    let target = std::path::absolute(target)?;
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(parent)?;
    Ok(fs::canonicalize(parent)?.join(name))
}

/// Refuses a directory with files in it of which none says that it is a result.
fn refuse_others(target: &Path) -> Result<()> {
    let Ok(entries) = fs::read_dir(target) else { return Ok(()) };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with(PREFIX)).collect();
    let says_so = |file: &str| {
        let mut head = String::new();
        let read = File::open(target.join(file)).and_then(|f| f.take(HEAD).read_to_string(&mut head));
        read.is_ok() && head.starts_with(FORMATS)
    };
    if names.is_empty() || says_so(MANIFEST_FILE) || says_so(PATH_FILE) {
        return Ok(());
    }
    names.sort();
    let more = if names.len() > LISTED { ", …" } else { "" };
    names.truncate(LISTED);
    Err(DataError::Occupied { file: target.display().to_string(), names: names.join(", ") + more }.into())
}

/// How `path.json` and the manifest of every version begin.
const FORMATS: &str = "{\"format\":\"agepath.";
/// Bytes that show how a file begins.
const HEAD: u64 = FORMATS.len() as u64;

/// A new directory beside the target or, where that cannot be, in it; and its lock.
fn make_aside(target: &Path) -> io::Result<(PathBuf, Option<File>)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut beside = beside(target);
    for _ in 0..TRIES {
        let unique = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = match &beside {
            Some(start) => PathBuf::from(format!("{start}{unique}")),
            None => {
                fs::create_dir_all(target)?;
                target.join(format!("{PREFIX}{unique}"))
            }
        };
        match fs::create_dir(&dir) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            Err(e) if beside.is_some() && is_unsupported(&e) => {
                beside = None;
                continue;
            }
            made => made?,
        }
        let alive =
            File::open(&dir).and_then(|handle| handle.try_lock().map(|()| handle).map_err(io::Error::from)).ok();
        // Another writer may have taken it for left behind before it was locked.
        if dir.exists() {
            return Ok((dir, alive));
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// What the names of directories beside the target begin with that hold its results being written; none where a swap would
/// fail, or would pull the directory away under somebody's feet.
fn beside(target: &Path) -> Option<String> {
    let works_there = std::env::current_dir().is_ok_and(|here| here.starts_with(target));
    let (parent, name) = (target.parent()?, target.file_name()?.to_str()?);
    let apart = device(target).is_some_and(|d| device(parent) != Some(d));
    let start = parent.join(format!(".{name}{PREFIX}"));
    (!works_there && !apart).then(|| start.to_str().map(str::to_owned)).flatten()
}

#[cfg(unix)]
fn device(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|m| (m.dev(), 0))
}

#[cfg(not(unix))]
fn device(_: &Path) -> Option<(u64, u64)> {
    None
}

/// Which directory a name stands for at this moment.
#[cfg(unix)]
fn identity(path: &fs::Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((path.dev(), path.ino()))
}

#[cfg(not(unix))]
fn identity(_: &fs::Metadata) -> Option<(u64, u64)> {
    None
}

/// Waits until no other writer is changing the directory. None where directories cannot be locked.
fn lock_place(target: &Path) -> io::Result<Option<File>> {
    for _ in 0..TRIES {
        let handle = match File::open(target) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Err(e),
            Err(_) => return Ok(None),
            Ok(handle) => handle,
        };
        if handle.lock().is_err() {
            return Ok(None);
        }
        // Whoever held the lock may have put another directory there.
        if identity(&handle.metadata()?) == identity(&fs::metadata(target)?) {
            return Ok(Some(handle));
        }
    }
    Ok(None)
}

/// Two directories change their names in one step.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Whether another way may succeed where this failed.
fn is_unsupported(error: &io::Error) -> bool {
    use ErrorKind::{CrossesDevices, InvalidInput, PermissionDenied, ReadOnlyFilesystem, ResourceBusy, Unsupported};
    let kinds = [CrossesDevices, InvalidInput, PermissionDenied, ReadOnlyFilesystem, ResourceBusy, Unsupported];
    kinds.contains(&error.kind())
}

/// Removes what writers left behind that were killed. What fails is left for the next one.
fn sweep(target: &Path) {
    let inside = target.join(PREFIX).to_str().map(str::to_owned);
    for start in [beside(target), inside].into_iter().flatten() {
        let Some(Ok(entries)) = Path::new(&start).parent().map(fs::read_dir) else { continue };
        let left = entries.flatten().map(|e| e.path()).filter(|p| p.to_str().is_some_and(|p| p.starts_with(&start)));
        for dir in left {
            let handle = File::open(&dir).ok().filter(|handle| handle.try_lock().is_ok());
            if handle.is_some() {
                let _ = retire(&dir, target);
            }
        }
    }
}

/// Removes the result in a directory that is no longer needed; what else is in it goes to the target.
fn retire(dir: &Path, target: &Path) -> io::Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    remove_results(dir)?;
    gone(fs::remove_file(dir.join(MANIFEST_FILE)))?;
    merge(dir, target, Conflict::Keep)?;
    gone(fs::remove_dir(dir))
}

/// Removes every file of a result but its manifest.
fn remove_results(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)?.flatten() {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let class = name.strip_prefix(CLASS_PREFIX).is_some_and(|k| k.parse::<usize>().is_ok());
        if class && path.is_dir() {
            remove_results(&path)?;
            gone(fs::remove_file(path.join(MANIFEST_FILE)))?;
            // It stays if somebody keeps something of their own in it.
            let _ = fs::remove_dir(path);
        } else if name != MANIFEST_FILE && FILES.iter().chain([&MANIFEST_FILE]).any(|file| is_of(&name, file)) {
            gone(fs::remove_file(path))?;
        }
    }
    Ok(())
}

/// Whether `name` is that of a file of a result, or of one that was being written.
fn is_of(name: &str, file: &str) -> bool {
    name.strip_prefix(file).is_some_and(|rest| rest.is_empty() || (rest.starts_with('.') && rest.ends_with(".tmp")))
}

/// What becomes of a file whose name is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conflict {
    Replace,
    Keep,
}

/// Moves all that is in `from` to `to`.
fn merge(from: &Path, to: &Path, conflict: Conflict) -> io::Result<()> {
    for entry in fs::read_dir(from)?.flatten() {
        let (source, goal) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() && goal.is_dir() {
            merge(&source, &goal, conflict)?;
            // Not empty if something was kept.
            let _ = fs::remove_dir(source);
        } else if conflict == Conflict::Replace || !goal.exists() {
            gone(fs::rename(source, goal))?;
        }
    }
    Ok(())
}

/// Somebody else removing it first is as good.
fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// So that a power failure finds either the old names or the new ones; file systems that cannot are left alone.
fn sync(dir: &Path) {
    for place in [Some(dir), dir.parent()].into_iter().flatten() {
        let _ = File::open(place).and_then(|handle| handle.sync_all());
    }
}
