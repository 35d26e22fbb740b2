//! Servers that want a login, started from the real binary, and a person with a browser in front of them.
//!
//! One `Gate` is what clients see: a public address behind which one instance answers or several take turns, as behind a load
//! balancer.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read, Write as _},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Condvar, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::{Method, Url, header::HeaderMap};
use serde_json::{Value, json};

use crate::{seen, support::gatewright};

pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
pub const PASSWORD: &str = "correct horse battery staple";
pub const CALLBACK: &str = "http://127.0.0.1:49152/callback";

/// The hash of [`PASSWORD`], made by `gatewright user hash`.
pub fn password_hash() -> String {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let output = feed(&["user", "hash"], PASSWORD);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    })
    .clone()
}

/// Runs the binary with `input` on its standard input.
pub fn feed(arguments: &[&str], input: &str) -> std::process::Output {
    let mut child = Command::new(gatewright())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A configuration with the built-in authorization server; `auth` replaces or adds fields of its section.
pub fn config(auth: Value) -> Value {
    let mut all = json!({
        "http": {"port": 0},
        "apps": {"crm": {"builtin": "crm"}, "billing": {"builtin": "billing"}},
        "codecall": {"mode": "metadata_driven", "worker": {"workers": 1}},
        "auth": {
            "mode": "orchestrated",
            "type": "local",
            "local": {"users": [{"username": "ada", "passwordHash": password_hash(), "name": "Ada"}]},
            "scopes": {"crm:read": "Read the CRM", "crm:delete": "Delete from the CRM", "billing:read": "Read invoices"},
            "clients": [
                {"clientId": "app", "name": "An app", "redirectUris": ["http://127.0.0.1/callback"]},
                machine("robot"),
                machine("other"),
            ],
        },
    });
    for (key, value) in auth.as_object().unwrap() {
        all["auth"][key] = value.clone();
    }
    all
}

/// A client that gets tokens for itself.
fn machine(id: &str) -> Value {
    json!({"clientId": id, "clientSecret": secret(id), "grantTypes": ["client_credentials"]})
}

pub fn secret(id: &str) -> String {
    format!("{id}-0123456789-abcdefghij-0123456789")
}

/// Lines of a process, as they come.
#[derive(Default)]
pub struct Log {
    printed: Mutex<Printed>,
    changed: Condvar,
}

#[derive(Default)]
struct Printed {
    lines: Vec<String>,
    /// Streams that are not read to their end.
    open: usize,
}

impl Log {
    /// Reads one more stream, in a thread of its own. Bytes that are no text are kept as U+FFFD.
    fn follow(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        self.printed.lock().unwrap().open += 1;
        let log = self.clone();
        std::thread::spawn(move || {
            let (mut stream, mut line) = (BufReader::new(stream), Vec::new());
            while stream.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                log.printed.lock().unwrap().lines.push(text);
                log.changed.notify_all();
            }
            log.printed.lock().unwrap().open -= 1;
            log.changed.notify_all();
        });
    }

    pub fn text(&self) -> String {
        self.printed.lock().unwrap().lines.join("\n")
    }

    /// All that a process printed which was told to end, read to the end. Panics when somebody holds its streams open for longer
    /// than `patience`: what is searched then is not all of it.
    fn text_to_the_end(&self, patience: Duration) -> String {
        let held = self.printed.lock().unwrap();
        let (held, waited) =
            self.changed.wait_timeout_while(held, patience, |printed| printed.open > 0).unwrap();
        let (text, open) = (held.lines.join("\n"), held.open);
        drop(held);
        assert!(!waited.timed_out(), "streams ({open}) of a server that ended are still open: {text}");
        text
    }

    /// The first line that holds `part`; none when the process ended without it.
    pub fn wait_for(&self, part: &str) -> Option<String> {
        let mut held = self.printed.lock().unwrap();
        loop {
            if let Some(line) = held.lines.iter().find(|line| line.contains(part)) {
                return Some(line.clone());
            }
            if held.open == 0 {
                return None;
            }
            let (next, waited) = self.changed.wait_timeout(held, Duration::from_secs(60)).unwrap();
            assert!(!waited.timed_out(), "no `{part}` within a minute: {}", next.lines.join("\n"));
            held = next;
        }
    }
}

