//! Files and folders of the spool that go away, or become others, while the process runs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::child::{Order, Process, Role};
use crate::collector::{Mode, Server};
use crate::common::{Root, assert_clean, balance, drained, names_in, secs, until, until_arrived};

/// A durable post before and three after something happened, then kill -9. What has a receipt is found by the next
/// process, and so is what had one before, where `before_too`.
fn everything_with_a_receipt_is_found(happens: impl Fn(&Path), before_too: bool) {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let order =
        Order { role: Role::Obey, url: server.url(), root: root.path(), user: None, name: String::new() };
    let mut process = Process::start(&order);
    let mut names = Vec::new();
    for name in ["before", "after-1", "after-2", "after-3"] {
        if name == "after-1" {
            happens(&root.processes()[0]);
        }
        process.tell(name);
        let said = process.next(secs(30)).expect("an answer");
        assert_eq!(said, format!("ok {name}"), "the disk works: a receipt may be had");
        names.push(name.to_owned());
    }
    process.kill();
    if !before_too {
        names.remove(0);
    }
    server.set_mode(Mode::Ok);
    let next = root.beacon(&server).build().expect("a beacon");
    until_arrived(&server, &names);
    until("an empty spool", || drained(&next));
    balance(next.shutdown_blocking(secs(5)));
    assert_clean(&server);
    assert_eq!(server.look(|ledger| names_in(ledger).len()), names.len());
}

fn remove(dir: &Path, files: &[&str]) {
    for file in files {
        fs::remove_file(dir.join(file)).expect("a file");
    }
}

/// B1: the rows are in a file without a name until then, and are written anew.
#[test]
fn what_has_a_receipt_is_found_though_the_database_was_removed() {
    everything_with_a_receipt_is_found(|dir| remove(dir, &["spool.db"]), true);
}

/// B1
#[test]
fn what_has_a_receipt_is_found_though_the_log_was_removed() {
    everything_with_a_receipt_is_found(|dir| remove(dir, &["spool.db-wal"]), true);
}

/// B1
#[test]
fn what_has_a_receipt_is_found_though_the_logs_index_was_removed() {
    everything_with_a_receipt_is_found(|dir| remove(dir, &["spool.db-shm"]), true);
}

/// B1
#[test]
fn what_has_a_receipt_is_found_though_all_files_of_the_database_were_removed() {
    let files = ["spool.db", "spool.db-wal", "spool.db-shm"];
    everything_with_a_receipt_is_found(|dir| remove(dir, &files), true);
}

/// B1
#[test]
fn what_has_a_receipt_is_found_though_the_database_was_replaced_by_another() {
    for file in ["spool.db", "spool.db-wal", "spool.db-shm"] {
        everything_with_a_receipt_is_found(
            |dir| {
                fs::write(dir.join("other"), "something else").expect("a file");
                fs::rename(dir.join("other"), dir.join(file)).expect("its name");
            },
            true,
        );
    }
}

/// B1: what was in the log still is.
#[test]
fn what_has_a_receipt_is_found_though_the_database_was_emptied() {
    everything_with_a_receipt_is_found(|dir| fs::write(dir.join("spool.db"), "").expect("a file"), true);
}

/// B1: what was in the directory is gone with it.
#[test]
fn what_has_a_receipt_is_found_though_the_directory_was_removed_or_moved() {
    everything_with_a_receipt_is_found(|dir| fs::remove_dir_all(dir).expect("a folder"), false);
    everything_with_a_receipt_is_found(
        |dir| fs::rename(dir, dir.with_file_name("moved")).expect("a folder"),
        false,
    );
    let root = |dir: &Path| -> PathBuf { dir.parent().expect("the root").to_owned() };
    everything_with_a_receipt_is_found(|dir| fs::remove_dir_all(root(dir)).expect("a folder"), false);
    everything_with_a_receipt_is_found(
        |dir| fs::rename(root(dir), root(dir).with_file_name("moved")).expect("a folder"),
        false,
    );
    // Another one stands in its place, as a restored backup does.
    everything_with_a_receipt_is_found(
        |dir| {
            fs::rename(dir, dir.with_file_name("moved")).expect("a folder");
            fs::create_dir(dir).expect("a folder");
            fs::write(dir.join("lock"), "").expect("a file");
            fs::write(dir.join("spool.db"), "").expect("a file");
        },
        false,
    );
}
