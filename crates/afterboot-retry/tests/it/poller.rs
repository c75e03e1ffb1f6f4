//! The poller under a paused clock.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use afterboot_retry::{CodeGiveUp, CodeRules, Fetched, PollEnd, PollEvent, PollHandle, Poller};
use tokio::time::{Instant, sleep};

use crate::common::{ends, ms, s};

fn poller(period: Duration) -> (Poller, PollHandle) {
    Poller::new(CodeRules::default(), period)
}

/// Polls a server at once and notes when; ends after `end`.
async fn polls(
    poller: Poller,
    handle: PollHandle,
    end: Duration,
    mut answer: impl FnMut(Duration) -> Fetched<u32>,
) -> (Vec<u64>, PollEnd) {
    let begun = Instant::now();
    let times = RefCell::new(Vec::new());
    let running = poller.run(
        || {
            times.borrow_mut().push(begun.elapsed().as_millis() as u64);
            std::future::ready(answer(begun.elapsed()))
        },
        |_| {},
    );
    let ending = async {
        sleep(end).await;
        handle.close();
    };
    let (ended, ()) = ends(async { tokio::join!(running, ending) }).await;
    (times.into_inner(), ended)
}

#[tokio::test(start_paused = true)]
async fn a_504_of_40_s_is_polled_at_the_published_times_and_rides_through() {
    let (poller, handle) = poller(s(2));
    let answer = |at| if at < s(40) { Fetched::Failed(504) } else { Fetched::Final(1) };
    let (times, end) = polls(poller, handle, s(1000), answer).await;
    assert_eq!(times, [0, 0, 1000, 2000, 4000, 7000, 12_000, 20_000, 33_000, 54_000]);
    assert_eq!(end, PollEnd::Final);
}

#[tokio::test(start_paused = true)]
async fn an_eleventh_504_gives_up_after_88_s() {
    let (poller, handle) = poller(s(2));
    let (times, end) = polls(poller, handle, s(1000), |_| Fetched::Failed(504)).await;
    assert_eq!((times.len(), times[10]), (11, 88_000));
    assert_eq!(end, PollEnd::GaveUp { code: 504, reason: CodeGiveUp::Exhausted, attempts: 10 });
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_followed_by_the_period_and_sets_the_attempts_to_zero() {
    let (poller, handle) = poller(s(2));
    let mut answers = [504, 504, 504, 200, 504, 504, 200].into_iter();
    let answer = |_| match answers.next() {
        Some(200) => Fetched::Answer(0),
        Some(code) => Fetched::Failed(code),
        None => Fetched::Failed(410),
    };
    let (times, end) = polls(poller, handle, s(1000), answer).await;
    assert_eq!(times, [0, 0, 1000, 2000, 4000, 4000, 5000, 7000]);
    assert_eq!(end, PollEnd::Ended { code: 410 });
}

/// R14.
#[tokio::test(start_paused = true)]
async fn stop_and_start_with_a_fetch_in_flight_is_one_loop() {
    let (poller, handle) = poller(s(2));
    let (in_flight, most) = (Cell::new(0), Cell::new(0));
    let times = RefCell::new(Vec::new());
    let begun = Instant::now();
    let events = RefCell::new(Vec::new());
    let running = poller.run(
        || {
            times.borrow_mut().push(begun.elapsed().as_millis());
            let (in_flight, most) = (&in_flight, &most);
            async move {
                in_flight.set(in_flight.get() + 1);
                most.set(most.get().max(in_flight.get()));
                let _landed = Landing(in_flight);
                sleep(s(1)).await;
                Fetched::Answer(())
            }
        },
        |event| events.borrow_mut().push(event),
    );
    let driving = async {
        sleep(ms(500)).await;
        handle.stop();
        handle.start();
        sleep(ms(500)).await;
        handle.stop();
        sleep(ms(500)).await;
        handle.start();
        handle.start();
        sleep(ms(6500)).await;
        handle.close();
    };
    let (end, ()) = ends(async { tokio::join!(running, driving) }).await;
    assert_eq!(*times.borrow(), [0, 500, 1500, 4500, 7500]);
    assert_eq!((most.get(), in_flight.get(), end), (1, 0, PollEnd::Closed));
    let cancelled = events.borrow().iter().filter(|event| **event == PollEvent::Cancelled).count();
    assert_eq!(cancelled, 3, "two stops and the close");
}

/// Counts a fetch as over however it ends.
struct Landing<'a>(&'a Cell<u32>);

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// R15.
#[tokio::test(start_paused = true)]
async fn a_code_to_skip_for_ever_does_not_spin_and_ends() {
    let rules = CodeRules::builder().skip([503]).build().unwrap();
    let (poller, handle) = Poller::new(rules, s(2));
    let (times, end) = polls(poller, handle, s(1000), |_| Fetched::Failed(503)).await;
    let expected: Vec<u64> = (0..=10).map(|n| n * 250).collect();
    assert_eq!(times, expected);
    assert_eq!(end, PollEnd::GaveUp { code: 503, reason: CodeGiveUp::SkipLimit, attempts: 10 });
}

