use std::ffi::OsString;
use std::path::PathBuf;

use crate::spool::DeadId;

pub(super) const USAGE: &str = "\
usage: afterboot-beacon dead list DIR [--json]
       afterboot-beacon dead show DIR ID
       afterboot-beacon dead replay DIR (ID... | --all)
       afterboot-beacon dead purge DIR (ID... | --all)
       afterboot-beacon erase DIR --user USER
       afterboot-beacon spool DIR
       afterboot-beacon --help | --version

DIR is a spool's directory. replay, purge and erase change only what belongs to processes that are gone.";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    Version,
    List { dir: PathBuf, json: bool },
    Show { dir: PathBuf, id: DeadId },
    Replay { dir: PathBuf, letters: Letters },
    Purge { dir: PathBuf, letters: Letters },
    Erase { dir: PathBuf, user: String },
    Spool { dir: PathBuf },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Letters {
    These(Vec<DeadId>),
    All,
}

/// Options and the rest of the arguments, in their order.
#[derive(Default)]
struct Rest {
    words: Vec<OsString>,
    json: bool,
    all: bool,
    user: Option<String>,
}

pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, String> {
    let mut args = args.into_iter();
    match word(args.next(), "command", "dead, erase, spool, --help or --version")?.as_str() {
        "--help" | "-h" => Ok(Command::Help),
        "--version" | "-V" => Ok(Command::Version),
        "dead" => dead(args),
        "erase" => {
            let rest = options(args, &["--user"])?;
            let dir = only(rest.words, [], "DIR")?.0;
            let user = rest.user.ok_or("--user is missing: --user USER is needed")?;
            Ok(Command::Erase { dir, user })
        }
        "spool" => Ok(Command::Spool { dir: only(options(args, &[])?.words, [], "DIR")?.0 }),
        other => Err(unknown("command", other, "dead, erase, spool, --help or --version")),
    }
}

fn dead(mut args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let allowed = "list, show, replay or purge";
    match word(args.next(), "dead", allowed)?.as_str() {
        "list" => {
            let rest = options(args, &["--json"])?;
            Ok(Command::List { dir: only(rest.words, [], "DIR")?.0, json: rest.json })
        }
        "show" => {
            let (dir, [id]) = only(options(args, &[])?.words, ["ID"], "DIR ID")?;
            Ok(Command::Show { dir, id: dead_id(&id)? })
        }
        "replay" => letters(args).map(|(dir, letters)| Command::Replay { dir, letters }),
        "purge" => letters(args).map(|(dir, letters)| Command::Purge { dir, letters }),
        other => Err(unknown("dead", other, allowed)),
    }
}

fn letters(args: impl Iterator<Item = OsString>) -> Result<(PathBuf, Letters), String> {
    let rest = options(args, &["--all"])?;
    let mut words = rest.words.into_iter();
    let dir = PathBuf::from(words.next().ok_or("DIR is missing: DIR (ID... | --all) is needed")?);
    let ids: Vec<DeadId> = words.map(|id| dead_id(&id)).collect::<Result<_, _>>()?;
    match (rest.all, ids.is_empty()) {
        (true, true) => Ok((dir, Letters::All)),
        (false, false) => Ok((dir, Letters::These(ids))),
        (true, false) => Err("both --all and an ID: one of the two is allowed".to_owned()),
        (false, true) => Err("ID is missing: ID... or --all is needed".to_owned()),
    }
}

fn options(mut args: impl Iterator<Item = OsString>, allowed: &[&'static str]) -> Result<Rest, String> {
    let mut rest = Rest::default();
    while let Some(arg) = args.next() {
        let name = arg.to_string_lossy().into_owned();
        if !name.starts_with('-') {
            rest.words.push(arg);
            continue;
        }
        match name.as_str() {
            "--" => rest.words.extend(args.by_ref()),
            name if !allowed.contains(&name) => {
                let allowed = if allowed.is_empty() { "no option".to_owned() } else { allowed.join(", ") };
                return Err(unknown("option", name, &allowed));
            }
            "--json" => rest.json = true,
            "--all" => rest.all = true,
            _ => rest.user = Some(word(args.next(), "--user", "a user's name")?),
        }
    }
    Ok(rest)
}

/// DIR and as many words more as are named.
fn only<const N: usize>(
    words: Vec<OsString>,
    names: [&str; N],
    needed: &str,
) -> Result<(PathBuf, [OsString; N]), String> {
    let mut words = words.into_iter();
    let missing = |name: &str| format!("{name} is missing: {needed} is needed");
    let dir = words.next().ok_or_else(|| missing("DIR"))?;
    let rest: Vec<OsString> = words.collect();
    let short = names.get(rest.len()).copied();
    match <[OsString; N]>::try_from(rest) {
        Ok(rest) => Ok((PathBuf::from(dir), rest)),
        Err(_) if short.is_some() => Err(missing(short.unwrap_or_default())),
        Err(rest) => Err(unknown("argument", &rest[N].to_string_lossy(), needed)),
    }
}

fn word(arg: Option<OsString>, what: &str, allowed: &str) -> Result<String, String> {
    let arg = arg.ok_or_else(|| format!("{what} is missing: {allowed} is needed"))?;
    arg.into_string().map_err(|arg| unknown(what, &arg.to_string_lossy(), "UTF-8"))
}

fn dead_id(text: &OsString) -> Result<DeadId, String> {
    text.to_string_lossy().parse().map_err(|error: crate::spool::DeadIdError| error.to_string())
}

fn unknown(what: &str, value: &str, allowed: &str) -> String {
    let value: String = value.chars().take(80).collect();
    format!("{what} is {value:?}: {allowed} is allowed")
}
