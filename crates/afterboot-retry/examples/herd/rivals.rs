//! Other crates' delays, without their limits on the number of retries: those would end before the outage does.

use std::time::Duration;

use backon::BackoffBuilder as _;

use crate::schedules::Named;
use crate::sim::Behaviour;

pub(crate) fn all() -> Vec<Named> {
    let rival = |name, title: &str, delays| Named {
        name,
        title: title.to_owned(),
        behaviour: Behaviour::Delays(delays),
    };
    vec![
        rival("backon", "backon: its default, with jitter", || {
            Box::new(backon::ExponentialBuilder::default().with_jitter().without_max_times().build())
        }),
        rival("tokio_retry2", "tokio-retry2: 0.5 s, ×2, up to 8 s, jitter", || {
            Box::new(
                tokio_retry2::strategy::ExponentialFactorBackoff::from_factor(2.0)
                    .max_delay(Duration::from_secs(8))
                    .map(tokio_retry2::strategy::jitter),
            )
        }),
    ]
}
