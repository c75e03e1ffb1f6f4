//! What others do to the files.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::program::Corruption;

const DB: &str = "spool.db";

fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Of every process that spools there.
fn databases(root: &Path) -> Vec<PathBuf> {
    entries(root).into_iter().map(|dir| dir.join(DB)).filter(|path| path.exists()).collect()
}

/// Everything, or the files whose names end so; `*` takes what belongs to it along.
pub(super) fn remove(root: &Path, what: &str) {
    if what.is_empty() {
        let _ = fs::remove_dir_all(root);
        return;
    }
    for file in entries(root).iter().flat_map(|dir| entries(dir)) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(what) || what.strip_suffix('*').is_some_and(|start| name.starts_with(start)) {
            let _ = fs::remove_file(&file);
        }
    }
}

pub(super) fn corrupt(root: &Path, how: Corruption) {
    for path in databases(root) {
        match how {
            Corruption::Row => drop(spoil_rows(&path)),
            Corruption::Pages => spoil_pages(&path),
        }
    }
}

fn spoil_rows(path: &Path) -> rusqlite::Result<()> {
    let db = Connection::open(path)?;
    let mut tables =
        db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%body BLOB%'")?;
    let tables: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for table in tables {
        let spoil =
            format!("UPDATE {table} SET body = substr(body, 1, max(0, length(body) - 20)) WHERE id % 2 = 0");
        db.execute(&spoil, [])?;
    }
    Ok(())
}

fn spoil_pages(path: &Path) {
    let Ok(file) = OpenOptions::new().write(true).open(path) else { return };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    for page in 1..length / 4096 {
        let _ = file.write_all_at(&[0x5a; 16], page * 4096 + 100);
    }
}

/// Somebody else is in the middle of a transaction, in real time. Returns once it has begun.
pub(super) fn lock(root: &Path, time: Duration) {
    for path in databases(root) {
        let (begun, has_begun) = mpsc::channel();
        thread::spawn(move || {
            let Ok(db) = Connection::open(path) else { return };
            if db.execute_batch("BEGIN IMMEDIATE").is_ok() {
                let _ = begun.send(());
                thread::park_timeout(time);
            }
        });
        let _ = has_begun.recv_timeout(Duration::from_secs(1));
    }
}

/// What a process that is killed now leaves behind: nobody's lock, and no shared memory that could not be made again.
pub(super) fn copy(from: &Path, to: &Path) {
    for dir in entries(from) {
        let target = to.join(dir.file_name().unwrap_or_default());
        if !dir.is_dir() {
            continue;
        }
        let _ = fs::create_dir_all(&target);
        for file in entries(&dir) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // Who had the directory is this process, which is to be another one's from here on.
            match name.as_str() {
                "spool.db-shm" | "alive" => {}
                "lock" => drop(fs::write(target.join("lock"), "")),
                _ => drop(fs::copy(&file, target.join(name))),
            }
        }
    }
    // As the beacon makes them: nobody else may look in.
    use std::os::unix::fs::PermissionsExt;
    for dir in entries(to).iter().map(PathBuf::as_path).chain([to]) {
        let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    }
}
