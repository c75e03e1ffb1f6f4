//! Looks at a spool and its dead letters: `afterboot-beacon --help`.

use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = std::env::args_os().skip(1);
    let mut out = io::BufWriter::new(io::stdout().lock());
    afterboot_beacon::command_line(args, &mut out, &mut io::stderr().lock()).into()
}
