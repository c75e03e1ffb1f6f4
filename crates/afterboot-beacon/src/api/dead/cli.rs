//! The command `afterboot-beacon`, apart from its exit code and its streams, so that tests can run it.

mod args;
mod text;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};

use serde_json::json;

use self::args::{Command, Letters};
use self::text::{date, safe, safe_json, visible};
use super::DeadLetters;
use crate::spool::{DeadId, DeadLetter, SpoolError};

// Letters that are read at once, each with its body.
const PAGE: usize = 100;

/// What ends the command early.
enum Stop {
    /// It could not be done: exit code 1.
    Failed(String),
    /// The reader of the output is gone, which is no failure.
    Unread,
}

impl From<SpoolError> for Stop {
    fn from(error: SpoolError) -> Stop {
        Stop::Failed(error.to_string())
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::Unread,
            _ => Stop::Failed(format!("cannot write: {error}")),
        }
    }
}

/// Runs the command with these arguments, without the program's name. Returns the exit code: 0 done, 1 failed, 2 usage.
///
/// Text from a spool is untrusted and is escaped for the terminal.
pub fn command_line(
    args: impl IntoIterator<Item = OsString>,
    out: &mut impl Write,
    err: &mut impl Write,
) -> u8 {
    let command = match args::parse(args) {
        Ok(command) => command,
        Err(wrong) => {
            let _ = writeln!(err, "afterboot-beacon: {}\n{}", visible(&wrong), args::USAGE);
            return 2;
        }
    };
    match run(command, out).and_then(|()| Ok(out.flush()?)) {
        Ok(()) | Err(Stop::Unread) => 0,
        Err(Stop::Failed(why)) => {
            let _ = writeln!(err, "afterboot-beacon: {}", visible(&why));
            1
        }
    }
}

fn run(command: Command, out: &mut impl Write) -> Result<(), Stop> {
    match command {
        Command::Help => writeln!(out, "{}", args::USAGE)?,
        Command::Version => writeln!(out, "afterboot-beacon {}", env!("CARGO_PKG_VERSION"))?,
        Command::List { dir, json } => {
            let reader = DeadLetters::open(dir)?;
            each(&reader, |letter| Ok(if json { list_json(&letter, out) } else { list(&letter, out) }?))?;
        }
        Command::Show { dir, id } => show(&DeadLetters::open(dir)?.get(id)?, out)?,
        Command::Replay { dir, letters } => {
            let reader = DeadLetters::open(dir)?;
            let (letters, events) = by_process(&reader, letters, |ids| {
                reader.replay(ids).map(|replay| (replay.letters, replay.events))
            })?;
            writeln!(out, "replayed {letters} dead letters of {events} events")?;
        }
        Command::Purge { dir, letters } => {
            let reader = DeadLetters::open(dir)?;
            let (letters, events) =
                by_process(&reader, letters, |ids| Ok((ids.len() as u64, reader.purge(ids)?)))?;
            writeln!(out, "purged {letters} dead letters of {events} events")?;
        }
        Command::Erase { dir, user } => {
            let events = DeadLetters::open(dir)?.erase_user(&user)?;
            writeln!(out, "erased {events} events")?;
        }
        Command::Spool { dir } => spool(&DeadLetters::open(dir)?, out)?,
    }
    Ok(())
}

fn each(reader: &DeadLetters, mut act: impl FnMut(DeadLetter) -> Result<(), Stop>) -> Result<(), Stop> {
    let mut after = None;
    loop {
        let page = reader.list(after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.id());
        page.into_iter().try_for_each(&mut act)?;
    }
}

/// One process after the other: one that runs does not hold off the rest.
fn by_process(
    reader: &DeadLetters,
    letters: Letters,
    act: impl Fn(&[DeadId]) -> Result<(u64, u64), SpoolError>,
) -> Result<(u64, u64), Stop> {
    let mut processes: BTreeMap<u64, Vec<DeadId>> = BTreeMap::new();
    let mut add = |id: DeadId| {
        let ids = processes.entry(id.process).or_default();
        if !ids.contains(&id) {
            ids.push(id);
        }
    };
    match letters {
        Letters::These(ids) => ids.into_iter().for_each(add),
        Letters::All => each(reader, |letter| {
            add(letter.id());
            Ok(())
        })?,
    }
    let (mut done, mut failed) = ((0, 0), Vec::new());
    for ids in processes.into_values() {
        match act(&ids) {
            Ok((letters, events)) => done = (done.0 + letters, done.1 + events),
            Err(error) => failed.push(error.to_string()),
        }
    }
    match failed.is_empty() {
        true => Ok(done),
        false => Err(Stop::Failed(format!("{} ({} dead letters were done)", failed.join("; "), done.0))),
    }
}

fn list(letter: &DeadLetter, out: &mut impl Write) -> io::Result<()> {
    let status = letter.status().map_or_else(|| "-".to_owned(), |status| status.to_string());
    writeln!(
        out,
        "{}  {}  {}  {status}  {} events  {}  {}  {}",
        letter.id(),
        date(letter.at()),
        letter.priority().as_str(),
        letter.events(),
        safe(letter.app()),
        letter.user().map_or_else(|| "(anonymous)".to_owned(), |user| format!("user {}", safe(user))),
        safe(letter.reason()),
    )
}

fn list_json(letter: &DeadLetter, out: &mut impl Write) -> io::Result<()> {
    let line = json!({
        "id": letter.id().to_string(),
        "at": letter.at(),
        "app": letter.app(),
        "priority": letter.priority().as_str(),
        "status": letter.status(),
        "reason": letter.reason(),
        "user": letter.user(),
        "session": letter.session(),
        "events": letter.events(),
    });
    writeln!(out, "{}", safe_json(&line.to_string()))
}

fn show(letter: &DeadLetter, out: &mut impl Write) -> Result<(), Stop> {
    writeln!(out, "id        {}", letter.id())?;
    writeln!(out, "at        {}", date(letter.at()))?;
    writeln!(out, "app       {}", safe(letter.app()))?;
    writeln!(out, "reason    {}", safe(letter.reason()))?;
    if let Some(status) = letter.status() {
        writeln!(out, "status    {status}")?;
    }
    for (name, value) in [("user", letter.user()), ("session", letter.session())] {
        if let Some(value) = value {
            writeln!(out, "{name:9} {}", safe(value))?;
        }
    }
    writeln!(out, "priority  {}", letter.priority().as_str())?;
    writeln!(out, "events    {}", letter.events())?;
    let body = letter.body().map_err(|error| Stop::Failed(error.to_string()))?;
    writeln!(out, "\n{}", safe_json(&String::from_utf8_lossy(&body)))?;
    Ok(())
}

fn spool(reader: &DeadLetters, out: &mut impl Write) -> Result<(), Stop> {
    for process in reader.processes()? {
        writeln!(
            out,
            "{}  {}  {} batches  {} events  {} bytes  {} dead letters  oldest {}",
            process.process,
            if process.live { "live  " } else { "orphan" },
            process.rows,
            process.events,
            process.bytes,
            process.dead,
            process.oldest.map_or_else(|| "-".to_owned(), date),
        )?;
    }
    Ok(())
}
