//! One way in which a loop is kept from coming round, or is not.

use std::future::Future;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use afterboot::{Governor, Task, yield_if_due};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::time::{Instant, sleep};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A task that a timer wakes holds its worker.
    Timer,
    /// A task that another thread spawns does.
    Outside,
    /// The same as `Timer`, while other tasks keep the workers awake.
    Load,
    /// The observed future in `block_on` does; the sampler watches.
    Root,
    /// Nothing runs.
    Idle,
    /// Closures block, on the pool.
    Blocking,
    /// A task that a governed poll wakes holds the worker of that poll, directly behind it, while the other worker is busy
    /// for 45 ms, so that the probe comes late.
    Behind,
    /// Sixty-one polls in a row that take 45 ms together.
    ShortPolls,
    /// Polls of the application's that give their ticks back by `yield_if_due`.
    YieldIfDue,
    /// As `Root` on multi_thread, without a sampler: documented as not seen.
    RootUnobserved,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) kind: Kind,
    workers: usize,
    /// Whether a governed task polls for 4 ms at a time all along.
    chain: bool,
}

/// What the governed chain is asked to do in its next poll.
type Request = Box<dyn FnOnce() + Send>;

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) injected: usize,
    pub(crate) seen: usize,
    pub(crate) named: usize,
    /// Long tasks that nothing injected explains.
    pub(crate) claimed: usize,
}

impl Seen {
    pub(crate) fn add(&mut self, other: &Seen) {
        self.injected += other.injected;
        self.seen += other.seen;
        self.named += other.named;
        self.claimed += other.claimed;
    }
}

/// Holds this thread without using its CPU: on a machine that others use too, that is what can be repeated.
#[expect(clippy::disallowed_methods, reason = "holding a worker is the point")]
fn hold(time: Duration) {
    std::thread::sleep(time);
}

/// The stalls that were made: when each began and ended.
type Truth = Arc<Mutex<Vec<(Instant, Instant)>>>;

fn stall(truth: &Truth, length: Duration) {
    let began = Instant::now();
    hold(length);
    truth.lock().expect("nobody panics here").push((began, Instant::now()));
}

impl Scenario {
    pub(crate) fn all() -> impl Iterator<Item = Scenario> {
        let kinds = [
            Kind::Timer,
            Kind::Outside,
            Kind::Load,
            Kind::Root,
            Kind::Idle,
            Kind::Blocking,
            Kind::ShortPolls,
            Kind::YieldIfDue,
        ];
        let of = move |workers| {
            let alone = kinds.map(|kind| Scenario { kind, workers, chain: false });
            let beside = kinds.map(|kind| Scenario { kind, workers, chain: true });
            alone.into_iter().chain(beside).chain([Scenario { kind: Kind::Behind, workers, chain: true }])
        };
        of(0).chain(of(2)).chain([Scenario { kind: Kind::RootUnobserved, workers: 2, chain: false }])
    }

    pub(crate) fn runtime(&self) -> String {
        match self.workers {
            0 => "current_thread".to_owned(),
            workers => format!("multi_thread({workers})"),
        }
    }

    pub(crate) fn name(&self) -> String {
        let chain = if self.chain { ", governed chain" } else { "" };
        format!("{}{chain}", self.kind_name())
    }

    fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Timer => "timer-woken",
            Kind::Outside => "spawned from outside",
            Kind::Load => "under load",
            Kind::Root => "root future, sampler",
            Kind::Idle => "nothing",
            Kind::Blocking => "spawn_blocking",
            Kind::Behind => "behind a governed poll",
            Kind::ShortPolls => "61 short polls",
            Kind::YieldIfDue => "yield_if_due",
            Kind::RootUnobserved => "root future, unobserved",
        }
    }

    fn build(&self) -> std::io::Result<Runtime> {
        let mut builder = match self.workers {
            0 => Builder::new_current_thread(),
            workers => {
                let mut builder = Builder::new_multi_thread();
                builder.worker_threads(workers);
                builder
            }
        };
        builder.enable_all().build()
    }

    /// Injects and counts; blocks its thread until it is done.
    pub(crate) fn run(self, stalls: usize) -> Result<Seen, Failure> {
        let runtime = self.build()?;
        let entered = runtime.enter();
        let builder = Governor::builder().await_ready();
        let builder = if self.kind == Kind::Root { builder.sampler() } else { builder };
        let origin = Instant::now();
        // Its gate stays shut, so its probe watches all along.
        let governor = builder.gate_timeout(Duration::from_secs(3_600)).build()?;
        governor.govern(Task::new("idle", || async {}).idle());
        drop(entered);
        let (ask, asked) = mpsc::channel::<Request>();
        if self.chain {
            governor.govern(Task::new("chain", move || async move {
                loop {
                    hold(Duration::from_millis(4));
                    match asked.try_recv() {
                        Ok(request) => request(),
                        Err(mpsc::TryRecvError::Empty) => {}
                        Err(mpsc::TryRecvError::Disconnected) => return,
                    }
                    tokio::task::yield_now().await;
                }
            }));
        }
        let truth = Truth::default();
        runtime.block_on(self.main(&governor, &truth, stalls, ask));
        let made = truth.lock().expect("nobody panics here").clone();
        Ok(count(&governor, origin, &made))
    }

    async fn main(self, governor: &Governor, truth: &Truth, stalls: usize, ask: mpsc::Sender<Request>) {
        sleep(Duration::from_millis(100)).await;
        let injecting = self.inject(governor.clone(), truth.clone(), stalls, ask);
        match self.kind {
            Kind::Root => governor.observe("injected", injecting).await,
            Kind::RootUnobserved => injecting.await,
            // Observed as a whole: whatever poll of it holds a worker is named.
            _ => drop(tokio::spawn(governor.observe("injected", injecting)).await),
        }
        sleep(Duration::from_millis(150)).await;
    }

    fn inject(
        self,
        governor: Governor,
        truth: Truth,
        stalls: usize,
        ask: mpsc::Sender<Request>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let seed = 7 + self.kind as u64 * 4 + self.workers as u64 + u64::from(self.chain);
        let mut random = StdRng::seed_from_u64(seed);
        async move {
            let load = (self.kind == Kind::Load).then(|| tokio::spawn(load()));
            for _ in 0..stalls {
                sleep(Duration::from_millis(random.random_range(90..150))).await;
                let length = Duration::from_millis(random.random_range(60..=400));
                self.once(&governor, &truth, length, &ask).await;
            }
            if let Some(load) = load {
                load.abort();
            }
        }
    }

    async fn once(self, governor: &Governor, truth: &Truth, length: Duration, ask: &mpsc::Sender<Request>) {
        match self.kind {
            Kind::Timer | Kind::Load | Kind::Root | Kind::RootUnobserved => stall(truth, length),
            Kind::Outside => {
                let (handle, truth) = (Handle::current(), truth.clone());
                let (sender, spawned) = mpsc::channel();
                let waiting = tokio::task::spawn_blocking(move || spawned.recv());
                // Made on another thread; awaited by this one, whose own poll stays short.
                let observed = governor.observe("injected", async move { stall(&truth, length) });
                std::thread::spawn(move || sender.send(handle.spawn(observed)));
                if let Ok(Ok(task)) = waiting.await {
                    drop(task.await);
                }
            }
            Kind::Behind => behind(governor, truth, length, self.workers, ask).await,
            Kind::YieldIfDue => {
                for _ in 0..60 {
                    hold(Duration::from_millis(2));
                    yield_if_due().await;
                }
            }
            Kind::Idle => sleep(length / 4).await,
            Kind::Blocking => drop(tokio::task::spawn_blocking(move || hold(length / 4)).await),
            Kind::ShortPolls => {
                for _ in 0..61 {
                    hold(Duration::from_micros(600));
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

/// A governed poll wakes the stall, which runs next on the same worker; the other one is busy meanwhile.
async fn behind(
    governor: &Governor,
    truth: &Truth,
    length: Duration,
    workers: usize,
    ask: &mpsc::Sender<Request>,
) {
    let (over, ended) = tokio::sync::oneshot::channel::<()>();
    let truth = truth.clone();
    let stalls = governor.observe("injected", async move {
        stall(&truth, length);
        drop(over);
    });
    let request = move || {
        if workers > 0 {
            let runtime = Handle::current();
            // From another thread: what this one spawns it runs itself.
            std::thread::spawn(move || runtime.spawn(async { hold(Duration::from_millis(45)) }));
        }
        tokio::spawn(stalls);
    };
    // The chain ends when it is not asked any more, so it is there.
    if ask.send(Box::new(request)).is_ok() {
        drop(ended.await);
    }
}

/// Keeps the workers awake without ever holding one.
async fn load() {
    loop {
        for _ in 0..8 {
            tokio::spawn(async { std::hint::black_box(()) });
        }
        sleep(Duration::from_millis(2)).await;
    }
}

/// Holds each stall that was made against the long tasks that were told.
fn count(governor: &Governor, origin: Instant, made: &[(Instant, Instant)]) -> Seen {
    let report = governor.report().current();
    let mut told: Vec<_> = report.long_tasks.iter().collect();
    let mut seen = Seen { injected: made.len(), ..Seen::default() };
    for (began, ended) in made {
        let (began, ended) = (*began - origin, *ended - origin);
        let hits: Vec<usize> = (0..told.len())
            .filter(|&i| told[i].start < ended && told[i].start + told[i].length > began)
            .collect();
        seen.seen += usize::from(!hits.is_empty());
        seen.named += usize::from(hits.iter().any(|&i| told[i].who.as_deref() == Some("injected")));
        for &hit in hits.iter().rev() {
            told.remove(hit);
        }
    }
    seen.claimed = told.len();
    seen
}
