//! A profile from the environment. A process cannot safely change its own variables while threads run, so each case
//! is a process of its own: this binary again, with one test of it and the variable set.

use std::ffi::OsStr;
use std::io::Write;
use std::process::Command;

use afterboot::{Governor, Monkey, Profile, Task};
use tokio::runtime;

use crate::common::{ms, within};

const VARIABLE: &str = "AFTERBOOT_UNDER_TEST";
/// Set in the child alone.
const CHILD: &str = "AFTERBOOT_TEST_CHILD";

/// What the child's governor says of its configuration, where the variable has this value.
fn child(value: Option<&OsStr>) -> String {
    let mut command = Command::new(std::env::current_exe().expect("a running program has a path"));
    command.args(["--exact", "env::the_child_says_what_it_read", "--nocapture"]).env(CHILD, "1");
    match value {
        Some(value) => command.env(VARIABLE, value),
        None => command.env_remove(VARIABLE),
    };
    let output = command.output().expect("a test may run itself");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

fn read(value: &str) -> String {
    child(Some(OsStr::new(value)))
}

/// The code's own profile: every value differs from the default, so that what is set and what is left can be told.
async fn configure() -> String {
    let profile = Profile::default().concurrency(2).delay(ms(70)).pulse(ms(90));
    let builder = Governor::builder().profile(profile).monkey(Monkey::task("second", ms(500)));
    let governor = match builder.overrides_from_env(VARIABLE).build() {
        Ok(governor) => governor,
        Err(error) => return format!("value={}\n{}", error.is_value(), error.problems().join("\n")),
    };
    for name in ["first", "second", "third"] {
        governor.govern(Task::new(name, || async {}));
    }
    let report = within(governor.report().finished()).await;
    let starts: Vec<u128> =
        report.tasks.iter().flat_map(|task| task.started).map(|at| at.as_millis()).collect();
    format!("{}\n{starts:?}", report.profile)
}

/// I21: the other side of the tests below; by itself it does nothing.
#[test]
fn the_child_says_what_it_read() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let runtime = runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let said = runtime.block_on(configure());
    std::io::stderr().write_all(said.as_bytes()).unwrap();
}

const OWN: &str = "concurrency=2,delay=70ms,pulse=90ms,monkey=\"second\",monkey_delay=500ms";

/// I21.
#[test]
fn an_unset_empty_or_blank_variable_sets_nothing() {
    for value in [None, Some(""), Some("  "), Some(" , ,")] {
        let said = child(value.map(OsStr::new));
        assert_eq!(said.lines().next(), Some(OWN), "{value:?}");
    }
}

/// I5, I15, I21: zero is zero and not the default, and the first declared has the number 0.
#[test]
fn zero_is_used_as_zero() {
    let said = read("delay=0,pulse=0,monkey=#0,monkey_delay=0");
    assert_eq!(said, "concurrency=2,delay=0ns,pulse=0ns,monkey=#0,monkey_delay=0ns\n[0, 0, 0]");
    let said = read("delay=0,pulse=0,monkey=#0");
    let (profile, starts) = said.split_once('\n').unwrap();
    assert_eq!(profile, "concurrency=2,delay=0ns,pulse=0ns,monkey=#0,monkey_delay=60s");
    assert!(["[60000, 0, 0]", "[60001, 0, 0]"].contains(&starts), "the first is the victim: {starts}");
}

/// I21: what is not named keeps what the code gave, and what is named wins over it.
#[test]
fn a_variable_sets_what_it_names_and_leaves_the_rest() {
    for (value, profile) in [
        ("concurrency=1024", "concurrency=1024,delay=70ms,pulse=90ms,monkey=\"second\",monkey_delay=500ms"),
        ("pulse=1.5s", "concurrency=2,delay=70ms,pulse=1.5s,monkey=\"second\",monkey_delay=500ms"),
        (" delay = 20 , ", "concurrency=2,delay=20ms,pulse=90ms,monkey=\"second\",monkey_delay=500ms"),
        ("monkey_delay=2s", "concurrency=2,delay=70ms,pulse=90ms,monkey=\"second\",monkey_delay=2s"),
        ("monkey=random", "concurrency=2,delay=70ms,pulse=90ms,monkey=random,monkey_delay=60s"),
        (r#"monkey="a, b=c""#, "concurrency=2,delay=70ms,pulse=90ms,monkey=\"a, b=c\",monkey_delay=60s"),
    ] {
        assert_eq!(read(value).lines().next(), Some(profile), "{value}");
    }
}

/// I21: all at once, each with the variable, the key, the value and what is allowed.
#[test]
fn bad_values_are_refused_with_variable_key_value_and_what_is_allowed() {
    let said = read("concurrency=0,delay=-1,pulse=soon,monkey=#first,colour=red,alone");
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("value=true"));
    for (key, value, allowed) in [
        ("concurrency", "0", "1 to 1024"),
        ("delay", "-1", "a time such as"),
        ("pulse", "soon", "a time such as"),
        ("monkey", "#first", "random, #N"),
        ("colour", "no such key", "concurrency, delay, pulse, monkey, monkey_delay"),
        ("alone", "no `=`", "key=value"),
    ] {
        let line = lines.next().unwrap_or_else(|| panic!("{key} is missing in {said}"));
        assert!(line.starts_with(&format!("{VARIABLE}: {key}: {value}; allowed: ")), "{line}");
        assert!(line.contains(allowed), "{line}");
    }
    assert_eq!(lines.next(), None);
}

/// I21: nothing in between is taken for a number.
#[test]
fn values_that_are_nearly_good_are_refused() {
    for value in [
        "concurrency=",
        "concurrency=1025",
        "concurrency=-1",
        "concurrency=1.5",
        "concurrency=99999999999999999999",
        "delay=NaN",
        "delay=inf",
        "delay=1e99",
        "delay=5 minutes",
        "pulse=",
        "monkey=",
        "monkey=#-1",
        "monkey=\"open",
        "monkey=a\"b",
        "=1",
        "=",
    ] {
        let said = read(value);
        assert!(said.starts_with(&format!("value=true\n{VARIABLE}: ")), "{value}: {said}");
        assert_eq!(said.lines().count(), 2, "{value}: {said}");
    }
}

/// I21.
#[cfg(unix)]
#[test]
fn a_value_that_is_no_text_is_refused_by_name() {
    use std::os::unix::ffi::OsStrExt;
    let said = child(Some(OsStr::from_bytes(b"pulse=\xff5")));
    assert_eq!(said, format!("value=true\n{VARIABLE}: pulse=\u{fffd}5; allowed: valid Unicode"));
}

/// I21: a name that no variable can have is a variable that is not set.
#[tokio::test(start_paused = true)]
async fn a_name_that_cannot_be_set_sets_nothing() {
    for name in ["", "A=B", "AFTERBOOT_NOBODY_SETS_THIS"] {
        assert!(Governor::builder().overrides_from_env(name).build().is_ok(), "{name:?}");
    }
}
