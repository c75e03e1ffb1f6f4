//! One Chromium for all tests: messages over a pipe, each ended by a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// For one answer. Wide: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The descriptors 3 and 4 are what Chromium listens to. It ends when our end of the pipe is closed, that is, with
/// this process; then the shell throws its profile away.
const START: &str = r#"profile=$(mktemp -d) || exit
"$@" --user-data-dir="$profile" 3<&0 4>&1 </dev/null >/dev/null 2>&1
rm -rf "$profile""#;

const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
];

pub(crate) struct Browser {
    to: ChildStdin,
    from: Receiver<Value>,
    sent: u64,
}

/// The browser, for one test at a time.
pub(crate) fn browser() -> MutexGuard<'static, Browser> {
    static BROWSER: OnceLock<Mutex<Browser>> = OnceLock::new();
    BROWSER.get_or_init(|| Mutex::new(Browser::start())).lock().unwrap_or_else(PoisonError::into_inner)
}

fn program() -> String {
    let named = std::env::var("CHROMIUM").ok();
    let usual = ["chromium", "chromium-browser"].map(str::to_owned);
    let answers = |program: &String| {
        let version =
            Command::new(program).arg("--version").stderr(Stdio::null()).stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    named.into_iter().chain(usual).find(answers).expect(
        "these tests need Chromium: install it (on Debian: apt-get install chromium), or name the program in CHROMIUM",
    )
}

impl Browser {
    fn start() -> Browser {
        let mut shell = Command::new("sh")
            .args(["-c", START, "sh", &program()])
            .args(FLAGS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        let to = shell.stdin.take().expect("stdin is a pipe");
        let mut pipe = BufReader::new(shell.stdout.take().expect("stdout is a pipe"));
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                let value = serde_json::from_slice(message.strip_suffix(&[0]).unwrap_or(&message));
                message.clear();
                if sender.send(value.expect("Chromium sends JSON")).is_err() {
                    break;
                }
            }
            // No zombie, should the browser end first.
            drop(shell.wait());
        });
        Browser { to, from, sent: 0 }
    }

    /// Sends a command and returns its result; events that come before it go to `events`.
    pub(crate) fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: Value,
        events: &mut Vec<Value>,
    ) -> Value {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let bytes = [message.to_string().as_bytes(), b"\0"].concat();
        self.to.write_all(&bytes).expect("Chromium listens: did it start at all?");
        loop {
            let mut answer = self.receive(method);
            if answer["id"] == self.sent {
                assert_eq!(answer["error"], Value::Null, "{method}");
                return answer["result"].take();
            }
            events.push(answer);
        }
    }

    pub(crate) fn receive(&mut self, what: &str) -> Value {
        self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer from Chromium to {what}"))
    }
}
