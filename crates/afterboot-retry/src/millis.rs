//! Serde representation of durations: milliseconds as a number, whole or fractional.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

fn from_number<E: serde::de::Error>(millis: f64) -> Result<Duration, E> {
    if millis.is_nan() || millis < 0.0 {
        return Err(E::custom(format_args!("{millis} ms; allowed: 0 or more")));
    }
    // What no Duration can hold means "no limit", which is Duration::MAX throughout.
    Ok(Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(Duration::MAX))
}

fn to_number(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(to_number(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from_number(f64::deserialize(from)?)
}

pub(crate) mod option {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => to.serialize_some(&to_number(*duration)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(from)?.map(from_number).transpose()
    }
}

pub(crate) mod list {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(durations: &[Duration], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(durations.iter().map(|duration| to_number(*duration)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Duration>, D::Error> {
        Vec::<f64>::deserialize(from)?.into_iter().map(from_number).collect()
    }
}
