//! The settings of a beacon. Setters store; [`build`](BeaconBuilder::build) checks everything at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::beacon::Beacon;
use super::early::Early;
use super::error::Error;
use super::intake::VITAL_AT_MOST;
use super::launch;
use crate::base::bounds::EXPIRY;
use crate::base::faults::Machine;
use crate::base::random::random;
use crate::engine::Limits;
#[cfg(feature = "spool")]
use crate::spool::{Durability, SpoolOptions};
use crate::state::clock::Wall;
use crate::state::privacy::AllowLists;
use crate::state::settings::{Delays, DiskOptions, Settings, TransportSource};
use crate::state::token_source::TokenSource;
use crate::transport::{Token, Transport};
use crate::wire::{MAX_BODY, MAX_EVENTS};

/// A body needs room for its head and one event.
const MIN_BATCH_BYTES: usize = 1024;

/// Builds a [`Beacon`].
///
/// | Setting | Default | Where from |
/// | --- | --- | --- |
/// | vital delay, basic delay | 1 s, 5 s | a published rewrite of Facebook's Banzai client |
/// | events a batch | 100 | a published tracker design |
/// | bytes a batch, before compression | 65,536 | Banzai |
/// | events in memory | 20,000 | about 5 MB of small events |
/// | bytes in memory | 32 MiB | a bound for large ones |
/// | time limit of a request | 10 s | twice the basic delay |
/// | expiry | 24 h | Banzai |
/// | replay spread | 30 s | replicas that restart together do not send their backlogs together |
#[must_use = "a builder does nothing before build()"]
#[derive(Debug)]
pub struct BeaconBuilder {
    app: String,
    transport: Option<TransportSource>,
    endpoint_is_wrong: bool,
    /// How many endpoints and transports were given.
    transports: u32,
    tokens: TokenSource,
    user: Option<String>,
    session: Option<String>,
    limits: Limits,
    delays: Delays,
    time_limit: Duration,
    expiry: Duration,
    allow: AllowLists,
    early: Option<&'static Early>,
    runtime: Option<Handle>,
    wall: Wall,
    machine: Machine,
    seed: Option<u64>,
    faults: Vec<String>,
    #[cfg(feature = "spool")]
    spool: Option<SpoolOptions>,
    #[cfg(feature = "spool")]
    durability: Durability,
}

impl Beacon {
    /// Returns a builder of a beacon for the application `app`.
    pub fn builder(app: impl Into<String>) -> BeaconBuilder {
        BeaconBuilder::new(app.into())
    }
}

impl BeaconBuilder {
    pub(crate) fn new(app: String) -> BeaconBuilder {
        BeaconBuilder {
            app,
            transport: None,
            endpoint_is_wrong: false,
            transports: 0,
            tokens: TokenSource::none(),
            user: None,
            session: None,
            limits: Limits {
                events: 20_000,
                bytes: 32 * 1024 * 1024,
                batch_events: MAX_EVENTS,
                batch_bytes: MAX_BODY,
                replay_spread: Duration::from_secs(30),
                keeps_letters: false,
            },
            delays: Delays { vital: Duration::from_secs(1), basic: Duration::from_secs(5) },
            time_limit: Duration::from_secs(10),
            expiry: EXPIRY,
            allow: AllowLists::default(),
            early: None,
            runtime: None,
            wall: Wall::System,
            machine: Machine::new(),
            seed: None,
            faults: Vec::new(),
            #[cfg(feature = "spool")]
            spool: None,
            #[cfg(feature = "spool")]
            durability: Durability::Process,
        }
    }

    /// Sends over HTTP to this URL: `http://`, or `https://` with the feature `tls`. Credentials go into
    /// [`token`](BeaconBuilder::token) instead.
    #[cfg(feature = "http")]
    pub fn endpoint(mut self, url: &str) -> BeaconBuilder {
        self.transports += 1;
        match crate::transport::http::HttpTransport::new(url) {
            Ok(_) => self.transport = Some(TransportSource::Url(url.to_owned())),
            Err(error) => {
                self.faults.push(error.to_string());
                self.endpoint_is_wrong = true;
            }
        }
        self
    }

    /// Sends over this transport.
    pub fn transport(mut self, transport: impl Transport) -> BeaconBuilder {
        self.transports += 1;
        self.transport = Some(TransportSource::Own(Arc::new(transport)));
        self
    }

