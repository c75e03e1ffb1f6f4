//! The disk's own thread. It is made when it is first needed and stays; the network has no part in it.

use std::io;
use std::sync::mpsc;
use std::thread;

use super::calls::{Call, Done};
use crate::spool::{Durability, Stamp};
use crate::state::reply::{self, Answerer, Asker};

/// Ends, and closes the spool, when this is dropped and the calls before that are done.
#[derive(Debug)]
pub(super) struct Worker(mpsc::Sender<Job>);

struct Job {
    call: Call,
    durability: Durability,
    now: Stamp,
    answer: Answerer<Done>,
}

impl Worker {
    pub(super) fn start() -> io::Result<Worker> {
        let (jobs, asked) = mpsc::channel();
        // Linux shows 15 characters of a name.
        thread::Builder::new().name("afterboot-disk".to_owned()).spawn(move || work(asked))?;
        Ok(Worker(jobs))
    }

    /// A thread that is gone drops the answerer, which is an answer.
    pub(super) fn ask(&self, call: Call, durability: Durability, now: Stamp) -> Asker<Done> {
        let (answer, asker) = reply::channel();
        let _ = self.0.send(Job { call, durability, now, answer });
        asker
    }
}

fn work(asked: mpsc::Receiver<Job>) {
    let mut spool = None;
    while let Ok(Job { call, durability, now, answer }) = asked.recv() {
        answer.say(call.run(&mut spool, durability, &now));
    }
}
