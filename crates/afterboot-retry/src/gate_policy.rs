//! The numbers of a gate: probe schedule, lease, ramp.

use std::time::Duration;

use crate::error::PolicyError;
use crate::jitter::Jitter;
use crate::policy::BackoffPolicy;

/// How a `RetryGate` (feature `tokio`) probes, and how long the ramp is.
///
/// Probes come after U\[250, 500\] ms, then 1.4 times later each up to 6.8 s: the default schedule under
/// [`Jitter::EQUAL`]. A probe every 250 to 500 ms would find the server sooner, but a hundred processes that do so make
/// more requests over five minutes than a thousand clients on the default schedule.
///
/// A probe that has not ended after 30 s loses the seat, and the next caller probes.
///
/// The ramp is a quarter of the outage, between 2.5 s and 60 s. N callers released over a ramp make about
/// N · 100 ms / ramp requests in each 100 ms; 2.5 s limits a thousand callers to the peak of full jitter. A longer outage has
/// collected more callers, so its ramp is longer. The quarter and the bounds are this crate's choice.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "GatePolicyBuilder", into = "GatePolicyBuilder"))]
pub struct GatePolicy(GatePolicyBuilder);

/// Builds a [`GatePolicy`]. Setters store; [`build`](GatePolicyBuilder::build) validates.
#[must_use = "a builder does nothing until `build` is called"]
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct GatePolicyBuilder {
    probe: BackoffPolicy,
    ramp_share: f64,
    #[cfg_attr(feature = "serde", serde(rename = "probe_lease_ms", with = "crate::millis"))]
    probe_lease: Duration,
    #[cfg_attr(feature = "serde", serde(rename = "min_ramp_ms", with = "crate::millis"))]
    min_ramp: Duration,
    #[cfg_attr(feature = "serde", serde(rename = "max_ramp_ms", with = "crate::millis"))]
    max_ramp: Duration,
}

impl Default for GatePolicyBuilder {
    fn default() -> GatePolicyBuilder {
        GatePolicyBuilder {
            probe: BackoffPolicy::default().with_jitter(Jitter::EQUAL),
            probe_lease: Duration::from_secs(30),
            ramp_share: 0.25,
            min_ramp: Duration::from_millis(2500),
            max_ramp: Duration::from_secs(60),
        }
    }
}

impl GatePolicyBuilder {
    /// Sets the schedule of the probes. It must not end, so it cannot be a table.
    pub fn probe(mut self, probe: BackoffPolicy) -> GatePolicyBuilder {
        self.probe = probe;
        self
    }

    /// Sets how long a probe may run, and how late it may start, before the seat passes to another caller. Default: 30 s,
    /// the usual time limit of a request. Above 0.
    pub fn probe_lease(mut self, lease: Duration) -> GatePolicyBuilder {
        self.probe_lease = lease;
        self
    }

    /// Sets the length of the ramp as a share of the outage. Default: 0.25. Finite, 0 or more.
    pub fn ramp_share(mut self, share: f64) -> GatePolicyBuilder {
        self.ramp_share = share;
        self
    }

    /// Sets the bounds of the ramp's length. Default: 2.5 s and 60 s.
    pub fn ramp_bounds(mut self, min: Duration, max: Duration) -> GatePolicyBuilder {
        self.min_ramp = min;
        self.max_ramp = max;
        self
    }

    /// Validates all fields.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] lists every invalid field: a table as the probe schedule, a lease of zero, a share that is negative
    /// or not finite, a minimum above the maximum.
    pub fn build(self) -> Result<GatePolicy, PolicyError> {
        let mut problems = Vec::new();
        if self.probe.plain_delay(u32::MAX).is_none() {
            problems.push("probe: a table, which ends; allowed: a schedule without an end".to_owned());
        }
        if self.probe_lease.is_zero() {
            problems.push("probe_lease: 0ns; allowed: above 0, or all callers would probe".to_owned());
        }
        if !self.ramp_share.is_finite() || self.ramp_share < 0.0 {
            problems.push(format!("ramp_share: {}; allowed: finite and 0 or more", self.ramp_share));
        }
        if self.min_ramp > self.max_ramp {
            problems.push(format!(
                "ramp_bounds: {:?} to {:?}; allowed: min <= max",
                self.min_ramp, self.max_ramp
            ));
        }
        PolicyError::unless_empty(problems).map(|()| GatePolicy(self))
    }
}

impl GatePolicy {
    /// Returns a builder that starts from the default.
    pub fn builder() -> GatePolicyBuilder {
        GatePolicyBuilder::default()
    }

    /// Returns the schedule of the probes.
    pub fn probe(&self) -> &BackoffPolicy {
        &self.0.probe
    }

    /// Returns how long a probe may run before another caller makes the next one.
    pub fn probe_lease(&self) -> Duration {
        self.0.probe_lease
    }

    /// Returns the length of the ramp after an outage.
    ///
    /// ```
    /// use std::time::Duration;
    /// let policy = afterboot_retry::GatePolicy::default();
    /// let seconds = |outage| policy.ramp(Duration::from_secs(outage)).as_secs_f64();
    /// assert_eq!((seconds(6), seconds(20), seconds(60), seconds(300)), (2.5, 5.0, 15.0, 60.0));
    /// ```
    pub fn ramp(&self, outage: Duration) -> Duration {
        Duration::try_from_secs_f64(outage.as_secs_f64() * self.0.ramp_share)
            .unwrap_or(Duration::MAX)
            .clamp(self.0.min_ramp, self.0.max_ramp)
    }
}

impl TryFrom<GatePolicyBuilder> for GatePolicy {
    type Error = PolicyError;

    fn try_from(builder: GatePolicyBuilder) -> Result<GatePolicy, PolicyError> {
        builder.build()
    }
}

impl From<GatePolicy> for GatePolicyBuilder {
    fn from(policy: GatePolicy) -> GatePolicyBuilder {
        policy.0
    }
}
