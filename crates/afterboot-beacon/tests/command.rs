//! The command as it is installed. What it does is tested beside it; here are its streams and exit codes.
#![cfg(feature = "spool")]

use std::process::Command;

fn run(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_afterboot-beacon")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn help_goes_to_the_output_and_complaints_to_the_errors() {
    let (code, out, err) = run(&["--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("usage: afterboot-beacon dead list DIR"));
    let (code, out, err) = run(&["frobnicate"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("afterboot-beacon: command is \"frobnicate\": "));
}

#[test]
fn an_empty_root_holds_nothing() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().to_str().unwrap();
    assert_eq!(run(&["dead", "list", root]), (0, String::new(), String::new()));
    assert_eq!(run(&["spool", root]), (0, String::new(), String::new()));
    assert_eq!(run(&["dead", "list", "/nonexistent/spool"]).0, 1);
}
