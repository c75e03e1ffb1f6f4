//! With processes that are killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::*;

const ROLE: &str = "AFTERBOOT_SPOOL_TEST_ROLE";
const ROOT: &str = "AFTERBOOT_SPOOL_TEST_ROOT";

/// Another process in this role, which has said what it did and waits.
struct Other {
    child: Child,
    said: String,
    _out: BufReader<ChildStdout>,
}

impl Other {
    fn start(place: &Place, role: &str) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "spool::tests::process::the_other_process", "--nocapture"])
            .env(ROLE, role)
            .env(ROOT, place.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("did ") {
            said.clear();
            assert!(out.read_line(&mut said).unwrap() > 0, "the other process ended");
        }
        let said = said.split("did ").nth(1).unwrap().trim().to_owned();
        Other { child, said, _out: out }
    }

    fn kill(mut self) {
        // SIGKILL on Unix.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Does nothing but where [`Other`] has started it.
#[test]
fn the_other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut spool = Spool::open(&SpoolOptions::new(std::env::var_os(ROOT).unwrap()), "app").unwrap();
    let did = match role.as_str() {
        "write" => {
            for seq in 0..30 {
                put(&mut spool, &[row(seq)]);
            }
            spool.put_dead(&[], &[letter(row(99))], Durability::Process).unwrap();
            30
        }
        "adopt" => spool.adopt(None, &stamp(NOW), 1000).rows,
        other => panic!("{other}"),
    };
    std::io::stdout().write_all(format!("did {did}\n").as_bytes()).unwrap();
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

/// B1, B15: after `kill -9` all is there, and the lock holds nobody off.
#[test]
fn what_was_put_survives_kill_9_and_is_adopted() {
    let place = Place::new();
    let other = Other::start(&place, "write");
    let mut spool = place.open();
    assert_eq!(spool.adopt(None, &stamp(NOW), 1000).rows, 0, "it lives");
    let listed = crate::api::dead::DeadLetters::open(place.root()).unwrap().list(None, 9).unwrap();
    assert_eq!(listed.len(), 1, "its dead letters can be read meanwhile");
    other.kill();
    let adopted = spool.adopt(None, &stamp(NOW), 1000);
    assert_eq!((adopted.rows, adopted.dead), (30, 1));
    assert_eq!(seqs_for(&mut spool, None), (0..30).collect::<Vec<_>>());
    assert_eq!(place.processes().len(), 1);
}

/// B15: by a lock of the system, so that it holds between processes too.
#[test]
fn processes_that_race_for_orphans_adopt_each_row_once() {
    let place = Place::new();
    for orphan in 0..5_u8 {
        place.orphan(&(0..60).map(|seq| NewRow { stream: stream(orphan), ..row(seq) }).collect::<Vec<_>>());
    }
    let others: Vec<Other> = std::thread::scope(|scope| {
        let starting: Vec<_> = (0..3).map(|_| scope.spawn(|| Other::start(&place, "adopt"))).collect();
        starting.into_iter().map(|other| other.join().unwrap()).collect()
    });
    let adopted: u64 = others.iter().map(|other| other.said.parse::<u64>().unwrap()).sum();
    let mut spool = place.open();
    let left = spool.adopt(None, &stamp(NOW), 1000).rows;
    assert_eq!(adopted + left, 300);
    others.into_iter().for_each(Other::kill);
    assert_eq!(spool.adopt(None, &stamp(NOW), 1000).rows, adopted);
    assert_eq!(spool.totals().rows, 300);
}
