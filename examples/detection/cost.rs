//! What the probe costs: process CPU time of an idle runtime, with and without it.

use std::error::Error;
use std::time::Duration;

use afterboot::{Governor, Task};
use tokio::runtime::Builder;
use tokio::time::sleep;

const STRETCH: Duration = Duration::from_secs(30);

/// User and system time of this process, on Linux.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in parentheses and may hold spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // USER_HZ is 100 on every Linux that Rust runs on.
    Some(Duration::from_millis(ticks * 10))
}

pub(crate) fn print() -> Result<(), Box<dyn Error + Send + Sync>> {
    let Some(_) = cpu_time() else {
        println!("cost of the probe: not measured, there is no /proc here");
        return Ok(());
    };
    println!("\ncost over {} s of an idle runtime, in percent of one core", STRETCH.as_secs());
    for workers in [0, 2] {
        let mut builder = match workers {
            0 => Builder::new_current_thread(),
            _ => Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(workers.max(1)).enable_all().build()?;
        let mut spent = Vec::new();
        for probe in [false, true] {
            spent.push(runtime.block_on(async {
                let governor = Governor::builder().await_ready().build()?;
                if probe {
                    governor.govern(Task::new("idle", || async {}).idle());
                }
                sleep(Duration::from_millis(200)).await;
                let before = cpu_time().unwrap_or_default();
                sleep(STRETCH).await;
                let spent = cpu_time().unwrap_or_default() - before;
                governor.shutdown(Duration::ZERO).await;
                Ok::<_, Box<dyn Error + Send + Sync>>(spent)
            })?);
        }
        let percent = |spent: Duration| 100.0 * spent.as_secs_f64() / STRETCH.as_secs_f64();
        println!(
            "{:<16} without {:.2} %, with the probe {:.2} %",
            if workers == 0 { "current_thread" } else { "multi_thread(2)" },
            percent(spent[0]),
            percent(spent[1])
        );
    }
    Ok(())
}
