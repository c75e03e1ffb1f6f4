//! What if: a recorded run played again in virtual time.

use std::time::Duration;

use afterboot::{Governor, Monkey, Profile, Replay, ReplayedTask, Report, Task, TaskHandle};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::common::{ms, secs, within};

/// One task of a random program.
#[derive(Debug, Clone)]
struct Planned {
    idle: bool,
    after: Option<(usize, bool)>,
    blocking: bool,
    fails: bool,
    /// Waits for the handle of the task declared before it.
    awaits: bool,
    /// How long each poll holds the thread, and how long the task then sleeps.
    work: Vec<(u64, u64)>,
}

#[derive(Debug, Clone)]
struct Planning {
    profile: Profile,
    tasks: Vec<Planned>,
    /// The application sleeps before it declares the task of the same place.
    pauses: Vec<u64>,
    demanded: Option<usize>,
    quiet: u64,
}

impl Planning {
    fn of(seed: u64) -> Planning {
        let mut random = StdRng::seed_from_u64(seed);
        let concurrency = random.random_range(1..=4);
        let profile = Profile::default()
            .concurrency(concurrency)
            .delay(ms(random.random_range(0..20)))
            .pulse(ms(random.random_range(0..15)));
        let count = random.random_range(4..=9);
        let tasks = (0..count)
            .map(|place| Planned {
                idle: random.random_bool(0.4),
                after: (place > 0 && random.random_bool(0.25))
                    .then(|| (random.random_range(0..place), random.random_bool(0.5))),
                blocking: random.random_bool(0.1),
                fails: random.random_bool(0.1),
                awaits: place > 0 && random.random_bool(0.15),
                work: (0..random.random_range(1..=4))
                    .map(|_| (random.random_range(1..=60), random.random_range(1..=60)))
                    .collect(),
            })
            .collect();
        let pauses =
            (0..count).map(|_| if random.random_bool(0.2) { random.random_range(1..=30) } else { 0 });
        Planning {
            profile,
            tasks,
            pauses: pauses.collect(),
            demanded: random.random_bool(0.3).then(|| random.random_range(0..count)),
            quiet: random.random_range(60..=120),
        }
    }
}

/// Keeps the thread for exactly this time without burning CPU: on a busy machine that is less noise.
fn hold(millis: u64) {
    if millis > 0 {
        #[expect(clippy::disallowed_methods, reason = "a poll that holds its thread is what is recorded")]
        std::thread::sleep(ms(millis));
    }
}

async fn run(planning: &Planning) -> Report {
    let governor = Governor::builder()
        .profile(planning.profile.clone())
        .quiet(ms(planning.quiet))
        .timeout(secs(5))
        .record_segments()
        .build()
        .unwrap();
    let mut handles: Vec<TaskHandle<()>> = Vec::new();
    for (place, planned) in planning.tasks.iter().enumerate() {
        let Planned { idle, after, blocking, fails, awaits, work } = planned.clone();
        let before = handles.last().cloned().filter(|_| awaits);
        let end = if fails { Err("no") } else { Ok(()) };
        let mut task = if blocking {
            let work = work.clone();
            Task::blocking(format!("{place}"), move || {
                work.iter().for_each(|(holds, _)| hold(*holds));
                end
            })
        } else {
            Task::new(format!("{place}"), move || async move {
                for (holds, sleeps) in work {
                    hold(holds);
                    sleep(ms(sleeps)).await;
                }
                if let Some(before) = before {
                    drop(before.wait().await);
                }
                end
            })
        };
        if idle {
            task = task.idle();
        }
        if let Some((other, settled)) = after {
            task = if settled { task.after_settled(&handles[other]) } else { task.after(&handles[other]) };
        }
        if planning.pauses[place] > 0 {
            sleep(ms(planning.pauses[place])).await;
        }
        handles.push(governor.govern(task));
    }
    if let Some(place) = planning.demanded {
        drop(handles[place].demand());
    }
    governor.report().finished().await
}

fn order(report: &Report) -> Vec<u64> {
    let mut started: Vec<(Duration, u64)> =
        report.tasks.iter().filter_map(|task| Some((task.started?, task.number))).collect();
    started.sort_unstable();
    started.into_iter().map(|(_, number)| number).collect()
}

fn recorded(report: &Report) -> Replay {
    report.replay(&report.profile.parse().unwrap()).unwrap()
}

