//! What a governed no-op costs, beside what a user would write instead. Ratios within one run count, not the
//! nanoseconds: `cargo bench --bench overhead`. Each iteration asserts its result; losing rows stay.

use std::time::Duration;

use afterboot::{Governor, Profile, Task};
use divan::Bencher;
use divan::counter::ItemsCount;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, yield_now};

const SIZES: [usize; 2] = [1_000, 100_000];

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn bench<F: Future<Output = usize>>(bencher: Bencher<'_, '_>, tasks: usize, run: impl Fn(usize) -> F) {
    bencher
        .counter(ItemsCount::new(tasks))
        .with_inputs(runtime)
        .bench_local_refs(|runtime| assert_eq!(runtime.block_on(run(tasks)), tasks));
}

#[divan::bench(args = SIZES, sample_count = 9, sample_size = 1, name = "no_op/afterboot, a tick each")]
fn governed(bencher: Bencher<'_, '_>, tasks: usize) {
    bench(bencher, tasks, |tasks| async move {
        let profile = Profile::default().delay(Duration::ZERO).pulse(Duration::ZERO);
        let governor = Governor::builder().profile(profile).build().expect("a runtime");
        let handles: Vec<_> = (0..tasks).map(|_| governor.govern(Task::new("no-op", || async {}))).collect();
        let mut ended = 0;
        for handle in handles {
            ended += usize::from(handle.wait().await.is_ok());
        }
        ended
    });
}

#[divan::bench(args = SIZES, sample_count = 9, sample_size = 1, name = "no_op/spawn, a tick each, join")]
fn spawn_with_ticks(bencher: Bencher<'_, '_>, tasks: usize) {
    bench(bencher, tasks, |tasks| async move {
        let run = tokio::spawn(async move {
            let mut handles = Vec::with_capacity(tasks);
            for _ in 0..tasks {
                yield_now().await;
                handles.push(tokio::spawn(async {}));
            }
            let mut ended = 0;
            for handle in handles {
                ended += usize::from(handle.await.is_ok());
            }
            ended
        });
        run.await.expect("it does not panic")
    });
}

#[divan::bench(args = SIZES, sample_count = 9, sample_size = 1, name = "no_op/spawn all, join")]
fn spawn_all(bencher: Bencher<'_, '_>, tasks: usize) {
    bench(bencher, tasks, |tasks| async move {
        let handles: Vec<_> = (0..tasks).map(|_| tokio::spawn(async {})).collect();
        let mut ended = 0;
        for handle in handles {
            ended += usize::from(handle.await.is_ok());
        }
        ended
    });
}

#[divan::bench(args = SIZES, sample_count = 9, sample_size = 1, name = "no_op/JoinSet")]
fn join_set(bencher: Bencher<'_, '_>, tasks: usize) {
    bench(bencher, tasks, |tasks| async move {
        let mut set = JoinSet::new();
        for _ in 0..tasks {
            set.spawn(async {});
        }
        set.join_all().await.len()
    });
}

#[divan::bench(args = SIZES, sample_count = 9, sample_size = 1, name = "no_op/FuturesUnordered, 3 at once, a tick each")]
fn futures_unordered(bencher: Bencher<'_, '_>, tasks: usize) {
    bench(bencher, tasks, |tasks| async move {
        let run = tokio::spawn(async move {
            let mut running = FuturesUnordered::new();
            let (mut begun, mut ended) = (0, 0);
            while ended < tasks {
                while begun < tasks && running.len() < 3 {
                    begun += 1;
                    running.push(async {});
                }
                yield_now().await;
                ended += usize::from(running.next().await.is_some());
            }
            ended
        });
        run.await.expect("it does not panic")
    });
}

#[divan::bench(args = [1_000, 100_000, 1_000_000], sample_count = 3, sample_size = 1, name = "shutdown/afterboot")]
fn shutdown(bencher: Bencher<'_, '_>, tasks: usize) {
    bencher
        .counter(ItemsCount::new(tasks))
        .with_inputs(|| {
            let runtime = runtime();
            let governor = Governor::builder().runtime(runtime.handle().clone()).build().expect("a runtime");
            let handles: Vec<_> =
                (0..tasks).map(|_| governor.govern(Task::new("no-op", || async {}).idle())).collect();
            (runtime, governor, handles)
        })
        .bench_local_refs(|(runtime, governor, handles)| {
            runtime.block_on(governor.shutdown(Duration::ZERO));
            assert!(handles.iter().all(|handle| handle.is_finished()));
        });
}
