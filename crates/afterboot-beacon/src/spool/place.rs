//! Directories, locks and files. A directory belongs to the process that holds the lock on the file `lock` in it. Neither its
//! name nor its age says anything.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rand::TryRng;
use rand::rngs::SysRng;

use super::SpoolError;
use super::file_id::same_file;
use super::owner::{self, Owned};

const LOCK: &str = "lock";
pub(super) const DB: &str = "spool.db";
pub(super) const WAL: &str = "spool.db-wal";
pub(super) const SHM: &str = "spool.db-shm";
pub(super) const FILES: [&str; 3] = [DB, WAL, SHM];
pub(super) const NEW: &str = "spool.db-new";
const ASIDE: &str = "aside";
const PREFIX: &str = "p-";
const NAME_DIGITS: usize = 12;
const MAX_ASIDE: usize = 3;

/// The folder that all processes of an application share.
#[derive(Clone, Debug)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// Makes the folder where it is missing, and refuses one that others could reach into.
    pub(super) fn prepare(dir: &Path) -> Result<Root, SpoolError> {
        if fs::symlink_metadata(dir).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            private(DirBuilder::new().recursive(true))
                .create(dir)
                .map_err(|error| SpoolError::io("make", dir, error))?;
            if let Some(parent) = dir.parent() {
                sync_dir(parent);
            }
        }
        Root::existing(dir)
    }

    pub(crate) fn existing(dir: &Path) -> Result<Root, SpoolError> {
        let meta = fs::symlink_metadata(dir).map_err(|error| SpoolError::io("look at", dir, error))?;
        if let Some(allowed) = unsafe_dir(&meta) {
            return Err(SpoolError::option("spool dir", dir, allowed));
        }
        // A link further up is the administrator's (`/var` is one on some systems). SQLite refuses all of them.
        let dir = fs::canonicalize(dir).map_err(|error| SpoolError::io("look at", dir, error))?;
        Ok(Root(dir))
    }

    /// The directories of all processes, in the order of their names, which say nothing.
    pub(crate) fn processes(&self) -> Result<Vec<PathBuf>, SpoolError> {
        let entries = fs::read_dir(&self.0).map_err(|error| SpoolError::io("read", &self.0, error))?;
        let mut dirs: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| process_name(path).is_some())
            .collect();
        dirs.sort();
        Ok(dirs)
    }

    /// The directory of this process name, which came from outside.
    pub(crate) fn process(&self, name: &str) -> Option<PathBuf> {
        let dir = self.0.join(format!("{PREFIX}{name}"));
        process_name(&dir).map(|_| dir.clone())
    }

    /// Moves an unreadable database out of the way, for inspection. The newest few are kept, within `max_bytes`.
    pub(super) fn set_aside(&self, dir: &Path, max_bytes: u64) -> Result<(), SpoolError> {
        let aside = self.0.join(ASIDE);
        let _ = private(&mut DirBuilder::new()).create(&aside);
        let kept = fs::symlink_metadata(&aside).is_ok_and(|meta| unsafe_dir(&meta).is_none());
        let name = format!("{}-{}", process_name(dir).unwrap_or_default(), random_name().unwrap_or_default());
        for file in FILES {
            let from = dir.join(file);
            let to = aside.join(format!("{name}{}", &file[DB.len()..]));
            if kept && file != SHM && fs::rename(&from, to).is_ok() {
                continue;
            }
            // Going on is worth more than keeping it.
            match fs::remove_file(&from) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(SpoolError::io("set aside", &from, error));
                }
                _ => {}
            }
        }
        if kept {
            prune(&aside, max_bytes);
        }
        Ok(())
    }

    /// Deletes the databases that were set aside: whose events they hold is not known.
    pub(crate) fn clear_aside(&self) {
        prune(&self.0.join(ASIDE), 0);
    }
}