/// The files that a configuration has events written to.
fn audit_files(config: &str) -> Vec<String> {
    let config: Value = serde_saphyr::from_str(config).unwrap();
    config["audit"]["file"].as_str().map(str::to_owned).into_iter().collect()
}

/// Searches the files that a server wrote events to. One that cannot be read is a failure: nobody knows what it holds.
fn search_audit_files(paths: &[String]) {
    for path in paths {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("the audit file {path}: {error}"));
        seen::in_none_of("audit file", &String::from_utf8_lossy(&bytes));
    }
}

/// A running `gatewright serve`; killed when dropped, and what it wrote is then searched for every secret that was [`seen`].
pub struct Site {
    pub child: Child,
    pub base: String,
    pub log: Arc<Log>,
    /// Secrets that it prints for whoever starts it.
    pub printed_on_purpose: Vec<String>,
    /// Where events are written.
    audits: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            return;
        }
        // What it wrote is complete, and holds no secret that the test saw.
        let output = self.log.text_to_the_end(Duration::from_secs(60));
        let output = self.printed_on_purpose.iter().fold(output, |text, secret| text.replacen(secret, "", 1));
        seen::in_none_of("output", &output);
        search_audit_files(&self.audits);
    }
}

impl Site {
    pub fn start(config: &Value) -> Self {
        Self::launch("json", &config.to_string(), &[], &[])
    }

    /// Starts with the text of a configuration of this format, these variables and these further arguments.
    pub fn launch(format: &str, text: &str, variables: &[(&str, String)], arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(format!("gatewright.{format}"));
        std::fs::write(&file, text).unwrap();
        let mut child = Command::new(gatewright())
            .args(["serve", "--no-watch", "--config"])
            .arg(&file)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Log::default());
        log.follow(child.stdout.take().unwrap());
        log.follow(child.stderr.take().unwrap());
        let Some(line) = log.wait_for("serving MCP on http://") else { panic!("{}", log.text()) };
        let base = format!("http{}", line.rsplit_once("http").unwrap().1);
        let base = base.split_whitespace().next().unwrap().trim_end_matches("/mcp").to_owned();
        let audits = audit_files(text);
        Self { child, base, log, printed_on_purpose: Vec::new(), audits, _folder: folder }
    }

    pub fn gate(&self) -> Gate {
        Gate::new(&self.base, vec![self.base.clone()])
    }
}

/// What clients see.
pub struct Gate {
    pub public: String,
    instances: Vec<String>,
    turn: AtomicUsize,
    client: reqwest::Client,
}

/// An answer, read to its end.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answer {
    /// The body as JSON; of a stream, its last message.
    pub fn json(&self) -> Value {
        let text = self
            .body
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix("data: {").map(|rest| format!("{{{rest}")));
        let text = text.unwrap_or_else(|| self.body.clone());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }
}

impl Gate {
    pub fn new(public: &str, instances: Vec<String>) -> Self {
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { public: public.to_owned(), instances, turn: AtomicUsize::new(0), client }
    }

    /// The address of the MCP endpoint, as clients name it.
    pub fn resource(&self) -> String {
        format!("{}/mcp", self.public)
    }

