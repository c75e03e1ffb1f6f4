//! One page in the browser. When the test ends, it says whether a script failed or something was fetched.

use std::path::PathBuf;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering};

use afterboot::Report;
use serde_json::{Value, json};

use crate::browser::{Browser, browser};

pub(crate) struct Tab {
    browser: MutexGuard<'static, Browser>,
    session: String,
    target: String,
    file: PathBuf,
    events: Vec<Value>,
}

pub(crate) fn open(report: &Report) -> Tab {
    open_html(&report.to_html())
}

pub(crate) fn open_html(html: &str) -> Tab {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("page-{}-{}.html", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, html).expect("the target folder can be written");

    let mut browser = browser();
    let mut events = Vec::new();
    let created = browser.send(None, "Target.createTarget", json!({ "url": "about:blank" }), &mut events);
    let target = created["targetId"].as_str().expect("a target").to_owned();
    let attach = json!({ "targetId": target, "flatten": true });
    let attached = browser.send(None, "Target.attachToTarget", attach, &mut events);
    let session = attached["sessionId"].as_str().expect("a session").to_owned();
    let mut tab = Tab { browser, session, target, file, events: Vec::new() };
    for domain in ["Page", "Runtime", "Log", "Network"] {
        tab.send(&format!("{domain}.enable"), json!({}));
    }
    tab.resize(1280, 900);
    tab.scheme("light");
    let url = format!("file://{}", tab.file.display());
    tab.send("Page.navigate", json!({ "url": url }));
    while !tab.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
        let event = tab.browser.receive("the page's load");
        tab.events.push(event);
    }
    tab.settle();
    tab
}

impl Tab {
    pub(crate) fn send(&mut self, method: &str, params: Value) -> Value {
        self.browser.send(Some(&self.session), method, params, &mut self.events)
    }

    /// The value of an expression or a promise, in the page.
    #[track_caller]
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.send("Runtime.evaluate", params);
        assert_eq!(answer["exceptionDetails"], Value::Null, "{expression}");
        answer["result"]["value"].clone()
    }

    #[track_caller]
    pub(crate) fn number(&mut self, expression: &str) -> f64 {
        self.eval(expression).as_f64().unwrap_or_else(|| panic!("{expression} is not a number"))
    }

    #[track_caller]
    pub(crate) fn text(&mut self, expression: &str) -> String {
        let value = self.eval(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is no text: {value}")).to_owned()
    }

    #[track_caller]
    pub(crate) fn texts(&mut self, expression: &str) -> Vec<String> {
        serde_json::from_value(self.eval(expression)).expect("a list of texts")
    }

    /// The texts of all elements that fit a selector.
    #[track_caller]
    pub(crate) fn texts_of(&mut self, selector: &str) -> Vec<String> {
        self.texts(&format!("[...document.querySelectorAll({selector:?})].map((e) => e.textContent)"))
    }

    /// Two frames: what was changed is laid out and painted.
    pub(crate) fn settle(&mut self) {
        self.eval("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(() => go(0))))");
    }

    pub(crate) fn scheme(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.send("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.send("Emulation.setDeviceMetricsOverride", size);
    }

    /// Presses and releases a key, as a keyboard does.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => panic!("no code for {key}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.send("Input.dispatchKeyEvent", event);
        }
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.send("Input.insertText", json!({ "text": text }));
    }

    pub(crate) fn mouse(&mut self, kind: &str, x: f64, y: f64) {
        let button = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        self.send("Input.dispatchMouseEvent", event);
    }

    /// What went wrong in the page: exceptions, complaints of the browser (its policy's too), dialogs, requests.
    fn complaints(&self) -> Vec<String> {
        let told = |event: &Value| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Log.entryAdded" => Some(params["entry"]["text"].to_string()),
                "Page.javascriptDialogOpening" => Some(format!("a dialog: {}", params["message"])),
                "Network.requestWillBeSent" if params["type"] != "Document" => {
                    Some(format!("a request: {}", params["request"]["url"]))
                }
                _ => None,
            }
        };
        self.events.iter().filter_map(told).collect()
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let close = json!({ "targetId": self.target });
        let complaints = self.complaints();
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "a failing test says what the browser said")]
            {
                eprintln!("the page stays in {}; it says: {complaints:?}", self.file.display());
            }
            return;
        }
        self.browser.send(None, "Target.closeTarget", close, &mut self.events);
        drop(std::fs::remove_file(&self.file));
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}
