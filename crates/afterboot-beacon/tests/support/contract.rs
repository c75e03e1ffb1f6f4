//! What `WIRE.md` demands of a request, checked more strictly than a server in earnest would.

use afterboot_beacon::wire::{Batch, Headers, MAX_BODY, gunzip};

use super::PATH;
use super::connection::Raw;

const MAX_INFLATED: usize = 1024 * 1024;

/// A request that keeps the contract.
pub(crate) struct Valid {
    pub(crate) headers: Headers,
    pub(crate) batch: Batch,
    /// The size of the body once inflated.
    pub(crate) inflated: usize,
}

pub(crate) fn check(raw: &Raw) -> Result<Valid, String> {
    if raw.method != "POST" || raw.target != PATH {
        return Err(format!("{} {}: POST {PATH} is the endpoint", raw.method, raw.target));
    }
    for (name, wanted) in [("content-type", "application/json"), ("content-encoding", "gzip")] {
        let given = raw.header(name);
        if given != Some(wanted) {
            return Err(format!("{name} is {given:?}: {wanted} is allowed"));
        }
    }
    for (name, _) in &raw.headers {
        let times = raw.headers.iter().filter(|(other, _)| other == name).count();
        if times > 1 {
            return Err(format!("{name} is there {times} times"));
        }
    }
    if raw.header("host").is_none() {
        return Err("host is missing".to_owned());
    }
    if !raw.header("user-agent").unwrap_or_default().starts_with("afterboot-beacon/") {
        return Err("user-agent does not say afterboot-beacon".to_owned());
    }
    let headers = Headers::read(|name| raw.header(name)).map_err(|error| error.to_string())?;
    if !headers.counters.balances() {
        return Err(format!("the counters do not balance: {:?}", headers.counters));
    }
    let body = gunzip(&raw.body, MAX_INFLATED).map_err(|error| error.to_string())?;
    if body.len() > MAX_BODY {
        return Err(format!("the body has {} bytes: at most {MAX_BODY} are allowed", body.len()));
    }
    let batch = Batch::parse(&body).map_err(|error| error.to_string())?;
    check_events(&batch)?;
    Ok(Valid { headers, batch, inflated: body.len() })
}

fn check_events(batch: &Batch) -> Result<(), String> {
    let head = &batch.head;
    if batch.events.is_empty() && head.gaps.is_empty() && head.end.is_none() {
        return Err("the batch says nothing: no event, no gap, no end".to_owned());
    }
    for pair in batch.events.windows(2) {
        if pair[1].seq <= pair[0].seq {
            return Err(format!("seq {} comes after {}", pair[1].seq, pair[0].seq));
        }
    }
    for event in &batch.events {
        if event.id.get_version_num() != 7 {
            return Err(format!("id {} is no uuid of version 7", event.id));
        }
        if head.end.is_some_and(|end| event.seq >= end) {
            return Err(format!("seq {} is beyond the stream's end {:?}", event.seq, head.end));
        }
    }
    match head.gaps.iter().find(|gap| gap.last < gap.first) {
        Some(gap) => Err(format!("a gap ends before it begins: {gap:?}")),
        None => Ok(()),
    }
}
