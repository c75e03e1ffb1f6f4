//! Reports: at most once in N days, for all processes together.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use afterboot_retry::{ReportDecision, ReportThrottle, Silence, day_number};

fn day(number: i64) -> SystemTime {
    let seconds = 1_262_304_000 + number * 86_400 + 3_600;
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.try_into().unwrap())
}

fn throttle(path: &Path) -> ReportThrottle {
    ReportThrottle::builder(path)
        .origins(["app", "app_net::http"])
        .build_name("1.2")
        .channel("beta")
        .build()
        .unwrap()
}

fn reports(throttle: &ReportThrottle, at: i64) -> bool {
    matches!(throttle.should_report_at("app", day(at)), ReportDecision::Report(_))
}

#[test]
fn two_errors_a_day_for_eight_days_are_three_reports() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last");
    let reported: Vec<i64> = (6144..6152)
        .flat_map(|at| [at, at])
        // A new process each time.
        .filter(|at| reports(&throttle(&path), *at))
        .collect();
    assert_eq!(reported, [6144, 6147, 6150]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "6150");
}

#[test]
fn a_report_carries_the_days_the_build_and_the_channel() {
    let folder = tempfile::tempdir().unwrap();
    let throttle = throttle(&folder.path().join("last"));
    let ReportDecision::Report(first) = throttle.should_report_at("app::boot", day(7)) else {
        panic!("the first")
    };
    assert_eq!((first.today, first.last_day, first.storage_error), (7, None, None));
    assert_eq!((first.build.as_str(), first.channel.as_str()), ("1.2", "beta"));
    let silent = throttle.should_report_at("app::boot", day(9));
    assert_eq!(silent, ReportDecision::Silent(Silence::Reported { last_day: 7, next_day: 10 }));
    let ReportDecision::Report(next) = throttle.should_report_at("app::boot", day(10)) else { panic!("due") };
    assert_eq!((next.today, next.last_day), (10, Some(7)));
}

#[test]
fn a_future_day_heals_and_what_is_no_number_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last");
    let throttle = throttle(&path);
    fs::write(&path, "130").unwrap();
    let ReportDecision::Report(stamp) = throttle.should_report_at("app", day(100)) else { panic!("healed") };
    assert_eq!((stamp.last_day, fs::read_to_string(&path).unwrap().as_str()), (Some(130), "100"));
    assert!(!reports(&throttle, 101));
    for garbage in [&b"soon"[..], b"", b"\xff\xfe", b"1.5", &[b'9'; 100]] {
        fs::write(&path, garbage).unwrap();
        let ReportDecision::Report(stamp) = throttle.should_report_at("app", day(101)) else {
            panic!("{garbage:?}")
        };
        assert_eq!((stamp.last_day, stamp.storage_error), (None, None), "{garbage:?}");
        assert!(!reports(&throttle, 101), "{garbage:?}");
    }
}

#[test]
fn only_listed_origins_count() {
    let folder = tempfile::tempdir().unwrap();
    let throttle = throttle(&folder.path().join("last"));
    for origin in ["", "ap", "apps", "app_net", "app_net::https", "other::app", "app:"] {
        let silent = ReportDecision::Silent(Silence::Origin);
        assert_eq!(throttle.should_report_at(origin, day(1)), silent, "{origin:?}");
    }
    assert!(!folder.path().join("last").exists(), "they do not use up the report");
    assert!(matches!(throttle.should_report_at("app_net::http::retry", day(1)), ReportDecision::Report(_)));
    for bad in [
        ReportThrottle::builder("x"),
        ReportThrottle::builder("x").origins([""]),
        ReportThrottle::builder("/"),
    ] {
        assert!(bad.build().is_err());
    }
}

#[test]
fn a_broken_store_is_said_and_still_reports_once_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let is_a_folder = folder.path().join("folder");
    fs::create_dir(&is_a_folder).unwrap();
    let broken = [is_a_folder, folder.path().join("missing/last"), folder.path().join("f\0le")];
    for path in broken {
        let ReportDecision::Report(stamp) = throttle(&path).should_report_at("app", day(1)) else {
            panic!("{path:?}")
        };
        assert!(stamp.storage_error.is_some(), "{path:?}");
        for at in [1, 2, 100] {
            let silent = ReportDecision::Silent(Silence::ReportedByThisProcess);
            assert_eq!(throttle(&path).should_report_at("app", day(at)), silent, "{path:?}, day {at}");
        }
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name == "folder" || name == "folder.lock"), "{left:?}");
}

#[test]
fn whoever_finds_the_lock_held_leaves_the_decision_to_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last");
    let lock = fs::File::create(folder.path().join("last.lock")).unwrap();
    lock.lock().unwrap();
    let busy = ReportDecision::Silent(Silence::DecidedElsewhere);
    assert_eq!(throttle(&path).should_report_at("app", day(1)), busy);
    lock.unlock().unwrap();
    assert!(reports(&throttle(&path), 1));
}

/// R19: a child that is forked during a decision inherits the lock's file until it executes its program.
#[test]
fn a_decision_is_not_silenced_by_children_that_start_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| {
            for _ in 0..50 {
                let child = Command::new(std::env::current_exe().unwrap())
                    .arg("--list")
                    .stdout(Stdio::null())
                    .spawn();
                child.unwrap().wait().unwrap();
            }
        });
        let mut day = 6144;
        while !starting.is_finished() {
            let throttle = throttle(&folder.path().join("last"));
            assert!(reports(&throttle, day), "day {day}");
            day += 3;
        }
    });
}

const STORE: &str = "AFTERBOOT_RETRY_TEST_STORE";

/// The other process of the test below; does nothing in an ordinary run.
#[test]
fn child_of_the_shared_store() {
    let Ok(path) = std::env::var(STORE) else { return };
    // As close together as processes get: wait until the parent, which has started them all, closes the pipe.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let throttle = throttle(Path::new(&path));
    let reported = (0..50).filter(|_| reports(&throttle, 6144)).count();
    fs::write(format!("{path}.{}", std::process::id()), reported.to_string()).unwrap();
}

/// R19: the child does not share the folder of this process.
#[test]
fn a_store_that_is_a_name_alone_lies_in_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["throttle::child_of_the_shared_store", "--exact"])
        .env(STORE, "last")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status();
    assert!(child.unwrap().success());
    assert_eq!(fs::read_to_string(folder.path().join("last")).unwrap(), "6144");
}

/// R19.
#[test]
fn processes_that_share_a_store_make_one_report() {
    assert_eq!(day_number(day(6144)), 6144);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("last");
    let mut children: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["throttle::child_of_the_shared_store", "--exact"])
                .env(STORE, &path)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for pipe in children.iter_mut().map(|child| child.stdin.take()) {
        drop(pipe);
    }
    let mut reported = 0;
    for mut child in children {
        let answer = format!("{}.{}", path.display(), child.id());
        assert!(child.wait().unwrap().success());
        reported += fs::read_to_string(answer).unwrap().parse::<u32>().unwrap();
    }
    assert_eq!(reported, 1);
}
