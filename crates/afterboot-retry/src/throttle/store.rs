//! One small value in a file that several processes share.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Longer content is not a day; reading stops here.
const MOST_BYTES: u64 = 64;

pub(super) struct FileStore<'a> {
    path: &'a Path,
}

pub(super) enum Answer {
    /// Read, and written if asked for.
    Done,
    /// Another process or thread holds the lock.
    Busy,
    /// The store cannot be used.
    Broken(io::Error),
}

impl<'a> FileStore<'a> {
    pub(super) fn new(path: &'a Path) -> FileStore<'a> {
        FileStore { path }
    }

    /// Reads the value and replaces it by what `decide` returns, if anything, under the lock.
    ///
    /// The lock is on a separate file: the file of the value is replaced, and a lock on the old one would exclude no one.
    /// It is released here, and by the system when the process dies.
    pub(super) fn update(&self, decide: impl FnOnce(Option<&str>) -> Option<String>) -> Answer {
        let lock = match self.lock_file() {
            Ok(lock) => lock,
            Err(error) => return Answer::Broken(error),
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Answer::Busy,
            Err(TryLockError::Error(error)) => return Answer::Broken(error),
        }
        let updated = self
            .read()
            .and_then(|stored| decide(stored.as_deref()).map_or(Ok(()), |value| self.replace(&value)));
        // Not by closing alone: a child that another thread is forking holds the file open until it executes its program.
        drop(lock.unlock());
        match updated {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Broken(error),
        }
    }

    fn lock_file(&self) -> io::Result<File> {
        let mut path = self.path.as_os_str().to_owned();
        path.push(".lock");
        OpenOptions::new().create(true).truncate(false).write(true).open(PathBuf::from(path))
    }

    /// `None` where there is no file, or where what it holds is not even text.
    fn read(&self) -> io::Result<Option<String>> {
        let file = match File::open(self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes).ok())
    }

    /// A reader sees the old value or the new one, never half of one, and so does the next start after a power cut.
    fn replace(&self, value: &str) -> io::Result<()> {
        // Empty for a name alone, which stands for the current folder.
        let folder = self.path.parent().unwrap_or(Path::new(""));
        // A path that is a folder would be found out by the rename only, after a file was written beside it.
        if fs::metadata(self.path).is_ok_and(|found| found.is_dir()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(value.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.path)?;
        Ok(())
    }
}
