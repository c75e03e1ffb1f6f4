//! What afterboot takes for granted of tokio and nobody promises. When a newer tokio changes it, this fails before
//! anything subtle does: then `src/tick.rs` has to be thought over again.
//!
//! Counts are exact where one thread decides alone. Where workers hand things to each other, times are compared by
//! medians of many rounds and a limit that is far from both sides, because machines are busy.

use std::future::{Future, poll_fn};
use std::net::UdpSocket as StdSocket;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn workers(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

/// Records that it was woken.
#[derive(Default)]
struct Flag(AtomicBool);

impl Flag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Tells when somebody looks at the driver: a datagram lies ready, and the look calls our waker.
struct Look {
    receiver: UdpSocket,
    sender: StdSocket,
}

impl Look {
    async fn new() -> Look {
        let receiver = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let sender = StdSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        Look { receiver, sender }
    }

    /// Set by the next look.
    fn next(&self) -> Arc<Flag> {
        let flag = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&flag));
        while self.receiver.poll_recv_ready(&mut Context::from_waker(&waker)).is_ready() {
            while self.receiver.try_recv(&mut [0; 8]).is_ok() {}
        }
        assert!(!flag.is_set());
        self.sender.send(&[0]).unwrap();
        flag
    }
}

/// The lane's tick is `yield_now` in a spawned task: the poll that follows comes after a look at the driver. Were it
/// none, the usual look at every 61st task would be all there is.
#[test]
fn after_yield_now_in_a_spawned_task_the_driver_has_been_looked_at() {
    for runtime in [one_thread(), workers(1)] {
        let looks = runtime.block_on(async {
            let look = Look::new().await;
            let yields = tokio::spawn(async move {
                let mut looks = 0;
                for _ in 0..200 {
                    let flag = look.next();
                    yield_now().await;
                    looks += usize::from(flag.is_set());
                }
                looks
            });
            yields.await.unwrap()
        });
        // All of them where the machine is quiet: a datagram may take its time.
        assert!(looks >= 150, "{looks} of 200: a yield is no tick any more");
    }
}

/// Why a spawn per task is not a tick: many run between two looks at the driver. If this fails because fewer do,
/// the lane may have become needless.
#[test]
fn many_spawned_tasks_run_between_two_looks_at_the_driver() {
    let mut before_the_look: Vec<usize> = (0..9)
        .map(|_| {
            one_thread().block_on(async {
                let look = Look::new().await;
                let spawner = tokio::spawn(async move {
                    let (flag, ran) = (look.next(), Arc::new(AtomicUsize::new(0)));
                    let all: Vec<_> = (0..300)
                        .map(|_| {
                            let (flag, ran) = (Arc::clone(&flag), Arc::clone(&ran));
                            tokio::spawn(async move {
                                if !flag.is_set() {
                                    ran.fetch_add(1, Ordering::SeqCst);
                                }
                            })
                        })
                        .collect();
                    for task in all {
                        task.await.unwrap();
                    }
                    ran.load(Ordering::SeqCst)
                });
                spawner.await.unwrap()
            })
        })
        .collect();
    before_the_look.sort_unstable();
    let median = before_the_look[4];
    assert!((20..=100).contains(&median), "61 tasks were expected between two looks: {before_the_look:?}");
}

/// Why the lane's ticker has a waker of its own. `yield_now` is ready at its second poll, whoever asked for that;
/// what is deferred until the look at the driver is the wake of the waker that it was first polled with.
#[test]
fn yield_now_is_ready_at_the_next_poll_and_wakes_the_first_waker_after_the_look() {
    for runtime in [one_thread(), workers(1)] {
        let checked = runtime.block_on(async {
            tokio::spawn(async {
                let flag = Arc::new(Flag::default());
                let waker = Waker::from(Arc::clone(&flag));
                let mut asked = pin!(yield_now());
                assert!(asked.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
                assert!(!flag.is_set(), "it wakes at once, without a look at the driver");
                let noop = Waker::noop();
                assert!(
                    asked.as_mut().poll(&mut Context::from_waker(noop)).is_ready(),
                    "it waits for its own wake"
                );
                assert!(!flag.is_set());
                // Our own wake, and not a yield: another pass of the loop, and with it the deferred wake.
                let mut turns = 0;
                poll_fn(|cx| {
                    if flag.is_set() {
                        return Poll::Ready(());
                    }
                    turns += 1;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                })
                .await;
                turns
            })
            .await
            .unwrap()
        });
        assert!(checked <= 500, "{checked} polls until the deferred wake came");
    }
}

/// The deferred wake comes only after the driver was looked at.
#[test]
fn the_deferred_wake_comes_after_the_look_at_the_driver() {
    for runtime in [one_thread(), workers(1)] {
        let early = runtime.block_on(async {
            let look = Look::new().await;
            let asks = tokio::spawn(async move {
                let mut early = 0;
                for _ in 0..200 {
                    let (looked, deferred) = (look.next(), Arc::new(Flag::default()));
                    let waker = Waker::from(Arc::clone(&deferred));
                    assert!(pin!(yield_now()).poll(&mut Context::from_waker(&waker)).is_pending());
                    while !deferred.is_set() {
                        poll_once_more().await;
                    }
                    early += usize::from(!looked.is_set());
                }
                early
            });
            asks.await.unwrap()
        });
        assert!(early <= 50, "{early} of 200 deferred wakes came before the driver had been looked at");
    }
}

async fn poll_once_more() {
    let mut polled = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[expect(clippy::disallowed_methods, reason = "a long poll is what is tested")]
fn burn(time: Duration) {
    std::thread::sleep(time);
}

/// How late a foreground timer is served while a task, woken by a timer, has one long poll. Median of the rounds.
fn lateness(hand_over: bool) -> Duration {
    const POLL: Duration = Duration::from_millis(60);
    let mut late: Vec<Duration> = (0..15)
        .map(|_| {
            let runtime = workers(2);
            let late = runtime.block_on(async {
                let foreground = tokio::spawn(async {
                    let mut worst = Duration::ZERO;
                    let begun = Instant::now();
                    while begun.elapsed() < POLL * 2 {
                        let due = Instant::now() + Duration::from_millis(3);
                        tokio::time::sleep_until(due).await;
                        worst = worst.max(due.elapsed());
                    }
                    worst
                });
                let background = tokio::spawn(async move {
                    sleep(Duration::from_millis(10)).await;
                    if hand_over {
                        poll_once_more().await;
                    }
                    burn(POLL);
                });
                background.await.unwrap();
                foreground.await.unwrap()
            });
            runtime.shutdown_background();
            late
        })
        .collect();
    late.sort_unstable();
    late[late.len() / 2]
}

/// Why the lane wakes itself once after a tick: a task that a timer wakes runs on the worker that holds the driver.
/// With the wake a parked worker takes the driver over, and timers are served while the poll goes on. The poll is
/// 60 ms, a timer is due every 3 ms: 30 ms late in the median of 15 rounds is far from both.
#[test]
fn a_wake_of_itself_hands_the_driver_to_a_parked_worker() {
    let with = lateness(true);
    assert!(
        with < Duration::from_millis(30),
        "timers are {with:?} late during a long poll, though it woke itself"
    );
}