/// R16.
#[tokio::test(start_paused = true)]
async fn a_fetch_cancelled_by_a_seek_does_not_reset_the_attempts() {
    let (poller, handle) = poller(s(2));
    let fetches = Cell::new(0);
    let events = RefCell::new(Vec::new());
    let running = poller.run(
        || {
            fetches.set(fetches.get() + 1);
            let fetch = fetches.get();
            async move {
                match fetch {
                    4 => std::future::pending().await,
                    5 => Fetched::Cancelled,
                    _ => Fetched::<()>::Failed(504),
                }
            }
        },
        |event| events.borrow_mut().push(event),
    );
    let seeking = async {
        sleep(s(10)).await;
        assert_eq!(fetches.get(), 4, "the fourth is in flight");
        handle.refetch();
        sleep(s(100)).await;
    };
    let (end, ()) = ends(async { tokio::join!(running, seeking) }).await;
    assert_eq!(end, PollEnd::GaveUp { code: 504, reason: CodeGiveUp::Exhausted, attempts: 10 });
    let attempts: Vec<u32> = events
        .borrow()
        .iter()
        .filter_map(|event| if let PollEvent::Failed { attempt, .. } = event { Some(*attempt) } else { None })
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_new_period_counts_at_once_but_does_not_cut_a_wait_after_a_failure() {
    let (one, handle) = poller(s(10));
    let changing = handle.clone();
    let change = async move {
        sleep(s(1)).await;
        changing.set_period(s(3));
    };
    let ((times, _), ()) = tokio::join!(polls(one, handle, s(8), |_| Fetched::Answer(0)), change);
    assert_eq!(times, [0, 3000, 6000]);

    let (other, handle) = poller(s(10));
    let changing = handle.clone();
    let change = async move {
        sleep(ms(100)).await;
        changing.set_period(ms(50));
    };
    let ((times, _), ()) = tokio::join!(polls(other, handle, ms(1900), |_| Fetched::Failed(404)), change);
    assert_eq!(times, [0], "404 waits 2 s");
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_the_next_fetch_and_lets_the_one_in_flight_land() {
    let (poller, handle) = poller(s(2));
    let begun = Instant::now();
    let answered = RefCell::new(Vec::new());
    let running = poller.run(
        || async {
            sleep(s(1)).await;
            Fetched::Answer(())
        },
        |event| {
            if let PollEvent::Answered { .. } = event {
                answered.borrow_mut().push(begun.elapsed().as_millis());
            }
        },
    );
    let driving = async {
        sleep(ms(500)).await;
        handle.pause();
        sleep(ms(9500)).await;
        handle.resume(); // at 10 s; one was due at 3 s
        sleep(ms(1500)).await;
        handle.pause(); // at 11.5 s; the next is due at 13 s
        sleep(ms(500)).await;
        handle.resume();
        sleep(ms(2500)).await;
        handle.close();
    };
    ends(async { tokio::join!(running, driving) }).await;
    assert_eq!(*answered.borrow(), [1000, 11_000, 14_000]);
}

#[tokio::test(start_paused = true)]
async fn a_poller_without_handles_goes_on_and_a_period_of_zero_does_not_spin() {
    let (poller, handle) = poller(Duration::ZERO);
    drop(handle);
    let mut fetches = 0;
    let running = poller.run(
        || {
            fetches += 1;
            std::future::ready(Fetched::Answer(()))
        },
        |_| {},
    );
    assert!(tokio::time::timeout(ms(100), running).await.is_err());
    assert!((50..=102).contains(&fetches), "{fetches} fetches in 100 ms");
}

/// R5: a period or a wait that nobody lives to see the end of is no overflow.
#[tokio::test(start_paused = true)]
async fn the_longest_period_and_the_longest_wait_end_far_away() {
    let (poller, handle) = poller(Duration::MAX);
    assert_eq!(polls(poller, handle, s(86_400), |_| Fetched::Answer(0)).await, (vec![0], PollEnd::Closed));

    let rules = CodeRules::builder().skip([503]).skip_floor(Duration::MAX).build().unwrap();
    let (poller, handle) = Poller::new(rules, s(2));
    assert_eq!(polls(poller, handle, s(86_400), |_| Fetched::Failed(503)).await, (vec![0], PollEnd::Closed));

    let (poller, handle) = self::poller(s(2));
    let longer = handle.clone();
    let answer = |_| {
        longer.set_period(Duration::MAX);
        Fetched::Answer(0)
    };
    assert_eq!(polls(poller, handle, s(86_400), answer).await, (vec![0], PollEnd::Closed));
}
