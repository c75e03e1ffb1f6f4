//! Which file a name leads to.

use std::fs;

/// Not given to another file while this one is open.
#[cfg(unix)]
pub(super) type FileId = (u64, u64);

#[cfg(unix)]
pub(super) fn file_id(meta: &fs::Metadata) -> FileId {
    use std::os::unix::fs::MetadataExt;
    (meta.dev(), meta.ino())
}

// An open file keeps its name there.
#[cfg(not(unix))]
pub(super) type FileId = ();

#[cfg(not(unix))]
pub(super) fn file_id(_: &fs::Metadata) -> FileId {}

#[cfg(unix)]
pub(super) fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    file_id(a) == file_id(b)
}