    /// Sends a request to the instance whose turn it is; to the next one when that one is gone.
    pub async fn send(&self, method: Method, target: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let path = target.strip_prefix(&self.public).unwrap_or(target);
        let public = Url::parse(&self.public).unwrap();
        let host = public.host_str().unwrap().to_owned()
            + &public.port().map(|port| format!(":{port}")).unwrap_or_default();
        for _ in 0..self.instances.len() {
            seen::request(path, headers, &body);
            let instance = &self.instances[self.turn.fetch_add(1, Ordering::Relaxed) % self.instances.len()];
            let mut request = self.client.request(method.clone(), format!("{instance}{path}"));
            request = request
                .header("host", &host)
                .header("x-forwarded-for", "203.0.113.7")
                .header("x-forwarded-proto", public.scheme())
                .body(body.clone());
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            match request.send().await {
                Ok(answer) => {
                    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
                    let answer = Answer { status, headers, body: answer.text().await.unwrap() };
                    seen::answer(&answer);
                    return answer;
                }
                Err(error) if error.is_connect() => continue,
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("no instance answers");
    }

    pub async fn get(&self, target: &str) -> Answer {
        self.send(Method::GET, target, &[], String::new()).await
    }

    pub async fn post_form(&self, target: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Answer {
        let headers = [&[("content-type", "application/x-www-form-urlencoded")], headers].concat();
        self.send(Method::POST, target, &headers, form(fields)).await
    }

    /// A token request; of `app` when `fields` name no client.
    pub async fn token(&self, fields: &[(&str, &str)]) -> Answer {
        let named = fields.iter().any(|(name, _)| *name == "client_id");
        let app: &[_] = if named { &[] } else { &[("client_id", "app")] };
        self.post_form("/oauth/token", &[], &[fields, app].concat()).await
    }

    /// A token that the client `id` of [`config`] gets for itself.
    pub async fn machine_token(&self, id: &str, scope: &str) -> String {
        let basic = format!("Basic {}", base64(&format!("{id}:{}", secret(id))));
        let fields = [("grant_type", "client_credentials"), ("scope", scope)];
        let answer = self.post_form("/oauth/token", &[("authorization", &basic)], &fields).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["access_token"].as_str().unwrap().to_owned()
    }

    /// One MCP request of the era without sessions.
    pub async fn mcp(&self, token: Option<&str>, method: &str, mut params: Value) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let bearer = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        headers.extend((!name.is_empty()).then_some(("mcp-name", name.as_str())));
        headers.extend(token.map(|_| ("authorization", bearer.as_str())));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.send(Method::POST, "/mcp", &headers, body).await
    }

    /// The names that `tools/list` shows.
    pub async fn tools(&self, token: Option<&str>) -> Vec<String> {
        let answer = self.mcp(token, "tools/list", json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let listed = answer.json();
        let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The structured content of a tool's answer.
    pub async fn call(&self, token: Option<&str>, tool: &str, input: Value) -> Value {
        let answer = self.mcp(token, "tools/call", json!({"name": tool, "arguments": input})).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["result"]["structuredContent"].clone()
    }

    /// An authorization request of `client`.
    pub fn ask(&self, client: &str, redirect: &str, scope: &str) -> String {
        let resource = self.resource();
        let fields = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", redirect),
            ("scope", scope),
            ("resource", &resource),
            ("state", "a-state-of-the-client"),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        format!("{}/oauth/authorize?{}", self.public, form(&fields))
    }

    /// Exchanges a code of `client`.
    pub async fn redeem(&self, client: &str, redirect: &str, code: &str) -> Answer {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("redirect_uri", redirect),
            ("code_verifier", VERIFIER),
            ("code", code),
        ];
        self.token(&fields).await
    }

    /// Everything from the browser to the tokens, as `ada` and for `app`.
    pub async fn log_in(&self, scope: &str) -> Value {
        let callback = Person::default().authorize(self, &self.ask("app", CALLBACK, scope)).await;
        let answer = self.redeem("app", CALLBACK, &parameter(&callback, "code")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }
}

/// A person with a browser: keeps cookies, follows redirects, fills forms.
#[derive(Default)]
pub struct Person {
    pub cookies: BTreeMap<String, String>,
    /// What is typed as user name; `ada` when absent.
    pub name: Option<&'static str>,
    /// What is typed as password; [`PASSWORD`] when absent.
    pub password: Option<&'static str>,
    /// Pages that were shown.
    pub pages: Vec<String>,
    /// Values of hidden fields that were seen.
    pub hidden: Vec<String>,
}

impl Person {
    async fn go(&mut self, gate: &Gate, method: Method, target: &str, body: String) -> Answer {
        let cookie =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ");
        let mut headers = vec![("cookie", cookie.as_str())];
        if method == Method::POST {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
            headers.push(("origin", &gate.public));
        }
        let answer = gate.send(method, target, &headers, body).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let (name, value) = cookie.to_str().unwrap().split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        self.pages.push(answer.body.clone());
        answer
    }

    /// Opens an address.
    pub async fn open(&mut self, gate: &Gate, target: &str) -> Answer {
        self.go(gate, Method::GET, target, String::new()).await
    }

    /// Goes to an authorization request, logs in as `ada`, allows everything; gives the address the client is called back at.
    pub async fn authorize(&mut self, gate: &Gate, ask: &str) -> Url {
        let answer = self.open(gate, ask).await;
        self.finish(gate, answer).await
    }

    /// Goes on from an answer of an authorization.
    pub async fn finish(&mut self, gate: &Gate, mut answer: Answer) -> Url {
        for _ in 0..10 {
            let location = answer.header("location").to_owned();
            if !location.is_empty() {
                let next = Url::parse(&gate.public).unwrap().join(&location).unwrap();
                if !next.as_str().starts_with(&gate.public) {
                    return next;
                }
                answer = self.go(gate, Method::GET, next.as_str(), String::new()).await;
                continue;
            }
            assert_eq!(answer.status, 200, "{}", answer.body);
            answer = self.submit(gate, &answer.body).await;
        }
        panic!("sent around ten times");
    }

    /// Fills the form of a page in, and sends it.
    pub async fn submit(&mut self, gate: &Gate, page: &str) -> Answer {
        let action = page
            .split_once("<form")
            .and_then(|(_, form)| attribute(form, "action"))
            .unwrap_or_else(|| panic!("{page}"));
        let mut fields = Vec::new();
        for input in page.split("<input").skip(1) {
            let input = input.split('>').next().unwrap();
            let name = attribute(input, "name").unwrap();
            let value = match name.as_str() {
                "username" => self.name.unwrap_or("ada").to_owned(),
                "password" => self.password.unwrap_or(PASSWORD).to_owned(),
                _ => attribute(input, "value").unwrap(),
            };
            if input.contains("hidden") {
                self.hidden.push(value.clone());
            }
            fields.push((name, value));
        }
        if page.contains("name=\"decision\"") {
            fields.push(("decision".to_owned(), "allow".to_owned()));
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.go(gate, Method::POST, &action, form(&fields)).await
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
    Some(value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

/// Fields as a form or query.
pub fn form(fields: &[(&str, &str)]) -> String {
    Url::parse_with_params("http://x/", fields).unwrap().query().unwrap_or_default().to_owned()
}

/// A parameter of an address.
pub fn parameter(url: &Url, name: &str) -> String {
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.unwrap_or_else(|| panic!("no {name}: {url}")).1.into_owned()
}

fn base64(text: &str) -> String {
    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text)
}

/// What a panic says.
fn said(what: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *std::panic::catch_unwind(what).unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn what_a_server_printed_is_searched_when_both_its_streams_are_at_their_end() {
    let log = Arc::new(Log::default());
    let (out, mut write_out) = std::io::pipe().unwrap();
    let (err, write_err) = std::io::pipe().unwrap();
    log.follow(out);
    log.follow(err);
    drop(write_err);
    write_out.write_all(b"one \xff\n").unwrap();
    assert_eq!(log.wait_for("one").unwrap(), "one \u{fffd}");
    // The output is still open: what was printed so far is not taken for all of it.
    let held = log.clone();
    let told = said(std::panic::AssertUnwindSafe(move || {
        held.text_to_the_end(Duration::from_millis(1));
    }));
    assert!(told.contains("of a server that ended are still open: one"), "{told}");
    let writer = std::thread::spawn(move || {
        write_out.write_all(b"two, without an end of its line").unwrap();
    });
    let all = log.text_to_the_end(Duration::from_secs(60));
    writer.join().unwrap();
    assert_eq!(all, "one \u{fffd}\ntwo, without an end of its line");
    assert_eq!(log.wait_for("three"), None);
}

#[test]
fn an_audit_file_that_cannot_be_read_is_no_clean_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl").display().to_string();
    let named = audit_files(&format!("audit:\n  file: {path}\n"));
    assert_eq!(named, std::slice::from_ref(&path));
    let told = said(|| search_audit_files(&named));
    assert!(told.starts_with(&format!("the audit file {path}: ")), "{told}");
    // Not text, and a secret in it.
    seen::request("/", &[], "code=a-code-in-an-audit-file");
    std::fs::write(&path, b"\xff a-code-in-an-audit-file").unwrap();
    let told = said(|| search_audit_files(&named));
    assert!(told.contains("holds secrets"), "{told}");
}
