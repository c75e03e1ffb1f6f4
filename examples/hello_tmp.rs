use afterboot::{Governor, Task};
use std::time::Duration;
#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let g = Governor::builder().quiet(Duration::from_millis(300)).build()?;
    let a = g.govern(Task::new("a", || async { tokio::time::sleep(Duration::from_millis(20)).await; Ok::<_, std::io::Error>(3) }));
    g.govern(Task::new("b", || async { if true { panic!("boom") } }).after(&a));
    g.govern(Task::new("idle", || async {}).idle());
    g.govern(Task::blocking("blk", || std::thread::sleep(Duration::from_millis(80))).idle());
    let r = g.report().finished().await;
    println!("{r}");
    println!("{}", *a.await?);
    Ok(())
}
