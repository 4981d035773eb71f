//! A browser without a window, steered through its debugging pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

const NAMES: [&str; 5] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"];
/// Far more than anything here takes, on a slow machine under load.
const PATIENCE: Duration = Duration::from_secs(60);

/// The browser that `NANDU_BROWSER` names, or the first of the usual names on the path.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NANDU_BROWSER") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().flat_map(|name| places.iter().map(move |place| place.join(name))).find(|file| file.is_file())
}

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    next_id: u64,
    /// What the page has reported and nobody has asked for.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    pub(crate) fn start(program: &Path) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        // The browser speaks through the descriptors 3 and 4; the shell moves ours there.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"]).arg(program);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
        command.arg("--remote-debugging-pipe").arg(format!("--user-data-dir={}", profile.path().display()));
        let mut child = command.arg("about:blank").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                // The test has ended when nobody listens.
                let _ = sender.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let (session, events) = (String::new(), Vec::new());
        let mut browser = Browser { child, input, messages, session, next_id: 0, events, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method and waits for its result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next_id += 1;
        let mut message = json!({ "id": self.next_id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.next_message();
            if answer["id"] == self.next_id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn next_message(&self) -> Value {
        self.messages.recv_timeout(PATIENCE).unwrap()
    }

    /// Opens an address and waits until everything on it is loaded.
    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.setLifecycleEventsEnabled", json!({ "enabled": true }));
        let loader = self.call("Page.navigate", json!({ "url": address }))["loaderId"].clone();
        let is_loaded = |event: &Value| event["params"]["loaderId"] == loader && event["params"]["name"] == "load";
        while !self.events.iter().any(is_loaded) {
            let event = self.next_message();
            self.events.push(event);
        }
    }

    /// As if the screen were so wide.
    pub(crate) fn set_width(&mut self, width: u32) {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// As if the user preferred a dark page, or a light one.
    pub(crate) fn set_scheme(&mut self, scheme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// The value of an expression of JavaScript.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let outcome = self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
        assert!(outcome["exceptionDetails"].is_null(), "{expression}: {}", outcome["exceptionDetails"]);
        outcome["result"]["value"].clone()
    }

    /// What the page has reported with one of these methods.
    pub(crate) fn reported(&self, methods: &[&str]) -> Vec<&Value> {
        let is_one = |event: &&Value| event["method"].as_str().is_some_and(|method| methods.contains(&method));
        self.events.iter().filter(is_one).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
