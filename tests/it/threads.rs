//! No thread can be had: the pool is full, or the system refuses. Then whatever needs one waits, nothing is lost, and the
//! report says so. The refusals are real: this program starts itself under a user of its own, whose limit is lowered.

use std::sync::mpsc;

use afterboot::{Governor, Outcome, Profile, Report, Task};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::common::{alive, count, ended, hold, ms, secs, soon};
use crate::lending::Later;
use crate::stuck::{blocks, is_stuck, quick_to_see, until};

fn with_blocking_threads(threads: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(threads)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Holds threads of the pool until it is let go.
fn fill_the_pool(threads: usize) -> mpsc::Sender<()> {
    let (let_go, wait) = mpsc::channel::<()>();
    let (held, holds) = mpsc::channel();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    for _ in 0..threads {
        let (wait, held) = (std::sync::Arc::clone(&wait), held.clone());
        tokio::task::spawn_blocking(move || {
            held.send(()).unwrap();
            let _ = wait.lock().unwrap().recv();
        });
        holds.recv_timeout(secs(25)).expect("a thread of the pool");
    }
    let_go
}

/// Asked without a report, which would end its scope.
fn runs(governor: &Governor, name: &str) -> bool {
    governor.snapshot().running.iter().any(|task| task.name == name)
}

fn wanted(report: &Report) -> Vec<&str> {
    report.threads_missed.iter().map(|missed| &*missed.wanted).collect()
}

/// I37, I14: the one thread of the pool waits for the task whose poll was left behind: the lane that should go on would
/// stand behind it for ever.
#[test]
fn a_lane_left_behind_takes_the_line_back_from_a_successor_that_never_looked() {
    with_blocking_threads(1).block_on(async {
        let governor = quick_to_see(2, ms(50));
        let later = Later::<u32>::default();
        let awaited = std::sync::Arc::clone(&later);
        let a = governor.govern(Task::blocking("a", move || {
            Handle::current().block_on(awaited.wait().wait()).map(|value| *value)
        }));
        until(|| runs(&governor, "a")).await;
        let b = governor.govern(Task::value("b", || async {
            hold(ms(400));
            tokio::time::sleep(ms(1)).await;
            7_u32
        }));
        later.set(b.clone()).unwrap();
        assert_eq!(*soon(b.wait()).await.unwrap(), 7);
        assert_eq!(*soon(a.wait()).await.unwrap(), 7);
        let report = soon(governor.report().finished()).await;
        assert!(report.task("b").is_some_and(|task| task.stuck), "{report}");
        assert_eq!(wanted(&report), ["the lane"]);
        assert!(report.to_string().contains("no thread: the lane"), "{report}");
        until(|| alive() == 0).await;
    });
}

/// I37: once it has the line back it is an ordinary lane: what is declared, woken and stuck later is served.
#[test]
fn a_lane_that_took_the_line_back_may_be_left_behind_again() {
    with_blocking_threads(1).block_on(async {
        let governor = quick_to_see(1, ms(50));
        let let_go = fill_the_pool(1);
        for round in 0..3_u32 {
            let stuck = governor.govern(Task::value(format!("stuck {round}"), move || async move {
                hold(ms(200));
                tokio::task::yield_now().await;
                round
            }));
            let next = governor.govern(Task::new(format!("next {round}"), || async {}));
            assert_eq!(*soon(stuck.wait()).await.unwrap(), round);
            soon(next.wait()).await.unwrap();
        }
        let_go.send(()).unwrap();
        until(|| alive() == 0).await;
        let last = governor.govern(Task::value("last", || async { 1 }));
        assert_eq!(*soon(last.wait()).await.unwrap(), 1);
        let report = soon(governor.report().finished()).await;
        assert_eq!(report.threads_missed[0].times, 3);
        assert_eq!(count(&report, "completed"), 7);
        until(|| alive() == 0).await;
    });
}

/// I37, I26: two lanes are left behind one after the other, and the third never comes: whoever returns first goes on.
#[test]
fn of_two_lanes_that_were_left_behind_the_first_to_return_takes_the_line_back() {
    with_blocking_threads(1).block_on(async {
        let governor = quick_to_see(2, ms(50));
        let (first, first_go) = blocks("first");
        let (second, second_go) = blocks("second");
        let first = governor.govern(first);
        let second = governor.govern(second);
        until(|| is_stuck(&governor, "first") && is_stuck(&governor, "second")).await;
        let third = governor.govern(Task::value("third", || async { 3 }));
        first_go.send(()).unwrap();
        assert_eq!(*soon(third.wait()).await.unwrap(), 3);
        assert!(!second.is_finished());
        second_go.send(()).unwrap();
        assert_eq!(*soon(first.wait()).await.unwrap(), 1);
        assert_eq!(*soon(second.wait()).await.unwrap(), 1);
        until(|| alive() == 0).await;
    });
}

/// I37, I19: a runtime goes away while the successor stands in the pool's line.
#[test]
fn a_runtime_that_goes_away_while_no_thread_can_be_had_leaves_nobody_waiting() {
    let runtime = with_blocking_threads(1);
    let (governor, stuck, queued, let_go, pool) = runtime.block_on(async {
        let governor = quick_to_see(1, ms(50));
        let pool = fill_the_pool(1);
        let (task, let_go) = blocks("stuck");
        let stuck = governor.govern(task);
        let queued = governor.govern(Task::new("queued", || async {}));
        until(|| is_stuck(&governor, "stuck")).await;
        (governor, stuck, queued, let_go, pool)
    });
    runtime.shutdown_background();
    let other = Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(async {
        assert!(soon(queued.wait()).await.is_err());
        let_go.send(()).unwrap();
        let _ = soon(stuck.wait()).await;
        pool.send(()).unwrap();
        let report = soon(governor.report().finished()).await;
        assert_eq!(report.tasks.len(), 2);
    });
}

/// I8: a name is untrusted text, also where the system does not take it for a thread.
#[tokio::test]
async fn a_governor_whose_name_no_thread_can_have_samples_all_the_same() {
    let governor = Governor::builder().name("a\0b").sampler().quiet(ms(60)).build().unwrap();
    let idle = governor.govern(Task::new("idle", || async {}).idle());
    soon(idle.wait()).await.unwrap();
    let report = soon(governor.report().finished()).await;
    assert_eq!(report.governor, "a\0b");
    assert!(wanted(&report).is_empty(), "{:?}", report.threads_missed);
}

#[cfg(all(unix, feature = "serde"))]
mod refused {
    //! The child plays a scene; the parent lets threads be made again when the child says "waits".

    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    const SCENE: &str = "AFTERBOOT_THREADS_SCENE";
    /// Of nobody else, so that the limit counts this process alone.
    const USER: u32 = 61_234;

    fn as_user(program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"]).arg(program);
        command
    }

    fn limit(mut prlimit: Command, process: u32, threads: u32) -> bool {
        let arguments = [format!("--pid={process}"), format!("--nproc={threads}:")];
        prlimit.args(arguments).status().is_ok_and(|status| status.success())
    }

    /// What the child says of itself.
    #[expect(clippy::print_stdout, reason = "the parent reads it")]
    fn say(what: &str) {
        println!("\n{what}");
    }

    /// Not a test of its own.
    #[test]
    fn child() {
        let Ok(scene) = std::env::var(SCENE) else { return };
        let runtime = with_blocking_threads(8);
        if !limit(Command::new("prlimit"), std::process::id(), 1)
            || std::thread::Builder::new().spawn(|| ()).is_ok()
        {
            return say("the limit does not bind");
        }
        let report = runtime.block_on(async {
            let profile = Profile::default().concurrency(2).delay(ms(0)).pulse(ms(0));
            let builder = Governor::builder().profile(profile).stuck_after(ms(100));
            let governor = builder.sampler().quiet(ms(60)).build().unwrap();
            match &*scene {
                "returns" => returns(&governor).await,
                "never returns" => never_returns(&governor).await,
                _ => blocking(&governor).await,
            }
            soon(governor.report().finished()).await
        });
        say(&format!("report {}", serde_json::to_string(&report).unwrap()));
    }

    async fn returns(governor: &Governor) {
        let blocks = governor.govern(Task::new("blocks", || async {
            hold(ms(800));
            tokio::time::sleep(ms(1)).await;
        }));
        let second = governor.govern(Task::value("second", || async { 1 }));
        assert_eq!(*soon(second.wait()).await.unwrap(), 1);
        soon(blocks.wait()).await.unwrap();
        let later = governor.govern(Task::new("later", || async {}));
        let idle = governor.govern(Task::new("idle", || async {}).idle());
        soon(later.wait()).await.unwrap();
        soon(idle.wait()).await.unwrap();
        say("waits");
    }

    async fn never_returns(governor: &Governor) {
        let (task, let_go) = blocks("blocks");
        let blocked = governor.govern(task);
        let second = governor.govern(Task::value("second", || async { 1 }));
        until(|| is_stuck(governor, "blocks")).await;
        tokio::time::sleep(ms(300)).await;
        assert!(!second.is_finished());
        say("waits");
        assert_eq!(*soon(second.wait()).await.unwrap(), 1);
        assert!(!blocked.is_finished());
        let_go.send(()).unwrap();
        soon(blocked.wait()).await.unwrap();
    }

    async fn blocking(governor: &Governor) {
        let given_up = governor.govern(Task::blocking("given up", || -> () { panic!("boom: it ran") }));
        let limited = Task::blocking("limited", || -> () { panic!("boom: it ran") }).timeout(ms(50));
        let limited = governor.govern(limited);
        assert!(matches!(soon(limited.wait()).await.unwrap_err().outcome(), Some(Outcome::TimedOut { .. })));
        until(|| runs(governor, "given up")).await;
        given_up.cancel();
        let closure = governor.govern(Task::blocking("closure", || Ok::<_, std::io::Error>(5)));
        let other = governor.govern(Task::value("other", || async { 1 }));
        drop(other.demand());
        assert_eq!(*soon(other.wait()).await.unwrap(), 1);
        drop(closure.demand());
        until(|| runs(governor, "closure")).await;
        tokio::time::sleep(ms(300)).await;
        assert!(!closure.is_finished(), "{:?}", closure.try_get().map(|result| result.map(drop)));
        say("waits");
        assert_eq!(*soon(closure.wait()).await.unwrap(), 5);
        soon(governor.report().finished()).await;
    }

    fn start(scene: &str) -> std::io::Result<Child> {
        as_user(std::env::current_exe()?)
            .args(["--exact", "threads::refused::child", "--nocapture"])
            .env(SCENE, scene)
            .stdout(Stdio::piped())
            .spawn()
    }

    #[expect(clippy::print_stderr, reason = "whoever reads the run must see what it did not show")]
    fn played(scene: &str) -> Option<Report> {
        let not_tested = |why: &str| {
            eprintln!("NOT TESTED, threads refused ({scene}): {why}");
            None
        };
        let mut child = match start(scene) {
            Ok(child) => child,
            Err(error) => return not_tested(&format!("no process under another user: {error}")),
        };
        let mut report = None;
        let mut heard = false;
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            heard |= line.starts_with("running ");
            match line.as_str() {
                "waits" => {
                    assert!(limit(as_user("prlimit"), child.id(), 4_096), "the limit cannot be raised")
                }
                "the limit does not bind" => return not_tested(&line),
                _ => report = report.or(line.strip_prefix("report ").map(ToOwned::to_owned)),
            }
        }
        let status = child.wait().unwrap();
        if !heard {
            return not_tested(&format!("the program cannot be run by another user: {status}"));
        }
        assert!(status.success(), "{scene}: {status}");
        Some(serde_json::from_str(&report.expect("a report")).unwrap())
    }

    /// I37, I14: the runtime is healthy, and nobody is told otherwise.
    #[test]
    fn where_no_thread_is_given_a_stuck_poll_delays_the_others_and_nothing_is_lost() {
        let Some(report) = played("returns") else { return };
        assert_eq!(count(&report, "completed"), 4, "{report}");
        let wanted = wanted(&report);
        assert!(wanted.contains(&"the lane"), "{wanted:?}");
        assert!(wanted.contains(&"the sampler"), "{wanted:?}");
        assert!(wanted.contains(&"the witness"), "{wanted:?}");
    }

    /// I37, I26: when threads can be had again, the lane goes on though the poll never returned.
    #[test]
    fn a_lane_gets_its_thread_as_soon_as_one_can_be_had() {
        let Some(report) = played("never returns") else { return };
        assert_eq!(count(&report, "completed"), 2, "{report}");
    }

    /// I37, I11: and a blocking closure waits for one, unless it is cancelled or its time is over meanwhile.
    #[test]
    fn a_blocking_closure_waits_until_a_thread_can_be_had_and_holds_up_nobody() {
        let Some(report) = played("blocking") else { return };
        assert!(ended(&report, "closure").is_completed());
        assert!(matches!(ended(&report, "limited"), Outcome::TimedOut { .. }));
        assert_eq!(ended(&report, "given up"), Outcome::Abandoned);
        assert!(wanted(&report).contains(&"a blocking task"));
    }
}