    /// Sets the endpoint's token, sent as `authorization: Bearer …`. It authenticates the application, not a user: batches of
    /// several users are sent with it.
    pub fn token(mut self, token: Token) -> BeaconBuilder {
        if !token.is_sendable() {
            let fault = "token holds a line break or another character that is not allowed in a header: visible ASCII is allowed";
            self.faults.push(fault.to_owned());
        }
        self.tokens = TokenSource::fixed(token);
        self
    }

    /// Obtains the token from `ask` before the first request and again after each time that the endpoint is held. The future
    /// runs on the beacon's runtime, within the time limit of the request.
    pub fn token_from<F, Fut>(mut self, ask: F) -> BeaconBuilder
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<Token>> + Send + 'static,
    {
        self.tokens = TokenSource::asking(ask);
        self
    }

    /// Sets the first user. Default: none, and events are anonymous.
    pub fn user(mut self, user: impl Into<String>) -> BeaconBuilder {
        self.user = Some(user.into());
        self
    }

    /// Sets the first session. Default: none.
    pub fn session(mut self, session: impl Into<String>) -> BeaconBuilder {
        self.session = Some(session.into());
        self
    }

    /// Keeps batches that cannot be sent on disk, where they outlive the process. The spool is opened in the background: a slow
    /// disk does not delay `build`.
    #[cfg(feature = "spool")]
    pub fn spool(mut self, spool: SpoolOptions) -> BeaconBuilder {
        self.spool = Some(spool);
        self
    }

    /// Sets what a durable event survives. Default: [`Durability::Process`]. With [`Durability::Buffered`] the receipt resolves
    /// at once, and a durable post is like any other.
    #[cfg(feature = "spool")]
    pub fn durability(mut self, durability: Durability) -> BeaconBuilder {
        self.durability = durability;
        self
    }

    /// Limits the events in memory. Default: 20,000. At the limit a basic event is dropped, and a vital one displaces the
    /// oldest basic one.
    pub fn max_events(mut self, events: usize) -> BeaconBuilder {
        self.limits.events = events;
        self
    }

    /// Limits the bytes of events in memory. Default: 32 MiB.
    pub fn max_bytes(mut self, bytes: usize) -> BeaconBuilder {
        self.limits.bytes = bytes;
        self
    }

    /// Limits the events in a batch: 1 to 100. Default: 100.
    pub fn batch_events(mut self, events: usize) -> BeaconBuilder {
        self.limits.batch_events = events;
        self
    }

    /// Limits the bytes of a batch before compression: 1,024 to 65,536. Default: 65,536.
    pub fn batch_bytes(mut self, bytes: usize) -> BeaconBuilder {
        self.limits.batch_bytes = bytes;
        self
    }

    /// Sets how long a vital event may wait for its batch to fill: at most 1 s, the default.
    pub fn vital_delay(mut self, delay: Duration) -> BeaconBuilder {
        self.delays.vital = delay;
        self
    }

    /// Sets how long a basic event may wait for its batch to fill: more than 1 s. Default: 5 s.
    pub fn basic_delay(mut self, delay: Duration) -> BeaconBuilder {
        self.delays.basic = delay;
        self
    }

    /// Limits the total time of a request. Default: 10 s.
    pub fn request_time_limit(mut self, limit: Duration) -> BeaconBuilder {
        self.time_limit = limit;
        self
    }

    /// Sets when an event expires after its post, unless [`Post::expiry`](crate::Post::expiry) does. Default: 24 h.
    pub fn expiry(mut self, expiry: Duration) -> BeaconBuilder {
        self.expiry = expiry;
        self
    }

    /// Spreads replays: after the start and after each recovery, sending the spool's backlog begins at a random moment within
    /// `spread`. Default: 30 s. Zero begins at once.
    pub fn replay_spread(mut self, spread: Duration) -> BeaconBuilder {
        self.limits.replay_spread = spread;
        self
    }

    /// Restricts the data of events of this route to these keys. Calls for the same route add up.
    ///
    /// The keys are those of the outermost object; an allowed key keeps its whole value. Data that is not an object becomes
    /// `{}`.
    pub fn allow<K: Into<String>>(
        mut self,
        route: impl Into<String>,
        keys: impl IntoIterator<Item = K>,
    ) -> BeaconBuilder {
        self.allow.allow(route.into(), keys.into_iter().map(Into::into));
        self
    }

    /// Takes over the events that were posted to `early` before the beacon was built.
    pub fn early(mut self, early: &'static Early) -> BeaconBuilder {
        self.early = Some(early);
        self
    }

    /// Runs the beacon as a task on this runtime instead of on its own thread and runtime. The runtime needs its time driver
    /// and, for the HTTP transport, its I/O driver.
    ///
    /// Under a paused clock, that clock drives the beacon. Post from the runtime's own thread then: other threads read the
    /// real clock.
    pub fn runtime(mut self, runtime: Handle) -> BeaconBuilder {
        self.runtime = Some(runtime);
        self
    }