/// Keeps the newest databases, each with its log.
fn prune(aside: &Path, max_bytes: u64) {
    let Ok(entries) = fs::read_dir(aside) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let meta = fs::symlink_metadata(&path).ok()?;
            let log = fs::symlink_metadata(log_of(&path)).map_or(0, |log| log.len());
            // A log goes with its database; only one that lost it stands for itself.
            let base = path.to_str()?.strip_suffix("-wal");
            if base.is_some_and(|base| Path::new(base).exists()) {
                return None;
            }
            Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len() + log, path))
        })
        .collect();
    files.sort();
    let mut sum = 0;
    for (kept, (_, bytes, path)) in files.iter().rev().enumerate() {
        sum += bytes;
        if kept >= MAX_ASIDE || sum > max_bytes {
            let _ = fs::remove_file(path);
            let _ = fs::remove_file(log_of(path));
        }
    }
}

fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    PathBuf::from(log)
}

/// A process's directory, held by its lock until this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    dir: PathBuf,
    lock: File,
    owned: Owned,
}

/// What became of the attempt to take a directory.
#[derive(Debug)]
pub(crate) enum Take {
    Ours(Home),
    /// Its process lives, or another process takes it at this moment.
    Busy,
    /// Not known yet: another thread of this process takes long over one.
    Later,
    /// It was empty, or another process was faster.
    Gone,
    /// Not made by this crate, or not safe to touch.
    Foreign,
}

impl Home {
    pub(super) fn create(root: &Root) -> Result<Home, SpoolError> {
        let mut last = None;
        // A process that looks for orphans may take a directory between its creation and its locking. It removes it then,
        // as it is empty.
        for _ in 0..8 {
            let name =
                random_name().map_err(|error| SpoolError::io("name a directory in", &root.0, error))?;
            let dir = root.0.join(format!("{PREFIX}{name}"));
            match Home::create_at(&dir) {
                Ok(Some(home)) => {
                    sync_dir(&root.0);
                    return Ok(home);
                }
                Ok(None) => {}
                // The name is taken, or it was removed before it had its lock.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) =>
                {
                    last = Some(SpoolError::io("make", &dir, error));
                }
                Err(error) => return Err(SpoolError::io("make", &dir, error)),
            }
        }
        let taken = io::Error::other("it was taken each time");
        Err(last.unwrap_or_else(|| SpoolError::io("make a directory in", &root.0, taken)))
    }

    fn create_at(dir: &Path) -> io::Result<Option<Home>> {
        private(&mut DirBuilder::new()).create(dir)?;
        let home = Home::lock_new(dir);
        if home.is_err() {
            // It is tried again and again: nothing stays of it.
            for file in made().chain([&LOCK]) {
                let _ = fs::remove_file(dir.join(file));
            }
            let _ = fs::remove_dir(dir);
        }
        home
    }

    fn lock_new(dir: &Path) -> io::Result<Option<Home>> {
        let lock = open_lock(dir, true)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let owned = Owned::by_lock(dir, &lock);
        Ok(owned.map(|owned| Home { dir: dir.to_owned(), lock, owned }).filter(Home::is_named))
    }

