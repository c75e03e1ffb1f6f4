use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

/// An error of a spool or of its dead letters.
#[derive(Debug)]
pub struct SpoolError(Kind);

#[derive(Debug)]
enum Kind {
    Option { field: &'static str, value: String, allowed: &'static str },
    Io { doing: &'static str, path: PathBuf, error: io::Error },
    Sql { doing: &'static str, error: rusqlite::Error },
    Newer { path: PathBuf, version: i64, known: i64 },
    TooLarge { bytes: usize, max: usize },
    Live { path: PathBuf },
    Log { bytes: u64, max: u64 },
    NoDeadLetter { id: String },
}

impl SpoolError {
    pub(crate) fn option(field: &'static str, value: impl fmt::Debug, allowed: &'static str) -> SpoolError {
        SpoolError(Kind::Option { field, value: format!("{value:?}"), allowed })
    }

    pub(crate) fn io(doing: &'static str, path: &Path, error: io::Error) -> SpoolError {
        SpoolError(Kind::Io { doing, path: path.to_owned(), error })
    }

    pub(crate) fn sql(doing: &'static str, error: rusqlite::Error) -> SpoolError {
        SpoolError(Kind::Sql { doing, error })
    }

    pub(crate) fn newer(path: &Path, version: i64, known: i64) -> SpoolError {
        SpoolError(Kind::Newer { path: path.to_owned(), version, known })
    }

    pub(crate) fn too_large(bytes: usize, max: usize) -> SpoolError {
        SpoolError(Kind::TooLarge { bytes, max })
    }

    pub(crate) fn log(bytes: u64, max: u64) -> SpoolError {
        SpoolError(Kind::Log { bytes, max })
    }

    pub(crate) fn live(path: &Path) -> SpoolError {
        SpoolError(Kind::Live { path: path.to_owned() })
    }

    pub(crate) fn no_dead_letter(id: impl fmt::Display) -> SpoolError {
        SpoolError(Kind::NoDeadLetter { id: id.to_string() })
    }

    /// Returns whether the disk or the spool is full. Nothing was changed, and the same call may succeed once there is room.
    pub fn is_full(&self) -> bool {
        match &self.0 {
            Kind::Io { error, .. } => {
                use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
                matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
            }
            Kind::Sql { error, .. } => error.sqlite_error().is_some_and(|error| {
                error.code == ErrorCode::DiskFull
                    || matches!(
                        error.extended_code,
                        ffi::SQLITE_IOERR_WRITE
                            | ffi::SQLITE_IOERR_FSYNC
                            | ffi::SQLITE_IOERR_TRUNCATE
                            | ffi::SQLITE_IOERR_SHMSIZE
                    )
            }),
            _ => false,
        }
    }

    /// Returns whether another process, or another beacon of this one, holds the directory.
    pub fn is_live(&self) -> bool {
        matches!(self.0, Kind::Live { .. })
    }

    /// Returns whether a newer version of this crate wrote the directory, which is left unchanged.
    pub fn is_newer(&self) -> bool {
        matches!(self.0, Kind::Newer { .. })
    }

    /// Returns whether the database file is not what this crate wrote.
    pub(crate) fn is_corrupt(&self) -> bool {
        let Kind::Sql { error, .. } = &self.0 else { return false };
        let Some(error) = error.sqlite_error() else {
            // A value of the wrong type or a row that an index names in vain.
            return !matches!(error, rusqlite::Error::InvalidQuery);
        };
        match error.code {
            // The statements and the schema are fixed, so an SQL error (a table or a column that is missing) and a value
            // above the limit are the file's doing too.
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TooBig | ErrorCode::Unknown => {
                true
            }
            _ => matches!(
                error.extended_code,
                ffi::SQLITE_IOERR_SHORT_READ
                    | ffi::SQLITE_IOERR_DATA
                    | ffi::SQLITE_IOERR_CORRUPTFS
                    | ffi::SQLITE_READONLY_DBMOVED
            ),
        }
    }
}

impl fmt::Display for SpoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Option { field, value, allowed } => write!(f, "{field} is {value}: {allowed} is allowed"),
            Kind::Io { doing, path, error } => write!(f, "cannot {doing} {path:?}: {error}"),
            Kind::Sql { doing, error } => write!(f, "cannot {doing} the spool's database: {error}"),
            Kind::Newer { path, version, known } => {
                write!(f, "{path:?} has schema version {version}: {known} is the newest known here")
            }
            Kind::TooLarge { bytes, max } => {
                write!(f, "a batch has {bytes} bytes compressed: at most {max} are allowed")
            }
            Kind::Log { bytes, max } => write!(
                f,
                "the log of the spool's database has {bytes} bytes, and at most {max} are allowed: another reader keeps \
                 the database open, so that the log cannot be written back"
            ),
            Kind::Live { path } => {
                write!(f, "{path:?} belongs to a running process: use the dead letters of its beacon")
            }
            Kind::NoDeadLetter { id } => write!(f, "there is no dead letter {id}"),
        }
    }
}

impl std::error::Error for SpoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Io { error, .. } => Some(error),
            Kind::Sql { error, .. } => Some(error),
            _ => None,
        }
    }
}
