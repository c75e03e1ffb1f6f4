//! What was asked for on the command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) const HELP: &str = "\
A source code search that answers its first request at once, and boots behind its answers.

usage: axum_boot [--listen ADDRESS] [--page FILE | --gate N]

  --listen ADDRESS   where to serve; default 127.0.0.1:8080, with --page a free port
  --page FILE        boots under some load of its own, writes the page of the report, and exits
  --gate N           1 to 99 boots without requests, then exits; fails where one shows a long task or a hold, or where its
                     gate opens over 20 ms after the quiet window
  --help             this text

GET /              what the boot has brought so far
GET /search?q=TEXT lines with this text; the first one demands the index
GET /healthz       200 while the process lives
GET /readyz        200 once the normal queue is done, 503 before that and while shutting down

Ctrl-C or SIGTERM shuts down and prints the report. AFTERBOOT sets the profile: AFTERBOOT='concurrency=1,pulse=20ms'
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Serve(Options),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) page: Option<PathBuf>,
    pub(crate) gate: Option<usize>,
}

pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut arguments = arguments.into_iter();
    let (mut listen, mut page, mut gate) = (None, None, None);
    while let Some(option) = arguments.next() {
        let mut value = |what| arguments.next().ok_or_else(|| format!("{option} needs {what}; see --help"));
        match option.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--listen" => {
                let text = value("an address")?;
                let address = text.parse().map_err(|_| {
                    format!("--listen: {text}; allowed: an IP address and a port, as in 127.0.0.1:8080")
                })?;
                listen = Some(address);
            }
            "--page" => page = Some(writable(value("a file")?.into())?),
            "--gate" => {
                let text = value("a number of boots")?;
                let number = text.parse().ok().filter(|number| (1..=99).contains(number));
                gate = Some(number.ok_or_else(|| format!("--gate: {text}; allowed: a number from 1 to 99"))?);
            }
            other => return Err(format!("there is no option {other}; see --help")),
        }
    }
    if page.is_some() && gate.is_some() {
        return Err("--gate: it does not go with --page".to_owned());
    }
    let port = if page.is_some() || gate.is_some() { 0 } else { 8080 };
    let listen = listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], port)));
    Ok(Command::Serve(Options { listen, page, gate }))
}

/// Looked at before the boot, so that nobody waits for a page that cannot be written.
fn writable(page: PathBuf) -> Result<PathBuf, String> {
    let folder = match page.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(format!("--page: {}; there is no folder {}", page.display(), folder.display()));
    }
    if page.is_dir() {
        return Err(format!("--page: {}; this is a folder, give a file", page.display()));
    }
    Ok(page)
}
