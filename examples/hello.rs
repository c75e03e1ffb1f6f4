//! The smallest boot: three tasks, one report.
#![expect(clippy::print_stdout, reason = "an example's result")]

use std::time::Duration;

use afterboot::{Governor, Task};
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let governor = Governor::builder().await_ready().quiet(Duration::from_millis(300)).build()?;
    governor.govern(Task::new("notifications", || sleep(Duration::from_millis(20))));
    governor.govern(Task::new("licence check", || async { Err::<(), _>("no licence server") }));
    governor.govern(Task::new("search index", || sleep(Duration::from_millis(50))).idle());
    governor.ready();
    println!("{}", governor.report().finished().await);
    Ok(())
}
