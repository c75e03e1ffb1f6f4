//! The whole process is stopped: told as that, and nobody is blamed. Real processes, which this program starts of itself.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use afterboot::{Governor, Profile, Report, Task};
use tokio::runtime::Builder;

use crate::common::{hold, ms};

const CHILD: &str = "AFTERBOOT_STOPPED_CHILD";
const STUCK_AFTER: Duration = Duration::from_millis(600);

/// Not a test of its own: what the others stop. Polls of 20 ms for more than a second.
#[test]
#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn child() {
    let Ok(runtime) = std::env::var(CHILD) else { return };
    let mut builder =
        if runtime == "current" { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    let report: Report = runtime.block_on(async {
        let profile = Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO);
        let governor = Governor::builder().profile(profile).stuck_after(STUCK_AFTER).build().unwrap();
        governor.govern(Task::new("idle", || async {}).idle().no_later_than(Duration::from_secs(30)));
        governor.govern(Task::new("innocent", || async {
            for n in 0..60 {
                hold(ms(20));
                if n == 10 {
                    println!("\nready");
                }
                tokio::task::yield_now().await;
            }
        }));
        let running = governor.report();
        running.started().await;
        governor.open_gate();
        running.finished().await
    });
    println!("report {}", serde_json::to_string(&report).unwrap());
}

fn signal(child: &Child, name: &str) -> bool {
    let done = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    done.is_ok_and(|status| status.success())
}

#[expect(clippy::print_stderr, reason = "whoever reads the run must see what it did not show")]
fn stopped(runtime: &str) -> Option<Report> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stops::child", "--nocapture"])
        .env(CHILD, runtime)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let runs = lines.any(|line| line == "ready");
    if !runs || !signal(&child, "STOP") {
        eprintln!("NOT TESTED: no signal can be sent here");
        child.kill().unwrap();
        child.wait().unwrap();
        return None;
    }
    hold(ms(1_500));
    let continued = signal(&child, "CONT");
    let report = lines.find_map(|line| Some(line.strip_prefix("report ")?.to_owned()));
    let ended = child.wait().unwrap();
    assert!(continued && ended.success(), "{ended}");
    Some(serde_json::from_str(&report.expect("the child reports")).unwrap())
}

/// I34: on either runtime.
#[test]
fn a_stop_of_the_process_is_told_and_blamed_on_nobody() {
    for runtime in ["current", "multi"] {
        let Some(report) = stopped(runtime) else { return };
        let stopped: Duration = report.stops.iter().map(|stop| stop.length).sum();
        assert!(stopped >= ms(1_300), "{runtime}: {:?}", report.stops);
        assert!(
            report.headlines()[2]
                .contains(&format!("The whole process was stopped for {:.2} s.", stopped.as_secs_f64())),
            "{} {:?}",
            report.headlines()[2],
            report.stops
        );
        assert!(report.to_string().contains("\nstopped: the whole process, "), "{report}");
        let innocent = report.task("innocent").unwrap();
        assert!(innocent.longest_poll < ms(1_000), "{runtime}: {:?}", innocent.longest_poll);
        assert!(!innocent.stuck, "{runtime}");
        let longest = report.long_tasks.iter().map(|long| long.length).max();
        assert!(longest.is_none_or(|longest| longest < ms(1_000)), "{runtime}: {:?}", report.long_tasks);
    }
}
