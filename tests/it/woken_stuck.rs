//! A wake that comes while its task's poll is stuck, and left behind, is answered when that poll has returned.

use afterboot::{Governor, Task};
use std::future::poll_fn;
use std::sync::mpsc;
use std::task::{Poll, Waker};
use std::time::Duration;

fn setup(
    timeout: Option<Duration>,
) -> (Governor, afterboot::TaskHandle<u32>, mpsc::Receiver<Waker>, mpsc::Sender<()>) {
    let governor = Governor::builder().stuck_after(Duration::from_millis(20)).build().unwrap();
    let (tell, told) = mpsc::channel::<Waker>();
    let (go, wait) = mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let mut polls = 0;
    let task = Task::value("stuck", move || {
        poll_fn(move |cx| {
            polls += 1;
            if polls == 1 {
                tell.send(cx.waker().clone()).unwrap();
                wait.lock().unwrap().recv().ok();
                return Poll::Pending;
            }
            Poll::Ready(polls)
        })
    });
    let task = match timeout {
        Some(t) => task.timeout(t),
        None => task,
    };
    let handle = governor.govern(task);
    (governor, handle, told, go)
}

/// I26: the lane does not poll a task twice at once, and forgets no wake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_during_a_stuck_poll_is_not_lost() {
    let (_governor, handle, told, go) = setup(None);
    let waker = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    waker.wake();
    tokio::time::sleep(Duration::from_millis(200)).await;
    go.send(()).unwrap();
    let got = tokio::time::timeout(Duration::from_secs(2), handle.wait()).await;
    assert!(got.is_ok(), "the wake is lost");
}

/// I26, I11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_task_that_has_timed_out_may_be_woken() {
    let (governor, handle, told, go) = setup(Some(Duration::from_millis(100)));
    let waker = tokio::task::spawn_blocking(move || told.recv().unwrap()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(handle.is_finished());
    waker.wake();
    tokio::time::sleep(Duration::from_millis(200)).await;
    go.send(()).unwrap();
    let next = governor.govern(Task::value("next", || async { 7_u32 }));
    let got = tokio::time::timeout(Duration::from_secs(2), next.wait()).await;
    assert!(got.is_ok_and(|got| got.is_ok()), "nothing goes on");
}