    /// Takes the directory of a process that is gone. A lock file that it left behind does not block this.
    pub(crate) fn take(dir: &Path) -> Result<Take, SpoolError> {
        let Ok(meta) = fs::symlink_metadata(dir) else { return Ok(Take::Gone) };
        if unsafe_dir(&meta).is_some() {
            return Ok(Take::Foreign);
        }
        let lock = match open_lock(dir, false) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Without its lock file it cannot be told from a living one, unless it is empty.
                let empty = fs::remove_dir(dir).is_ok();
                return Ok(if empty { Take::Gone } else { Take::Foreign });
            }
            Err(_) => return Ok(Take::Foreign),
        };
        Home::claim(dir, lock)
    }

    /// Takes the directory by its open lock file, where that still is its lock file.
    pub(super) fn claim(dir: &Path, lock: File) -> Result<Take, SpoolError> {
        let owned = {
            let Some(_turn) = owner::turn() else { return Ok(Take::Later) };
            if owner::is_ours(&lock) {
                return Ok(Take::Busy);
            }
            match lock.try_lock() {
                Ok(()) if !is_named(dir, &lock) => return Ok(Take::Gone),
                Ok(()) => Owned::by_lock(dir, &lock),
                Err(TryLockError::WouldBlock) => Owned::inherited(dir, &lock),
                Err(TryLockError::Error(error)) => return Err(SpoolError::io("lock", dir, error)),
            }
        };
        let Some(owned) = owned else { return Ok(Take::Busy) };
        let home = Home { dir: dir.to_owned(), lock, owned };
        // Its previous owner may have removed the directory after we opened the file.
        if !home.is_named() {
            return Ok(Take::Gone);
        }
        Ok(if home.holds_links() { Take::Foreign } else { Take::Ours(home) })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn has_db(&self) -> bool {
        fs::symlink_metadata(self.db()).is_ok()
    }

    /// Returns whether the database is gone and its log left.
    pub(super) fn lost_its_db(&self) -> bool {
        !self.has_db() && fs::symlink_metadata(self.dir.join(WAL)).is_ok_and(|log| log.len() > 0)
    }

    pub(super) fn db(&self) -> PathBuf {
        self.dir.join(DB)
    }

    /// Returns whether the path still leads to the locked file.
    pub(super) fn is_named(&self) -> bool {
        is_named(&self.dir, &self.lock)
    }

    fn holds_links(&self) -> bool {
        FILES.iter().any(|file| fs::symlink_metadata(self.dir.join(file)).is_ok_and(|meta| !meta.is_file()))
    }

    /// Removes the directory, whose database must be closed. What this crate did not make stays.
    pub(super) fn remove(self) -> Result<(), SpoolError> {
        let failed = |error| SpoolError::io("remove", &self.dir, error);
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if name != LOCK && !made().any(|file| name == *file) {
                return Ok(());
            }
        }
        // The lock goes last: while it is there, the directory is taken.
        for file in made().chain([&LOCK]) {
            match fs::remove_file(self.dir.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        match fs::remove_dir(&self.dir) {
            // Without its lock it was as good as gone, and another process took it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(failed),
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let is_named = self.is_named();
        self.owned.let_go(&self.dir, &self.lock, is_named);
    }
}

/// All that there may be in a directory, beside the lock.
fn made() -> impl Iterator<Item = &'static &'static str> {
    FILES.iter().chain([&NEW]).chain(owner::MADE)
}

fn is_named(dir: &Path, lock: &File) -> bool {
    let named = fs::symlink_metadata(dir.join(LOCK));
    matches!((named, lock.metadata()), (Ok(named), Ok(held)) if same_file(&named, &held))
}

/// The database of a directory that another process holds, for reading.
pub(crate) fn db_in(dir: &Path) -> PathBuf {
    dir.join(DB)
}

/// The random part of a process directory's name.
pub(crate) fn process_name(dir: &Path) -> Option<&str> {
    let name = dir.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (name.len() == NAME_DIGITS && name.bytes().all(hex)).then_some(name)
}

// From the system: a process that was forked off must not draw its parent's names.
fn random_name() -> io::Result<String> {
    let bits = SysRng.try_next_u64().map_err(io::Error::other)?;
    Ok(format!("{:0NAME_DIGITS$x}", bits >> (64 - 4 * NAME_DIGITS)))
}

/// A new entry must survive a power cut as well as what is in it. Some file systems cannot do that for directories, and
/// there it is done by itself or not at all.
pub(super) fn sync_dir(dir: &Path) {
    if let Ok(dir) = File::open(dir) {
        let _ = dir.sync_all();
    }
}

#[cfg(unix)]
fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    use std::os::unix::fs::DirBuilderExt;
    builder.mode(0o700)
}

#[cfg(unix)]
fn unsafe_dir(meta: &fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    if meta.is_symlink() {
        return Some("a directory that is no symbolic link");
    }
    if !meta.is_dir() {
        return Some("a directory");
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Some("a directory that the user of this process owns");
    }
    (meta.mode() & 0o002 != 0).then_some("a directory that others cannot write to")
}

#[cfg(unix)]
pub(super) fn open_lock(dir: &Path, new: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(new)
        .mode(0o600)
        .custom_flags(flags)
        .open(dir.join(LOCK))
}

#[cfg(not(unix))]
fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    builder
}

#[cfg(not(unix))]
fn unsafe_dir(meta: &fs::Metadata) -> Option<&'static str> {
    if meta.is_symlink() {
        return Some("a directory that is no symbolic link");
    }
    (!meta.is_dir()).then_some("a directory")
}

#[cfg(not(unix))]
pub(super) fn open_lock(dir: &Path, new: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(new).open(dir.join(LOCK))
}