    /// Derives timestamps and expiry from tokio's clock, counted from the wall clock at the start, so that a paused clock drives
    /// them too. For tests: it does not see a clock that is set or a machine that sleeps.
    pub fn wall_from_tokio(mut self) -> BeaconBuilder {
        self.wall = Wall::Tokio;
        self
    }

    /// Runs on this machine, for tests: see [`Machine`].
    pub fn machine(mut self, machine: &Machine) -> BeaconBuilder {
        self.machine = machine.clone();
        self
    }

    /// Seeds the jitter of all waits, for tests.
    pub fn seed(mut self, seed: u64) -> BeaconBuilder {
        self.seed = Some(seed);
        self
    }

    /// Builds and starts the beacon.
    ///
    /// # Errors
    /// Fails if settings are wrong, naming each with its value and what is allowed, or if the thread or the runtime cannot be
    /// started.
    pub fn build(mut self) -> Result<Beacon, Error> {
        self.check();
        let Some(transport) = self.transport.take().filter(|_| self.faults.is_empty()) else {
            return Err(Error::config(self.faults));
        };
        #[cfg(feature = "spool")]
        let disk =
            DiskOptions { spool: self.spool, durability: self.durability, machine: self.machine.clone() };
        #[cfg(not(feature = "spool"))]
        let disk = DiskOptions;
        let settings = Settings {
            app: self.app,
            transport,
            tokens: self.tokens,
            limits: Limits { keeps_letters: disk.has_spool(), ..self.limits },
            delays: self.delays,
            time_limit: self.time_limit,
            expiry: self.expiry,
            allow: self.allow,
            wall: self.wall,
            machine: self.machine,
            disk,
        };
        let seed = self.seed.unwrap_or_else(|| u64::from_le_bytes(random()));
        let (shared, host) = launch::start(&settings, self.user, self.session, seed, self.runtime)?;
        if let Some(early) = self.early {
            early.attach(&shared);
        }
        Ok(Beacon::new(shared, host))
    }

    fn check(&mut self) {
        let mut faults = std::mem::take(&mut self.faults);
        let mut hold = |right: bool, fault: &dyn Fn() -> String| {
            if !right {
                faults.push(fault());
            }
        };
        let Limits { events, bytes, batch_events, batch_bytes, .. } = self.limits;
        let Delays { vital, basic } = self.delays;
        let (limit, expiry) = (self.time_limit, self.expiry);
        hold(is_name(&self.app), &|| {
            format!("app is {:?}: 1 to 128 bytes without control characters are allowed", self.app)
        });
        hold(events > 0, &|| "max_events is 0: 1 or more is allowed".to_owned());
        let least = batch_bytes.clamp(MIN_BATCH_BYTES, MAX_BODY);
        hold(bytes >= least, &|| {
            format!("max_bytes is {bytes}: at least the bytes of a batch, {least}, are allowed")
        });
        hold((1..=MAX_EVENTS).contains(&batch_events), &|| {
            format!("batch_events is {batch_events}: 1 to {MAX_EVENTS} are allowed")
        });
        hold((MIN_BATCH_BYTES..=MAX_BODY).contains(&batch_bytes), &|| {
            format!("batch_bytes is {batch_bytes}: {MIN_BATCH_BYTES} to {MAX_BODY} are allowed")
        });
        hold(vital <= VITAL_AT_MOST, &|| format!("vital_delay is {vital:?}: at most 1 s is allowed"));
        hold(basic > VITAL_AT_MOST, &|| format!("basic_delay is {basic:?}: more than 1 s is allowed"));
        hold(!limit.is_zero(), &|| "request_time_limit is 0: more than 0 is allowed".to_owned());
        hold(!expiry.is_zero(), &|| "expiry is 0: more than 0 is allowed".to_owned());
        #[cfg(feature = "spool")]
        if let Some(spool) = &self.spool
            && let Err(error) = spool.check()
        {
            faults.push(error.to_string());
        }
        if self.transports > 1 {
            faults.push(
                "endpoint is given more than once, or beside a transport: one of them is allowed".to_owned(),
            );
        }
        if self.transport.is_none() && !self.endpoint_is_wrong {
            faults.push(
                "endpoint is missing: an http:// or https:// URL, or a transport, is needed".to_owned(),
            );
        }
        self.faults = faults;
    }
}

fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && !name.chars().any(char::is_control)
}
