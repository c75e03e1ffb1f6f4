use std::time::Duration;

use afterboot_beacon::wire::{Ack, Verdict};

use super::State;
use super::connection::Raw;
use super::contract::Valid;
use super::ledger::{Key, Ledger};
use super::mode::{Fixed, Mode};

/// How the answer leaves.
pub(crate) enum Action {
    Answer,
    AnswerAfter(Duration),
    Never,
    Reset,
    BreakOff,
}

const PAGE: &str = "<!doctype html><title>Welcome</title><p>Accept our terms to go online.";

/// What the mode makes of the request. What it takes is in the ledger before the answer leaves.
pub(crate) fn decide(state: &mut State, raw: &Raw, checked: &Result<Valid, String>) -> (Action, Fixed) {
    let turn = state.turn;
    state.turn += 1;
    let given = raw.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let authorized = state.token.is_none() || given == state.token.as_deref();
    let valid = match checked {
        Ok(valid) => Some(valid),
        Err(wrong) => {
            state.ledger.wrong.push(wrong.clone());
            None
        }
    };
    let mode = state.mode.clone();
    match mode {
        Mode::Fixed(answer) => return (Action::Answer, answer),
        Mode::Hung => return (Action::Never, Fixed::new(0)),
        Mode::Captive => {
            return (Action::Answer, Fixed::new(200).header("content-type", "text/html").body(PAGE));
        }
        Mode::Unavailable | Mode::Refuse => return (Action::Answer, Fixed::new(503)),
        Mode::Busy => return (Action::Answer, Fixed::new(429).header("retry-after", "1")),
        _ if !authorized => return (Action::Answer, Fixed::new(401)),
        _ => {}
    }
    let Some(valid) = valid else {
        return (Action::Answer, Fixed::new(400).body(checked.as_ref().err().cloned().unwrap_or_default()));
    };
    let ledger = &mut state.ledger;
    match mode {
        Mode::Small(max) if valid.inflated > max => (Action::Answer, Fixed::new(413)),
        Mode::Partial => (Action::Answer, taken(ledger, valid, partial)),
        Mode::LostAck => (Action::BreakOff, taken(ledger, valid, all)),
        Mode::Slow(delay) => (Action::AnswerAfter(delay), taken(ledger, valid, all)),
        Mode::Flap(every) if turn / every.max(1) % 2 == 1 => match turn % 3 {
            0 => (Action::Answer, Fixed::new(503)),
            1 => (Action::Reset, Fixed::new(0)),
            _ => (Action::BreakOff, taken(ledger, valid, all)),
        },
        _ => (Action::Answer, taken(ledger, valid, all)),
    }
}

fn taken(ledger: &mut Ledger, valid: &Valid, judge: fn(&mut Ledger, &Key) -> Verdict) -> Fixed {
    let verdicts = ledger.take(&valid.batch, judge);
    // Serializing plain numbers and strings cannot fail.
    let body = serde_json::to_vec(&Ack::from_verdicts(&verdicts).of(&valid.headers)).expect("an ack is JSON");
    Fixed::new(202).header("content-type", "application/json").body(body)
}

fn all(_: &mut Ledger, _: &Key) -> Verdict {
    Verdict::Accepted
}

fn partial(ledger: &mut Ledger, key: &Key) -> Verdict {
    if key.seq % 7 == 4 {
        Verdict::Rejected("too_old".to_owned())
    } else if key.seq % 5 == 3 && ledger.asked_again.insert(key.clone()) {
        Verdict::Retry
    } else {
        Verdict::Accepted
    }
}
