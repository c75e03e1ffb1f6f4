//! The disk's own thread. It is made when it is first needed and stays; the network has no part in it.

use std::io;
use std::sync::mpsc;
use std::thread;

use super::call::{Call, Done};
use crate::base::faults::Machine;
use crate::spool::{Durability, Stamp};
use crate::state::reply::{self, ReplyReceiver, Responder};

/// Ends, and closes the spool, when this is dropped and the calls before that are done.
#[derive(Debug)]
pub(super) struct Worker(mpsc::Sender<Job>);

struct Job {
    call: Call,
    durability: Durability,
    now: Stamp,
    responder: Responder<Done>,
}

impl Worker {
    pub(super) fn start(machine: &Machine) -> io::Result<Worker> {
        if machine.refuses_threads() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (sender, jobs) = mpsc::channel();
        // Linux shows 15 characters of a name.
        thread::Builder::new().name("afterboot-disk".to_owned()).spawn(move || work(jobs))?;
        Ok(Worker(sender))
    }

    /// A thread that is gone drops the responder, which ends the wait.
    pub(super) fn call(&self, call: Call, durability: Durability, now: Stamp) -> ReplyReceiver<Done> {
        let (responder, receiver) = reply::channel();
        let _ = self.0.send(Job { call, durability, now, responder });
        receiver
    }
}

fn work(jobs: mpsc::Receiver<Job>) {
    let mut spool = None;
    while let Ok(Job { call, durability, now, responder }) = jobs.recv() {
        responder.send(call.run(&mut spool, durability, &now));
    }
}
