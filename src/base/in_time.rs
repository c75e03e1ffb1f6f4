//! For tests of large numbers.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Far more than what is linear takes on a busy machine, and far less than what is quadratic does.
const DEADLINE: Duration = Duration::from_secs(120);

/// # Panics
/// `run` panics, or takes longer than [`DEADLINE`].
pub(crate) fn in_time(run: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        run();
        done.send(()).expect("the test waits");
    });
    ended.recv_timeout(DEADLINE).expect("it ends well, and in time");
}