/// What is wrong with the replay under the recorded profile, and how far off its end is.
fn compare(report: &Report) -> (Option<String>, f64) {
    let replay = recorded(report);
    let (was, is) = (report.last_finish.unwrap(), replay.last_finish.unwrap_or_default());
    let off = was.abs_diff(is);
    let wrong = if replay.is_estimate {
        Some("it is called an estimate".to_owned())
    } else if replay.start_order != order(report) {
        Some(format!("started in the order {:?}, replayed as {:?}", order(report), replay.start_order))
    } else if off > (was / 20).max(ms(5)) {
        Some(format!("ended at {was:?}, replayed as {is:?}"))
    } else {
        None
    };
    (wrong, is.as_secs_f64() * 1e3 - was.as_secs_f64() * 1e3)
}

/// Seeds of programs that are run in real time.
const SEEDS: [u64; 12] = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233];

/// Real time on machines that others use too: a program may be run three times.
#[test]
fn a_recorded_run_is_replayed_in_the_same_order_to_the_same_end() {
    std::thread::scope(|scope| {
        let runs = SEEDS.map(|seed| (seed, scope.spawn(move || replayed_as_recorded(seed))));
        for (seed, run) in runs {
            run.join().unwrap_or_else(|_| panic!("seed {seed} failed"));
        }
    });
}

#[expect(clippy::print_stderr, reason = "how near the replays come; shown with --nocapture")]
fn replayed_as_recorded(seed: u64) {
    let planning = Planning::of(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut found = Vec::new();
    for attempt in 1..=3 {
        let report = runtime.block_on(run(&planning));
        let (wrong, off) = compare(&report);
        let end = report.last_finish.unwrap().as_secs_f64() * 1e3;
        eprintln!("seed {seed}, attempt {attempt}: end {end:.1} ms, replayed {off:+.2} ms; {wrong:?}");
        match wrong {
            None => return,
            Some(wrong) => found.push(wrong),
        }
    }
    panic!("seed {seed}, {planning:#?}: {found:#?}");
}

fn recorder(profile: Profile) -> Governor {
    Governor::builder().profile(profile).quiet(ms(100)).timeout(secs(2)).record_segments().build().unwrap()
}

fn slow(concurrency: usize) -> Profile {
    Profile::default().concurrency(concurrency).pulse(ms(10))
}

fn find<'a>(replay: &'a Replay, name: &str) -> &'a ReplayedTask {
    replay.tasks.iter().find(|task| task.name == name).unwrap()
}

fn times(report: &Report) -> Vec<(Option<Duration>, Option<Duration>)> {
    report.tasks.iter().map(|task| (task.started, task.finished)).collect()
}

fn replayed_times(replay: &Replay) -> Vec<(Option<Duration>, Option<Duration>)> {
    replay.tasks.iter().map(|task| (task.started, task.finished)).collect()
}

/// The random programs under a paused clock, where nothing is noise: holding takes no time there.
async fn paused(seed: u64) -> Report {
    let mut planning = Planning::of(seed);
    for planned in &mut planning.tasks {
        // A blocking task takes real time.
        planned.blocking = false;
        planned.work.iter_mut().for_each(|(holds, _)| *holds = 0);
    }
    within(run(&planning)).await
}

#[tokio::test(start_paused = true)]
async fn under_a_paused_clock_most_programs_are_replayed_to_the_nanosecond() {
    let mut other = Vec::new();
    for seed in 0..200 {
        let report = paused(seed).await;
        let replay = recorded(&report);
        assert!(!replay.is_estimate);
        if replayed_times(&replay) != times(&report) {
            // Two timers of one moment fire in an order that is tokio's own.
            other.push((seed, compare(&report).0));
        }
    }
    assert!(other.len() <= 30, "{other:?}");
    let wrong = other.iter().filter(|(_, wrong)| wrong.is_some()).count();
    assert!(wrong <= 10, "{other:#?}");
}

#[tokio::test(start_paused = true)]
async fn under_any_profile_the_laws_of_pulse_slots_and_order_hold() {
    for seed in 0..60 {
        let report = paused(seed).await;
        for concurrency in [1, 2, 5] {
            for pulse in [0, 7, 40] {
                let profile = Profile::default().concurrency(concurrency).pulse(ms(pulse));
                let replay = report.replay(&profile).unwrap();
                assert_eq!(replay, report.replay(&profile).unwrap(), "seed {seed}: a replay repeats itself");
                laws(&report, &replay, concurrency, ms(pulse));
            }
        }
    }
}

