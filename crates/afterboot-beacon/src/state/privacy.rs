//! Allow-lists: which keys of a route's data are sent.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::value::RawValue;

/// The allow-lists: for a route that has one, only these keys of its data are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct AllowLists(HashMap<String, HashSet<String>>);

impl AllowLists {
    pub(crate) fn allow(&mut self, route: String, keys: impl IntoIterator<Item = String>) {
        self.0.entry(route).or_default().extend(keys);
    }

    /// Returns the allowed part of this data and the number of keys removed. `None`: the route has no list.
    ///
    /// Data that is not an object has no keys to allow, and becomes an empty object.
    pub(crate) fn filter(&self, route: &str, data: &[u8]) -> Option<(Vec<u8>, u64)> {
        let allowed = self.0.get(route)?;
        let Ok(mut object) = serde_json::from_slice::<BTreeMap<String, &RawValue>>(data) else {
            return Some((b"{}".to_vec(), 1));
        };
        let before = object.len();
        object.retain(|key, _| allowed.contains(key));
        let removed = (before - object.len()) as u64;
        Some((serde_json::to_vec(&object).unwrap_or_else(|_| b"{}".to_vec()), removed))
    }

    pub(crate) fn has(&self, route: &str) -> bool {
        self.0.contains_key(route)
    }
}
