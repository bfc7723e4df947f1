//! A real Chromium without a window, through its WebDriver.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource, KeyAction, KeyActions, PointerAction, TouchActions};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Environment variable that makes a missing browser an error.
const REQUIRED: &str = "EXACT2048_REQUIRE_BROWSER";

/// Longest wait for a change of the page.
const PATIENCE: Duration = Duration::from_secs(60);

/// Largest number of attempts to start a driver.
const ATTEMPTS: usize = 5;

/// A browser with one tab. It ends when the value is dropped.
pub struct Browser {
    driver: Child,
    /// Address of the driver.
    address: String,
    session: String,
    client: Client,
    /// Folder of the browser's profile and downloads.
    pub folder: TempDir,
}

/// Starts a driver and returns its port. Fails if this machine has no driver. Panics with the driver's output if several
/// attempts fail.
fn start_driver() -> io::Result<(Child, String)> {
    let mut complaints = Vec::new();
    // A driver sometimes ends at once, perhaps because another test has its port for one kind of address.
    for _ in 0..ATTEMPTS {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        for line in BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                return Ok((driver, port.trim_end_matches('.').to_owned()));
            }
            complaints.push(line);
        }
        complaints.push(driver.wait()?.to_string());
    }
    panic!("chromedriver did not start: {complaints:#?}");
}

/// A command that is specific to this driver, or for which the client has no method.
#[derive(Debug)]
struct DriverCommand {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for DriverCommand {
    fn endpoint(&self, base_url: &url::Url, session_id: Option<&str>) -> Result<url::Url, url::ParseError> {
        base_url.join(&format!("session/{}/{}", session_id.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}

impl Browser {
    /// Opens a browser with a window of this size. Prints a note and returns `None` if this machine has no browser.
    pub async fn open(width: u32, height: u32) -> Option<Self> {
        let (driver, port) = match start_driver() {
            Ok(started) => started,
            Err(error) => {
                let what = format!("no chromedriver ({error}); install chromium and chromium-driver");
                assert!(std::env::var_os(REQUIRED).is_none(), "{what}");
                eprintln!("SKIPPED: the explorer's page was not tested: {what}");
                return None;
            }
        };
        let folder = TempDir::new().unwrap();
        let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
        let size = format!("--window-size={width},{height}");
        let mut args = vec![
            "--headless=new",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            &profile,
            &size,
        ];
        args.extend(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        if rustix::process::getuid().is_root() {
            args.push("--no-sandbox");
        }
        let options = json!({
            "args": args,
            "prefs": { "download.default_directory": folder.path(), "download.prompt_for_download": false },
        });
        let capabilities =
            json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let Value::Object(capabilities) = capabilities else { unreachable!() };
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let address = format!("127.0.0.1:{port}");
        let client = builder.capabilities(capabilities).connect(&format!("http://{address}")).await;
        let client = client.unwrap_or_else(|error| panic!("chromium did not start: {error}"));
        let session = client.session_id().await.unwrap().unwrap();
        let browser = Self { driver, address, session, client, folder };
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.ask_chromium("Emulation.setDeviceMetricsOverride", metrics).await;
        Some(browser)
    }

    /// Sends a command of the DevTools protocol.
    pub async fn ask_chromium(&self, command: &str, params: Value) {
        let body = json!({ "cmd": command, "params": params });
        self.client.issue_cmd(DriverCommand { path: "goog/cdp/execute", body }).await.unwrap();
    }

    /// Opens a page.
    pub async fn goto(&self, url: &str) {
        self.client.goto(url).await.unwrap();
    }

    /// Loads the page again.
    pub async fn reload(&self) {
        self.client.refresh().await.unwrap();
    }

    /// The result of a script.
    pub async fn js(&self, script: &str) -> Value {
        self.client.execute(&format!("return {script}"), Vec::new()).await.unwrap()
    }

    /// The visible text of an element.
    pub async fn text(&self, id: &str) -> String {
        self.client.find(Locator::Id(id)).await.unwrap().text().await.unwrap()
    }

    /// Clicks on the first element that a selector finds.
    pub async fn click(&self, selector: &str) {
        self.client.find(Locator::Css(selector)).await.unwrap().click().await.unwrap();
    }

    /// Types a text into the element that a selector finds. For a file input, the text is a path.
    pub async fn write(&self, selector: &str, text: &str) {
        self.client.find(Locator::Css(selector)).await.unwrap().send_keys(text).await.unwrap();
    }

    /// Presses keys in sequence, with any focus.
    pub async fn press(&self, keys: &[char]) {
        let actions = keys.iter().fold(KeyActions::new("keys".to_owned()), |actions, &value| {
            actions.then(KeyAction::Down { value }).then(KeyAction::Up { value })
        });
        self.client.perform_actions(actions).await.unwrap();
    }

    /// Moves a finger over the page.
    pub async fn swipe(&self, [x, y]: [i64; 2], [to_x, to_y]: [i64; 2]) {
        let touch = TouchActions::new("finger".to_owned())
            .then(PointerAction::MoveTo { duration: None, x: x as f64, y: y as f64 })
            .then(PointerAction::Down { button: 0 })
            .then(PointerAction::MoveTo {
                duration: Some(Duration::from_millis(50)),
                x: to_x as f64,
                y: to_y as f64,
            })
            .then(PointerAction::Up { button: 0 });
        self.client.perform_actions(touch).await.unwrap();
    }

    /// Waits until a script returns true.
    #[track_caller]
    pub fn until<'a>(&'a self, script: &'a str) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let begun = Instant::now();
            while self.js(script).await != Value::Bool(true) {
                let page = self.js("document.body.innerText").await;
                assert!(begun.elapsed() < PATIENCE, "{caller}: it does not come to {script}: {page}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// Warnings and errors in the console of the page.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self
            .client
            .issue_cmd(DriverCommand { path: "se/log", body: json!({ "type": "browser" }) })
            .await
            .unwrap();
        let entries = log.as_array().unwrap().iter();
        let bad = entries.filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING");
        bad.map(|entry| entry["message"].to_string()).collect()
    }

    /// Ends the browser. The console of the page must have no warnings or errors.
    pub async fn close(self) {
        let complaints = self.complaints().await;
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver does not end its browser. So the session must end first, even if a test has failed.
        if let Ok(mut stream) = TcpStream::connect(&self.address) {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let end = format!("DELETE /session/{} HTTP/1.1\r\nHost: {}\r\n", self.session, self.address);
            let _ = stream.write_all(format!("{end}Connection: close\r\n\r\n").as_bytes());
            // The driver answers after the browser has ended, and leaves the connection open.
            let _ = stream.read(&mut [0; 1024]);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