fn laws(report: &Report, replay: &Replay, concurrency: usize, pulse: Duration) {
    let ordinary = |task: &&ReplayedTask| {
        let recorded = &report.tasks[usize::try_from(task.number).unwrap()];
        !recorded.demanded && report.tasks.iter().all(|task| task.awaited.is_empty())
    };
    let mut starts: Vec<Duration> =
        replay.tasks.iter().filter(ordinary).filter_map(|task| task.started).collect();
    starts.sort_unstable();
    // I5: polls take no time here.
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= pulse), "{starts:?}");
    for task in &replay.tasks {
        let was = &report.tasks[usize::try_from(task.number).unwrap()];
        assert_eq!(task.started.is_some(), was.started.is_some(), "{}", task.name);
        let Some(started) = task.started else { continue };
        // I10
        for number in &was.after {
            let before = &replay.tasks[usize::try_from(*number).unwrap()];
            assert!(
                before.finished.is_some_and(|finished| finished <= started),
                "{} after {}",
                task.name,
                before.name
            );
        }
        // I2
        if ordinary(&task) {
            let running = replay.tasks.iter().filter(|other| {
                other.number != task.number
                    && other.started.is_some_and(|at| at < started)
                    && other.finished.is_some_and(|at| at > started)
            });
            assert!(running.count() < concurrency, "{}", task.name);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn independent_tasks_that_only_wait_end_no_later_with_more_slots() {
    let governor = recorder(slow(1));
    for n in 0..12_u64 {
        governor.govern(Task::new(format!("{n}"), move || sleep(ms(20 + 13 * n % 50))));
    }
    let report = within(governor.report().finished()).await;
    let ends: Vec<_> =
        (1..=12).map(|slots| report.replay(&slow(slots)).unwrap().last_finish.unwrap()).collect();
    assert!(ends.is_sorted_by(|fewer, more| fewer >= more), "{ends:?}");
    assert!(ends[11] < ends[0] / 2, "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_a_handle_lends_its_slot_and_waits_for_that_task() {
    let governor = recorder(slow(1));
    let last = governor.govern(Task::new("last", || sleep(ms(300))).idle());
    governor.govern(Task::new("first", move || async move { last.demand().await.map(|_| ()) }));
    let report = within(governor.report().finished()).await;
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let later = report.replay(&slow(1).delay(secs(1))).unwrap();
    assert!(later.is_estimate);
    let (first, last) = (find(&later, "first"), find(&later, "last"));
    assert_eq!(first.started, Some(ms(1_000)));
    assert_eq!(last.started, Some(ms(1_000)), "it was demanded by the first");
    assert_eq!((first.finished, last.finished), (Some(ms(1_300)), Some(ms(1_300))));
}

#[tokio::test(start_paused = true)]
async fn what_a_task_declares_moves_with_it() {
    let governor = recorder(slow(2));
    let inside = governor.clone();
    governor.govern(Task::new("outer", move || async move {
        sleep(ms(30)).await;
        inside.govern(Task::new("inner", || sleep(ms(5))));
        sleep(ms(30)).await;
    }));
    let report = within(governor.report().finished()).await;
    assert_eq!(report.task("inner").unwrap().declared_in, Some(0));
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let later = report.replay(&slow(2).delay(secs(1))).unwrap();
    assert_eq!(find(&later, "inner").started, Some(ms(1_030)));
}

#[tokio::test(start_paused = true)]
async fn the_gate_opens_by_what_opened_it() {
    // By quiet: 100 ms after the first idle task, whatever the profile.
    let governor = recorder(slow(1));
    governor.govern(Task::new("idle", || sleep(ms(5))).idle());
    let report = within(governor.report().finished()).await;
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let opened = report.replay(&slow(4)).unwrap().gate_opened.unwrap();
    assert!((ms(100)..ms(110)).contains(&opened), "{opened:?}");

    // By hand: when it was.
    let governor = recorder(slow(1));
    governor.govern(Task::new("idle", || sleep(ms(5))).idle());
    sleep(ms(40)).await;
    governor.open_gate();
    let report = within(governor.report().finished()).await;
    assert_eq!(report.replay(&slow(4)).unwrap().gate_opened, Some(ms(40)));

    // By the timeout, since `ready` was never said.
    let governor =
        Governor::builder().quiet(ms(100)).timeout(secs(2)).await_ready().record_segments().build().unwrap();
    governor.govern(Task::new("idle", || sleep(ms(5))).idle());
    let report = within(governor.report().finished()).await;
    assert_eq!(report.replay(&slow(4)).unwrap().gate_opened, Some(secs(2)));
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_those_of_the_recording() {
    let governor = recorder(slow(3));
    let fails = governor.govern(Task::new("fails", || async { Err::<(), _>("no") }));
    governor.govern(Task::new("skipped", || async {}).after(&fails));
    governor.govern(Task::new("settled", || async {}).after_settled(&fails));
    governor.govern(Task::new("off", || async {}).when(false));
    governor.govern(Task::new("off at start", || async {}).when_at_start(|| false));
    governor.govern(Task::new("late", || sleep(secs(9))).timeout(ms(50)));
    governor.govern(Task::new("wrong", || async {}).timeout(Duration::ZERO));
    governor.govern(Task::new("cancelled", || async {}).idle()).cancel();
    let report = within(governor.report().finished()).await;
    let replay = recorded(&report);
    assert_eq!(replayed_times(&replay), times(&report));
    let ran: Vec<&str> =
        replay.tasks.iter().filter(|t| t.started.is_some()).map(|t| t.name.as_str()).collect();
    assert_eq!(ran, ["fails", "settled", "late"]);
}

#[tokio::test(start_paused = true)]
async fn the_recorded_victim_is_delayed_again_and_another_monkey_picks_its_own() {
    let governor = recorder(slow(1).monkey(Monkey::random(secs(3))));
    for n in 0..5 {
        governor.govern(Task::new(format!("{n}"), || sleep(ms(5))));
    }
    let report = within(governor.report().finished()).await;
    assert_eq!(replayed_times(&recorded(&report)), times(&report));
    let replay = report.replay(&slow(1).monkey(Monkey::task("2", secs(7)))).unwrap();
    assert!(find(&replay, "2").started > Some(secs(7)), "{replay}");
    assert!(report.replay(&slow(1)).unwrap().last_finish < Some(secs(1)));
}

#[tokio::test(start_paused = true)]
async fn merged_polls_take_as_long_as_they_did() {
    let governor = recorder(slow(1));
    governor.govern(Task::new("many polls", || async {
        for n in 0..1_000_u64 {
            sleep(ms(n % 4)).await;
        }
    }));
    let report = within(governor.report().finished()).await;
    let (was, is) = (report.last_finish.unwrap(), recorded(&report).last_finish.unwrap());
    assert!(was.abs_diff(is) < ms(5), "{was:?}, replayed as {is:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_replayed_is_said() {
    let governor = recorder(slow(1));
    governor.govern(Task::new("waits", std::future::pending::<()>));
    let run = governor.report();
    sleep(ms(50)).await;
    let error = run.so_far().replay(&slow(1)).unwrap_err();
    assert!(error.is_unended(), "{error}");

    let plain = Governor::builder().build().unwrap();
    plain.govern(Task::new("runs", || async {}));
    let mut report = within(plain.report().finished()).await;
    let error = report.replay(&slow(1)).unwrap_err();
    assert!(error.is_no_segments() && error.to_string().contains("record_segments()"), "{error}");
    let error = report.replay(&slow(0)).unwrap_err();
    assert!(error.is_profile() && error.to_string().contains("concurrency: 0"), "{error}");
    report.version = 2;
    let error = report.replay(&slow(1)).unwrap_err();
    assert!(error.is_version() && error.to_string().contains("version 2"), "{error}");
    governor.shutdown(ms(0)).await;
}

/// I20
#[tokio::test(start_paused = true)]
async fn the_table_is_narrow_and_plain_whatever_the_names() {
    let governor = recorder(slow(1));
    governor.govern(Task::new("\u{202e}\x1b[2J".repeat(60), || async {}));
    governor.govern(Task::new("索引".repeat(60), || sleep(secs(1_000))));
    let report = within(governor.report().finished()).await;
    let text = report.replay(&slow(2)).unwrap().to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
    assert!(text.starts_with("estimate: 2 tasks"), "{text}");
}
