//! The client's two threads while requests are due: one keeps the schedule, the other reads the answers.
//! Between them a switchboard says which connection carries which request, and holds those that wait for one.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::client::{Answer, Answers, EVERY};
use crate::{Failure, clock, http};

/// How long the last answers may take once the schedule has ended.
const DRAIN: Duration = Duration::from_secs(30);

/// Which connection carries which request. Only its holder writes on a connection.
struct Desk {
    free: VecDeque<usize>,
    waiting: VecDeque<u32>,
    carries: Vec<Option<u32>>,
    sent: u32,
    answered: u32,
}

struct Switchboard<'a> {
    lines: &'a [TcpStream],
    requests: &'a [Vec<u8>],
    desk: Mutex<Desk>,
}

impl Switchboard<'_> {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_due(&self, number: u32) -> Result<(), Failure> {
        let mut desk = self.desk();
        desk.sent += 1;
        let Some(line) = desk.free.pop_front() else {
            desk.waiting.push_back(number);
            return Ok(());
        };
        desk.carries[line] = Some(number);
        drop(desk);
        self.write(line, number)
    }

    /// Frees the line for the request that has waited longest; returns the number of the answered one.
    fn is_answered(&self, line: usize) -> Result<u32, Failure> {
        let mut desk = self.desk();
        let number = desk.carries[line].take().ok_or("an answer nobody asked for")?;
        desk.answered += 1;
        match desk.waiting.pop_front() {
            None => desk.free.push_back(line),
            Some(next) => {
                desk.carries[line] = Some(next);
                drop(desk);
                self.write(line, next)?;
            }
        }
        Ok(number)
    }

    fn unanswered(&self) -> u32 {
        let desk = self.desk();
        desk.sent - desk.answered
    }

    /// A request is far smaller than a socket's buffer, and the line is empty: one write takes it whole.
    fn write(&self, line: usize, number: u32) -> Result<(), Failure> {
        let request = &self.requests[number as usize % self.requests.len()];
        match (&self.lines[line]).write(request)? {
            n if n == request.len() => Ok(()),
            n => Err(format!("a request was cut at {n} bytes").into()),
        }
    }
}

/// Keeps the schedule until `stop`, then waits for what is still unanswered.
pub(crate) fn converse(
    mut lines: Vec<TcpStream>,
    requests: &[Vec<u8>],
    zero: Instant,
    stop: &AtomicBool,
) -> Result<Answers, Failure> {
    let mut poll = Poll::new()?;
    for (line, stream) in lines.iter_mut().enumerate() {
        poll.registry().register(stream, Token(line), Interest::READABLE)?;
    }
    let desk = Desk {
        free: (0..lines.len()).collect(),
        waiting: VecDeque::new(),
        carries: vec![None; lines.len()],
        sent: 0,
        answered: 0,
    };
    let board = Switchboard { lines: &lines, requests, desk: Mutex::new(desk) };
    thread::scope(|scope| {
        let schedule = thread::Builder::new().name("schedule".into()).spawn_scoped(scope, || {
            let result = keep_schedule(&board, zero, stop);
            // Also on an error: the reader must not wait for a schedule that is over.
            stop.store(true, Relaxed);
            result
        })?;
        let answers = read_answers(&board, &mut poll, zero, stop);
        stop.store(true, Relaxed);
        let lateness = schedule.join().map_err(|_| "the schedule panicked")??;
        Ok(Answers { all: answers?, lateness })
    })
}

fn due(number: u32) -> Duration {
    EVERY * number
}

/// Returns by how much it was late at worst.
fn keep_schedule(board: &Switchboard<'_>, zero: Instant, stop: &AtomicBool) -> Result<Duration, Failure> {
    let mut lateness = Duration::ZERO;
    for number in 1.. {
        clock::hold_until(zero + due(number));
        if stop.load(Relaxed) {
            break;
        }
        lateness = lateness.max(zero.elapsed().saturating_sub(due(number)));
        board.is_due(number)?;
    }
    Ok(lateness)
}

fn read_answers(
    board: &Switchboard<'_>,
    poll: &mut Poll,
    zero: Instant,
    stop: &AtomicBool,
) -> Result<Vec<Answer>, Failure> {
    let mut answers = Vec::with_capacity(4096);
    let mut buffers = vec![Vec::new(); board.lines.len()];
    let mut events = Events::with_capacity(board.lines.len());
    let mut ended: Option<Instant> = None;
    loop {
        match poll.poll(&mut events, Some(10 * EVERY)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled?,
        }
        for event in &events {
            let line = event.token().0;
            if take_response(&board.lines[line], &mut buffers[line])? {
                let now = zero.elapsed();
                let due = due(board.is_answered(line)?);
                answers.push(Answer { due, latency: now.saturating_sub(due) });
            }
        }
        if stop.load(Relaxed) {
            let since = *ended.get_or_insert_with(clock::now);
            match board.unanswered() {
                // One more turn: the schedule may have been between its look at `stop` and its send.
                0 if since.elapsed() > 5 * EVERY => return Ok(answers),
                0 => {}
                left if since.elapsed() > DRAIN => {
                    return Err(format!("{left} requests unanswered {DRAIN:?} after the last was due").into());
                }
                _ => {}
            }
        }
    }
}

/// Reads all there is; whether a whole response was among it. One request a line, so one response a line.
fn take_response(mut stream: &TcpStream, buffer: &mut Vec<u8>) -> Result<bool, Failure> {
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return Err("the service closed a connection".into()),
            Ok(n) => buffer.extend_from_slice(&chunk[..n]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let complete = http::response_length(buffer)?.is_some_and(|length| buffer.len() >= length);
    if complete {
        buffer.clear();
    }
    Ok(complete)
}
