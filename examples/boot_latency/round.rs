//! One run: a fresh runtime, a listener, a warm client, and the side tasks by one strategy.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use afterboot::Report;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep_until, timeout};

use crate::app::App;
use crate::client::Client;
use crate::corpus::Corpus;
use crate::figures::Figures;
use crate::governed;
use crate::ledger::{End, Ledger};
use crate::options::{Options, Victim};
use crate::service::{PATHS, Service};
use crate::strategy::Strategy;
use crate::tasks::{Expected, SideTask, boot, synthetic};
use crate::{Failure, clock};

/// For the side tasks of one run, and again for the last answers.
const DEADLINE: Duration = Duration::from_secs(120);
pub(crate) const WORKERS: usize = 2;
/// Of the ten synthetic tasks, in the row `governed_idle`.
const IDLE: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavor {
    CurrentThread,
    MultiThread,
}

impl Flavor {
    pub(crate) const BOTH: [Self; 2] = [Self::CurrentThread, Self::MultiThread];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CurrentThread => "current_thread",
            Self::MultiThread => "multi_thread",
        }
    }

    fn runtime(self) -> Result<Runtime, Failure> {
        let mut builder = match self {
            Self::CurrentThread => Builder::new_current_thread(),
            Self::MultiThread => Builder::new_multi_thread(),
        };
        Ok(builder.worker_threads(WORKERS).enable_all().build()?)
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CurrentThread => f.write_str("current_thread"),
            Self::MultiThread => write!(f, "multi_thread({WORKERS})"),
        }
    }
}

/// What all runs share.
pub(crate) struct Scene<'a> {
    pub(crate) options: &'a Options,
    pub(crate) corpus: Arc<Corpus>,
    /// How long each run lasts at least; requests over 50 ms are counted within it.
    pub(crate) window: Duration,
}

pub(crate) struct Measured {
    pub(crate) figures: Figures,
    pub(crate) report: Option<Report>,
    /// Of the client's own schedule.
    pub(crate) lateness: Duration,
}

impl Scene<'_> {
    pub(crate) fn run(&self, flavor: Flavor, strategy: Strategy) -> Result<Measured, Failure> {
        let runtime = flavor.runtime()?;
        let measured = runtime.block_on(self.measure(strategy));
        // Nothing of one run may reach into the next; a blocking thread that will not end cannot hold it
        // up.
        runtime.shutdown_timeout(Duration::from_secs(5));
        measured.map_err(|failure| format!("{} on {flavor}: {failure}", strategy.name()).into())
    }

    /// A governed boot on multi_thread whose service nobody asks for anything.
    pub(crate) fn boot_alone(&self) -> Result<Report, Failure> {
        let runtime = Flavor::MultiThread.runtime()?;
        let report = runtime.block_on(async {
            let app = App::new(self.corpus.clone());
            let (tasks, expected) = self.tasks(Strategy::Governed, &app);
            let governor = governed::governor(self.options.profile.clone(), None, self.quiet())?;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            tokio::spawn(Service::new(app, Some(governor.clone())).serve(listener));
            let ledger = Ledger::new(clock::now(), tasks.iter().map(|task| task.queue));
            let report = timeout(DEADLINE, governed::run(&governor, tasks, &ledger)).await;
            check(&ledger, expected)?;
            report.map_err(|_| format!("the boot has not ended within {DEADLINE:?}").into())
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
        report
    }

    async fn measure(&self, strategy: Strategy) -> Result<Measured, Failure> {
        let app = App::new(self.corpus.clone());
        let (tasks, expected) = self.tasks(strategy, &app);
        let governor = if strategy.is_governed() {
            let monkey = self.options.victim.as_ref().map(Victim::monkey);
            Some(governed::governor(self.options.profile.clone(), monkey, self.quiet())?)
        } else {
            None
        };

        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(Service::new(app, governor.clone()).serve(listener));
        let client = Client::connect(address, &PATHS).await?;

        let zero = clock::now();
        let ledger = Ledger::new(zero, tasks.iter().map(|task| task.queue));
        client.start(zero)?;
        let side_work = async {
            match &governor {
                Some(governor) => Ok(Some(governed::run(governor, tasks, &ledger).await)),
                None => strategy.run(tasks, &ledger).await.map(|()| None),
            }
        };
        let late = |_| format!("the side tasks have not ended within {DEADLINE:?}");
        let report = timeout(DEADLINE, side_work).await.map_err(late)??;
        sleep_until((zero + self.window).into()).await;
        let late = |_| format!("the client has not ended within {DEADLINE:?}");
        let answers = timeout(DEADLINE, client.finish()).await.map_err(late)??;

        check(&ledger, expected)?;
        let lateness = answers.lateness;
        Ok(Measured { lateness, figures: Figures::of(&answers.all, &ledger, self.window), report })
    }

    fn tasks(&self, strategy: Strategy, app: &Arc<App>) -> (Vec<SideTask>, Expected) {
        match (strategy, self.options.synthetic) {
            (Strategy::Nothing, _) => (Vec::new(), Expected::default()),
            (Strategy::GovernedIdle, Some(block)) => synthetic(block, IDLE),
            (_, Some(block)) => synthetic(block, 0),
            (_, None) => boot(app),
        }
    }

    /// What every strategy runs, in the order of declaration.
    pub(crate) fn declared(&self) -> (Vec<SideTask>, Expected) {
        self.tasks(Strategy::Governed, &App::new(self.corpus.clone()))
    }

    /// 600 ms in the published demo; the real boot is a demonstration too, and waits less than the default
    /// 5 s.
    fn quiet(&self) -> Duration {
        Duration::from_millis(if self.options.synthetic.is_some() { 600 } else { 500 })
    }
}

/// A strategy that lost a task, or ran one it should not have, has no figures.
fn check(ledger: &Ledger, expected: Expected) -> Result<(), Failure> {
    let ended = Expected {
        completed: ledger.count(End::Completed),
        failed: ledger.count(End::Failed),
        panicked: ledger.count(End::Panicked),
    };
    if ended == expected {
        return Ok(());
    }
    Err(format!("the bodies ended as {ended:?}, expected {expected:?}").into())
}
