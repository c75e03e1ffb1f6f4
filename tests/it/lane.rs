//! One governed poll a tick: I/O and timers are served between any two, whatever wakes the lane meanwhile.

use std::future::{Future, pending, poll_fn};
use std::net::UdpSocket as StdSocket;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use afterboot::{Task, yield_if_due};
use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{interval, sleep};

use crate::common::{alive, breathe, count, ended, fast, hold, ms, secs, soon, within};

fn one_worker() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_all().build().unwrap(),
        Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap(),
    ]
}

/// Wakes them all, again and again, without ever giving a tick back: the run queue is never empty, so that the
/// event loop looks at its driver only where somebody insists.
async fn wakes_all_the_time(wakers: Arc<Mutex<Vec<Waker>>>, over: Arc<AtomicBool>) {
    poll_fn(|cx| {
        if over.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        for waker in wakers.lock().unwrap().iter() {
            waker.wake_by_ref();
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// I1: each governed poll makes a socket ready, and by the next one its reader must have been served. Tasks that
/// wake themselves and each other, and a foreign task that wakes them all, do not shorten the tick.
#[test]
fn a_readiness_event_is_served_between_any_two_governed_polls_whatever_wakes_the_lane() {
    const POLLS: usize = 60;
    for runtime in one_worker() {
        let unserved = runtime.block_on(async {
            let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let sender = StdSocket::bind("127.0.0.1:0").unwrap();
            sender.connect(receiver.local_addr().unwrap()).unwrap();
            let sender = Arc::new(sender);
            let (sent, served) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let unserved = Arc::new(AtomicUsize::new(0));
            let wakers = Arc::new(Mutex::new(Vec::new()));
            let over = Arc::new(AtomicBool::new(false));

            let counted = Arc::clone(&served);
            let reader = tokio::spawn(async move {
                loop {
                    receiver.recv(&mut [0; 8]).await.unwrap();
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
            let noise: Vec<_> = (0..2)
                .map(|_| tokio::spawn(wakes_all_the_time(Arc::clone(&wakers), Arc::clone(&over))))
                .collect();
            let governor = fast(3);
            for n in 0..3 {
                let (sender, sent, served) = (Arc::clone(&sender), Arc::clone(&sent), Arc::clone(&served));
                let (unserved, wakers) = (Arc::clone(&unserved), Arc::clone(&wakers));
                let mut polls = 0;
                governor.govern(Task::new(format!("{n}"), move || {
                    poll_fn(move |cx| {
                        if served.load(Ordering::SeqCst) < sent.load(Ordering::SeqCst) {
                            unserved.fetch_add(1, Ordering::SeqCst);
                        }
                        sent.fetch_add(1, Ordering::SeqCst);
                        sender.send(&[0]).unwrap();
                        wakers.lock().unwrap().push(cx.waker().clone());
                        cx.waker().wake_by_ref();
                        polls += 1;
                        if polls == POLLS { Poll::Ready(()) } else { Poll::Pending }
                    })
                }));
            }
            let report = soon(governor.report().finished()).await;
            over.store(true, Ordering::SeqCst);
            for task in noise {
                task.await.unwrap();
            }
            reader.abort();
            assert_eq!(count(&report, "completed"), 3);
            assert_eq!(sent.load(Ordering::SeqCst), 3 * POLLS);
            unserved.load(Ordering::SeqCst)
        });
        assert_eq!(unserved, 0, "of {} polls", 3 * POLLS);
    }
}

/// I1: idle tasks that burn CPU, and a foreground that wants a turn every 5 ms on the same thread.
#[tokio::test]
async fn a_ticker_of_the_foreground_runs_between_any_two_polls_that_burn_cpu() {
    let governor = fast(3);
    let ticks = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let counted = Arc::clone(&ticks);
    let ticker = tokio::spawn(async move {
        let mut timer = interval(ms(5));
        loop {
            timer.tick().await;
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    governor.open_gate();
    for n in 0..6 {
        let (ticks, seen) = (Arc::clone(&ticks), Arc::clone(&seen));
        let burn = move || async move {
            for _ in 0..2 {
                seen.lock().unwrap().push(ticks.load(Ordering::SeqCst));
                hold(ms(30));
                // The nearest tick there is for whoever does not know the lane.
                tokio::task::yield_now().await;
            }
        };
        governor.govern(Task::new(format!("{n}"), burn).idle());
    }
    soon(governor.report().finished()).await;
    ticker.abort();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 12);
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "ticks at each poll: {seen:?}");
}

/// I1: the poll outlasts a timer of its own and a later one of the application. Both fire in one look at the driver, the
/// governed one first, and that wakes the lane before the application.
#[test]
fn whoever_a_timer_woke_during_a_governed_poll_runs_before_the_next_one() {
    for runtime in one_worker() {
        let order = Arc::new(Mutex::new(Vec::new()));
        runtime.block_on(async {
            let governor = fast(2);
            let log = Arc::clone(&order);
            let application = tokio::spawn(async move {
                sleep(ms(2)).await;
                log.lock().unwrap().push("application");
            });
            tokio::task::yield_now().await;
            let log = Arc::clone(&order);
            governor.govern(Task::new("first", move || async move {
                let mut nap = std::pin::pin!(sleep(ms(1)));
                poll_fn(|cx| Poll::Ready(nap.as_mut().poll(cx).is_pending())).await;
                hold(ms(10));
                log.lock().unwrap().push("first");
                nap.await;
                log.lock().unwrap().push("first again");
            }));
            let log = Arc::clone(&order);
            governor.govern(Task::new("second", move || async move { log.lock().unwrap().push("second") }));
            soon(governor.report().finished()).await;
            soon(application).await.unwrap();
        });
        let order = order.lock().unwrap();
        assert!(order[..2].contains(&"application"), "{order:?}");
    }
}

/// I1: many slots, many workers, one lane.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_most_one_governed_poll_is_in_progress_whatever_the_concurrency() {
    let governor = fast(16);
    let (now, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for n in 0..16 {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        governor.govern(Task::new(format!("{n}"), move || async move {
            for _ in 0..5 {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                hold(ms(1));
                now.fetch_sub(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        }));
    }
    let report = soon(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 16);
    assert_eq!(peak.load(Ordering::SeqCst), 1);
}

/// Polled for ever, and wakes itself each time.
fn chatty() -> impl Future<Output = ()> + Send {
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// I3, I5: starts and woken tasks alternate.
#[tokio::test(start_paused = true)]
async fn chatty_tasks_do_not_starve_the_starts() {
    let governor = fast(10);
    let chatty: Vec<_> = (0..5).map(|n| governor.govern(Task::new(format!("chatty {n}"), chatty))).collect();
    let tasks: Vec<_> = (0..50).map(|n| governor.govern(Task::new(format!("{n}"), || async {}))).collect();
    for task in &tasks {
        within(task.wait()).await.unwrap();
    }
    for task in &chatty {
        task.cancel();
    }
    let report = within(governor.report().finished()).await;
    let polls: Vec<_> = report.tasks.iter().take(5).map(|task| task.polls).collect();
    assert!(polls.iter().all(|polls| *polls <= 60), "a start and a woken task in turn, not {polls:?}");
}

/// I3: a long queue of starts does not starve the woken ones either, and they take turns.
#[tokio::test(start_paused = true)]
async fn starts_do_not_starve_woken_tasks_which_take_turns() {
    let governor = fast(10);
    let polled = Arc::new(Mutex::new(Vec::new()));
    let starts = Arc::new(AtomicUsize::new(0));
    let starts_at_the_end = Arc::new(Mutex::new(Vec::new()));
    for n in 0..3 {
        let (polled, starts) = (Arc::clone(&polled), Arc::clone(&starts));
        let starts_at_the_end = Arc::clone(&starts_at_the_end);
        governor.govern(Task::new(format!("{n}"), move || async move {
            for _ in 0..20 {
                polled.lock().unwrap().push(n);
                chatty_once().await;
            }
            starts_at_the_end.lock().unwrap().push(starts.load(Ordering::SeqCst));
        }));
    }
    for n in 0..200 {
        let starts = Arc::clone(&starts);
        governor.govern(Task::new(format!("start {n}"), move || async move {
            starts.fetch_add(1, Ordering::SeqCst);
        }));
    }
    within(governor.report().finished()).await;
    let starts = starts_at_the_end.lock().unwrap();
    assert_eq!(starts.len(), 3);
    assert!(starts.iter().all(|starts| *starts <= 70), "60 polls take 60 turns, not {starts:?}");
    let polled = polled.lock().unwrap();
    assert_eq!(polled.len(), 60);
    // Once all three run: strictly in turn.
    let steady = &polled[9..48];
    assert!(
        steady.windows(4).all(|four| four[0] == four[3] && four[0] != four[1] && four[1] != four[2]),
        "{steady:?}"
    );
}

async fn chatty_once() {
    let mut woken = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// I1: a poll that uses up tokio's whole cooperative budget leaves the next one a fresh one.
#[tokio::test(start_paused = true)]
async fn a_poll_that_uses_up_the_cooperative_budget_does_not_disturb_the_lane() {
    let governor = fast(3);
    for n in 0..3 {
        governor.govern(Task::new(format!("{n}"), || async {
            let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
            for _ in 0..1_000 {
                send.send(()).unwrap();
            }
            for _ in 0..1_000 {
                receive.recv().await.unwrap();
            }
        }));
    }
    governor.govern(Task::new("sleeps", || sleep(secs(1))).timeout(ms(500)));
    let report = within(governor.report().finished()).await;
    assert_eq!(count(&report, "completed"), 3);
    assert_eq!(ended(&report, "sleeps").word(), "timed out");
}

/// I1: with the budget of 5 ms used it gives the tick back, otherwise it goes on at once; real time, also where
/// the clock is paused.
#[tokio::test(start_paused = true)]
async fn yield_if_due_gives_the_tick_back_once_its_budget_is_used() {
    let governor = fast(1);
    governor.govern(Task::new("due", || async {
        for _ in 0..3 {
            hold(ms(6));
            yield_if_due().await;
        }
    }));
    governor.govern(Task::new("not due", || async {
        for _ in 0..100 {
            yield_if_due().await;
        }
    }));
    let report = within(governor.report().finished()).await;
    assert_eq!(report.task("due").unwrap().polls, 4);
    // One reading of the clock each: it would take 5 ms to be due. A slow machine may need a poll more.
    assert!(report.task("not due").unwrap().polls <= 3, "{}", report.task("not due").unwrap().polls);
}

/// I1: outside a lane it yields as well.
#[tokio::test]
async fn yield_if_due_lets_others_run_outside_a_lane_too() {
    let others = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&others);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    });
    let burns = tokio::spawn(async move {
        for _ in 0..5 {
            hold(ms(6));
            yield_if_due().await;
        }
        others.load(Ordering::SeqCst)
    });
    // The first call may only begin the count.
    assert!(soon(burns).await.unwrap() >= 4);
    other.abort();
}

/// I1, I19: wakers that outlive their task cause a poll too many, never one too few, and hurt nobody.
#[tokio::test(start_paused = true)]
async fn wakers_that_outlive_their_tasks_do_no_harm() {
    let governor = fast(1);
    let kept = Arc::new(Mutex::new(Vec::<Waker>::new()));
    for n in 0..3 {
        let keep = Arc::clone(&kept);
        let task = governor.govern(Task::new(format!("{n}"), move || {
            poll_fn(move |cx| {
                keep.lock().unwrap().push(cx.waker().clone());
                Poll::Ready(())
            })
        }));
        within(task.wait()).await.unwrap();
        breathe().await;
        assert_eq!(alive(), 0);
        for waker in kept.lock().unwrap().iter() {
            waker.wake_by_ref();
        }
    }
    let holds = governor.govern(Task::new("holds the slot", pending::<()>));
    breathe().await;
    for waker in kept.lock().unwrap().drain(..) {
        waker.wake();
    }
    breathe().await;
    assert!(!holds.is_finished());
    holds.cancel();
    within(governor.report().finished()).await;
    breathe().await;
    assert_eq!(alive(), 0);
}
