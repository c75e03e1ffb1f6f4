//! When events leave, as a timeline. A minute and a half of it, in virtual time, so it prints at once.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example's result")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport, Seen};
use afterboot_beacon::{Beacon, BeaconEvent, Next};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// The server's mood.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Failing,
    Hanging,
}

struct Timeline {
    begun: Instant,
    last: Option<Duration>,
}

impl Timeline {
    fn say(&mut self, what: &str) {
        let at = self.begun.elapsed();
        let stamp = if self.last == Some(at) { String::new() } else { format!("{:.3} s", at.as_secs_f64()) };
        println!("{stamp:>10}  {what}");
        self.last = Some(at);
    }
}

fn describe(seen: &Seen, mood: Mood) -> String {
    let routes: Vec<&str> = seen.batch.events.iter().map(|event| event.route.as_str()).collect();
    let events = match routes.as_slice() {
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        [] => "the end of the stream".to_owned(),
    };
    let answer = match mood {
        Mood::Well => "202, every event accepted",
        Mood::Failing => "503",
        Mood::Hanging => "no answer",
    };
    let priority = seen.batch.head.priority.as_str();
    format!("-> POST, {priority}, {} bytes for {} ({events}); {answer}", seen.body_len, seen.inflated_len)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(option) = std::env::args().nth(1) {
        eprintln!("watch_batches: unknown option {option:?}: none is allowed");
        std::process::exit(2);
    }
    let timeline = Arc::new(Mutex::new(Timeline { begun: Instant::now(), last: None }));
    let mood = Arc::new(Mutex::new(Mood::Well));
    let say = {
        let timeline = Arc::clone(&timeline);
        move |what: &str| timeline.lock().unwrap_or_else(PoisonError::into_inner).say(what)
    };
    let server = {
        let (say, mood) = (say.clone(), Arc::clone(&mood));
        ScriptedTransport::new(move |seen| {
            let mood = *mood.lock().unwrap_or_else(PoisonError::into_inner);
            say(&describe(seen, mood));
            match mood {
                Mood::Well => Reply::Accept,
                Mood::Failing => Reply::Status(503),
                Mood::Hanging => Reply::Hang,
            }
        })
    };
    let set_mood = |new| *mood.lock().unwrap_or_else(PoisonError::into_inner) = new;
    let beacon = Beacon::builder("shop")
        .transport(server.clone())
        .batch_events(20)
        .runtime(Handle::current())
        .wall_from_tokio()
        .seed(7)
        .build()?;
    let mut events = beacon.events();
    let watch = {
        let say = say.clone();
        tokio::spawn(async move {
            while let Some(next) = events.next().await {
                match next {
                    Next::Event(BeaconEvent::Failed { retry_in, .. }) => {
                        say(&format!("   backoff: nothing is sent for {:.3} s", retry_in.as_secs_f64()));
                    }
                    Next::Event(BeaconEvent::Recovered) => say("   the server is back"),
                    Next::Event(BeaconEvent::ShutDown) => break,
                    _ => {}
                }
            }
        })
    };

    say("a few clicks: one request, 5 s after the first");
    for n in 0..3 {
        beacon.post("click", &n);
        sleep(Duration::from_millis(700)).await;
    }
    sleep(Duration::from_secs(6)).await;

    say("a vital event: within 1 s, and it does not wait for the click before it");
    beacon.post("click", &3);
    beacon.post("payment_failed", &"card declined").vital();
    sleep(Duration::from_secs(7)).await;

    say("45 at once, at most 20 a batch: two full batches are sent at once, the rest on time");
    for n in 0..45 {
        beacon.post("click", &n);
    }
    sleep(Duration::from_secs(7)).await;

    say("the server fails: waits of 1, 2, 4, 8 s, less up to a quarter, with one request each");
    set_mood(Mood::Failing);
    beacon.post("click", &1);
    sleep(Duration::from_secs(6)).await;
    say("an urgent event, and a full batch: neither passes the backoff");
    beacon.post("crash", &"out of memory").urgent();
    for n in 0..20 {
        beacon.post("click", &n);
    }
    sleep(Duration::from_secs(12)).await;
    set_mood(Mood::Well);
    say("the server recovers, which the next probe finds out");
    sleep(Duration::from_secs(16)).await;

    say("a shutdown within 2 s, and a server that does not answer");
    set_mood(Mood::Hanging);
    beacon.post("goodbye", &()).vital();
    beacon.post("click", &9);
    let counters = beacon.shutdown(Duration::from_secs(2)).await;
    say("shut down");
    watch.await?;

    println!("\n{}", serde_json::to_string_pretty(&counters)?);
    println!(
        "{} requests for {} events; the ledger {}",
        server.requests(),
        counters.posted,
        if counters.balances() { "balances" } else { "DOES NOT BALANCE" }
    );
    Ok(())
}
