//! An idle task whose result is needed at once. It would wait for 5 s of quiet; `demand()` starts it now, past
//! the gate, and all who ask share its one run.
#![expect(clippy::print_stdout, reason = "an example's result")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use afterboot::{Governor, Task};
use tokio::time::{Instant, sleep};

static RUNS: AtomicU32 = AtomicU32::new(0);

struct Index {
    files: Vec<&'static str>,
}

async fn load_index() -> Result<Index, std::io::Error> {
    RUNS.fetch_add(1, Ordering::Relaxed);
    sleep(Duration::from_millis(100)).await;
    Ok(Index { files: vec!["src/lib.rs", "src/gate.rs"] })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let governor = Governor::builder().await_ready().build()?;
    let index = governor.govern(Task::new("search index", load_index).idle());
    governor.ready();
    let run = governor.report();

    // Three requests want the index long before the application is quiet.
    let start = Instant::now();
    let requests: Vec<_> = (1..=3)
        .map(|request| {
            let index = index.demand();
            tokio::spawn(async move { index.await.map(|index| (request, index)) })
        })
        .collect();
    for request in requests {
        let (number, index) = request.await??;
        println!("request {number}: {} files after {:?}", index.files.len(), start.elapsed());
    }

    // Later callers get the same result.
    let again = index.demand().await?;
    println!("later: {}; runs of the task: {}\n", again.files[0], RUNS.load(Ordering::Relaxed));
    println!("{}", run.finished().await);
    Ok(())
}
