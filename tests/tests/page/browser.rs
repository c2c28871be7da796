//! A headless Chromium, driven over WebDriver by plain HTTP.

use reqwest::Client;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Names under which Debian and the makers install the driver.
const DRIVERS: [&str; 2] = ["chromedriver", "chromium-driver"];
/// Names of the browser.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// How long one command may take: pages are large, and machines that test are busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// A program of the `PATH`.
fn program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let dirs: Vec<_> = std::env::split_paths(&path).collect();
    names.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name))).find(|file| file.is_file())
}

/// Driver and browser, if both are installed.
pub(crate) fn installed() -> Option<(PathBuf, PathBuf)> {
    Some((program(&DRIVERS)?, program(&BROWSERS)?))
}

/// A driver with one session. Both end with it.
pub(crate) struct Browser {
    driver: Child,
    client: Client,
    base: String,
    session: String,
}

impl Browser {
    /// Starts both; everything that the browser writes is below `dir`.
    pub(crate) async fn start((driver, browser): (PathBuf, PathBuf), dir: &Path) -> Self {
        let mut driver = Command::new(driver)
            .args(["--port=0"])
            .env("TMPDIR", dir)
            .env("HOME", dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        let lines = BufReader::new(driver.stdout.take().expect("is piped")).lines();
        let port = lines
            .map_while(Result::ok)
            .filter_map(|line| line.split("on port ").nth(1)?.trim_end_matches('.').parse::<u16>().ok())
            // At first it says what it was asked for.
            .find(|port| *port > 0)
            .expect("the driver says its port");
        let base = format!("http://127.0.0.1:{port}");
        let client = Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        let mut it = Self { driver, client, base, session: String::new() };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--window-size=1440,1000",
            &format!("--user-data-dir={}", dir.join("profile").display()),
        ];
        let wanted = json!({
            "timeouts": { "script": 100_000 },
            "goog:chromeOptions": { "binary": browser, "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" }
        });
        let session = it.call("/session", &json!({ "capabilities": { "alwaysMatch": wanted } })).await;
        session["sessionId"].as_str().expect("a session").clone_into(&mut it.session);
        it
    }

    async fn call(&self, path: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.base)).body(body.to_string());
        let answer = request.send().await.expect("the driver answers").text().await.expect("text");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{path}: {answer}"));
        assert!(answer["value"]["error"].is_null(), "{path}: {}", answer["value"]);
        answer["value"].clone()
    }

    async fn command(&self, path: &str, body: &Value) -> Value {
        self.call(&format!("/session/{}{path}", self.session), body).await
    }

    /// Loads a page, to its end.
    pub(crate) async fn open(&self, url: &str) {
        self.command("/url", &json!({ "url": url })).await;
    }

    /// What the body of an async function returns.
    pub(crate) async fn run(&self, body: &str) -> Value {
        let script = format!(
            "const done = arguments[arguments.length - 1]; (async () => {{ {body} }})().then((value) => done({{ value }}), (error) => done({{ error: String(error.stack ?? error) }}));"
        );
        let answer = self.command("/execute/async", &json!({ "script": script, "args": [] })).await;
        assert!(answer["error"].is_null(), "{body}: {}", answer["error"]);
        answer["value"].clone()
    }

    /// Waits, as long as frames are drawn, until a condition holds; a minute at most.
    pub(crate) async fn until(&self, condition: &str) {
        let body = format!(
            "const end = performance.now() + 60_000; \
             while (!({condition}) && performance.now() < end) await new Promise(requestAnimationFrame); \
             return Boolean({condition});"
        );
        assert_eq!(self.run(&body).await, true, "{condition}");
    }

    /// Does something with keys, pointer or wheel.
    pub(crate) async fn act(&self, actions: Value) {
        self.command("/actions", &json!({ "actions": actions })).await;
    }

    /// Presses keys one after the other.
    pub(crate) async fn press(&self, keys: &str) {
        let of = |key: char| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        };
        let actions: Vec<_> = keys.chars().flat_map(of).collect();
        self.act(json!([{ "type": "key", "id": "keys", "actions": actions }])).await;
    }

    /// Moves the pointer to a place of the window.
    pub(crate) async fn point(&self, x: f64, y: f64) {
        self.pointer(
            json!([{ "type": "pointerMove", "duration": 0, "x": x.round() as i64, "y": y.round() as i64 }]),
        )
        .await;
    }

    /// Presses the pointer where it is.
    pub(crate) async fn click(&self) {
        self.pointer(json!([{ "type": "pointerDown", "button": 0 }, { "type": "pointerUp", "button": 0 }]))
            .await;
    }

    /// Presses the pointer at one place, and lets it go at another.
    pub(crate) async fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        let at = |(x, y): (f64, f64), ms: u32| json!({ "type": "pointerMove", "duration": ms, "x": x.round() as i64, "y": y.round() as i64 });
        let (down, up) =
            (json!({ "type": "pointerDown", "button": 0 }), json!({ "type": "pointerUp", "button": 0 }));
        let middle = (from.0.midpoint(to.0), from.1.midpoint(to.1));
        self.pointer(json!([at(from, 0), down, at(middle, 20), at(to, 20), up])).await;
    }

    async fn pointer(&self, actions: Value) {
        let mouse = json!({ "type": "pointer", "id": "mouse", "parameters": { "pointerType": "mouse" }, "actions": actions });
        self.act(json!([mouse])).await;
    }

    /// Makes the browser prefer a theme.
    pub(crate) async fn prefer(&self, theme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        let params = json!({ "features": features });
        self.command("/goog/cdp/execute", &json!({ "cmd": "Emulation.setEmulatedMedia", "params": params }))
            .await;
    }

    /// What a log of the browser has since it was asked last.
    pub(crate) async fn log(&self, kind: &str) -> Vec<Value> {
        self.command("/se/log", &json!({ "type": kind })).await.as_array().expect("a list").clone()
    }

    /// Ends the session, which ends the browser, and the driver.
    pub(crate) async fn quit(mut self) {
        let path = format!("{}/session/{}", self.base, self.session);
        self.client.delete(path).send().await.expect("the driver answers");
        self.end();
    }

    fn end(&mut self) {
        // It may be over already.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if self.driver.try_wait().is_ok_and(|over| over.is_none()) {
            // The driver ends its browser when it is asked to end.
            let pid = rustix::process::Pid::from_child(&self.driver);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = self.driver.wait();
        }
    }
}
