//! An HTTP server on loopback that records requests, and operations made by hand.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use gatewright_openapi::{
    ApiAuth, Called, HttpApi, Location, OpenapiConfig, Operation, OperationCall, Parameter, PathPart,
    Reporter, ResponseShape, Style, Surroundings,
};
use http::Method;
use rmcp::model::CallToolResult;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// A request that arrived.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A response, in parts that are sent one after the other.
#[derive(Debug, Clone)]
pub struct Reply {
    parts: Vec<Vec<u8>>,
    pause: Duration,
    /// The connection stays open after the last part.
    hangs: bool,
}

pub fn reply(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    raw(format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    ))
    .with(body)
}

pub fn json_reply(status: u16, body: &Value) -> Reply {
    reply(status, "application/json", body.to_string())
}

/// A response as it is on the wire.
pub fn raw(head: impl AsRef<[u8]>) -> Reply {
    Reply { parts: vec![head.as_ref().to_vec()], pause: Duration::ZERO, hangs: false }
}

impl Reply {
    pub fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        self.parts.push(part.as_ref().to_vec());
        self
    }

    pub fn slowly(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    pub fn hanging(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// Adds a header.
    pub fn header(mut self, line: &str) -> Self {
        let head = String::from_utf8(self.parts[0].clone()).unwrap();
        self.parts[0] = head.replacen("\r\n", &format!("\r\n{line}\r\n"), 1).into_bytes();
        self
    }
}

/// The server.
pub struct Mock {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Mock {
    /// Serves what `answer` makes of each request and of the number of requests before it.
    pub async fn start(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (requests, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let recorded: Arc<Mutex<Vec<Request>>> = requests.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (recorded, answer) = (recorded.clone(), answer.clone());
                tokio::spawn(async move { serve(stream, &recorded, &*answer).await });
            }
        });
        Self { url, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub fn last(&self) -> Request {
        self.requests().pop().expect("a request")
    }

    /// An API at this server.
    pub fn api(&self, change: impl FnOnce(&mut OpenapiConfig)) -> HttpApi {
        let mut config = OpenapiConfig::new("api.yaml");
        config.base_url = Some(format!("{}/v1", self.url));
        config.allow_private = true;
        change(&mut config);
        HttpApi::new(config).unwrap()
    }
}

async fn serve(
    mut stream: TcpStream,
    recorded: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request, usize) -> Reply + Send + Sync),
) {
    while let Some(request) = read(&mut stream).await {
        let before = {
            let mut all = recorded.lock().unwrap();
            all.push(request.clone());
            all.len() - 1
        };
        let reply = answer(&request, before);
        for part in &reply.parts {
            if stream.write_all(part).await.is_err() {
                return;
            }
            if !reply.pause.is_zero() {
                tokio::time::sleep(reply.pause).await;
            }
        }
        if reply.hangs {
            std::future::pending::<()>().await;
        }
        let head = String::from_utf8_lossy(&reply.parts[0]).to_ascii_lowercase();
        if !head.contains("content-length") {
            return;
        }
        let body: usize = reply.parts[1..].iter().map(Vec::len).sum();
        if !head.contains(&format!("content-length: {body}\r\n")) {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&part[..count]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut request = Request { method, target, headers, body: bytes[end + 4..].to_vec() };
    let length: usize = request.header("content-length").unwrap_or("0").parse().unwrap();
    while request.body.len() < length {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.ok().filter(|count| *count > 0)?;
        request.body.extend_from_slice(&part[..count]);
    }
    Some(request)
}

/// An operation without parameters.
pub fn operation(method: Method, path: &str) -> Operation {
    Operation {
        tool: "op".into(),
        id: None,
        idempotent: matches!(method, Method::GET | Method::HEAD | Method::PUT | Method::DELETE),
        method,
        path: [PathPart::Literal(path.into())].into(),
        parameters: Box::default(),
        body: None,
        responses: Box::default(),
        shape: ResponseShape::Unknown,
        security: Arc::default(),
        servers: Arc::default(),
        own_servers: false,
        links: false,
    }
}

pub fn parameter(name: &str, location: Location) -> Parameter {
    let style = match location {
        Location::Path | Location::Header => Style::Simple,
        _ => Style::Form,
    };
    Parameter {
        argument: name.into(),
        name: name.into(),
        location,
        style,
        explode: style == Style::Form,
        allow_reserved: false,
        required: location == Location::Path,
        content: None,
        first: None,
        members: Box::default(),
    }
}

pub fn auth(json: Value) -> Option<ApiAuth> {
    Some(serde_json::from_value(json).unwrap())
}

/// Calls an operation of a document without security schemes.
pub async fn call(api: &HttpApi, operation: &Operation, arguments: Value) -> CallToolResult {
    call_in(api, operation, &Surroundings::default(), arguments).await
}

pub async fn call_in(
    api: &HttpApi,
    operation: &Operation,
    surroundings: &Surroundings,
    arguments: Value,
) -> CallToolResult {
    call_reporting(api, operation, surroundings, arguments, Reporter::Nobody).await
}

pub async fn call_reporting(
    api: &HttpApi,
    operation: &Operation,
    surroundings: &Surroundings,
    arguments: Value,
    reporter: Reporter<'_>,
) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let call = OperationCall {
        operation,
        surroundings,
        arguments: &arguments,
        user: None,
        paginate: None,
        room: None,
        reporter,
        trail: None,
    };
    match api.call(call).await {
        Called::Done(result) => result,
        Called::SignIn(scopes) => panic!("nobody signs in for {scopes:?}"),
    }
}

/// The first content block as JSON.
pub fn block(result: &CallToolResult) -> Value {
    serde_json::to_value(&result.content[0]).unwrap()
}

pub fn text(result: &CallToolResult) -> String {
    block(result)["text"].as_str().unwrap_or_default().to_owned()
}

/// The code of a failed call.
pub fn code(result: &CallToolResult) -> String {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    result.structured_content.as_ref().unwrap()["code"].as_str().unwrap().to_owned()
}

/// A server whose answers are all `{"ok": true}`.
pub async fn fine() -> Mock {
    Mock::start(|_, _| json_reply(200, &json!({"ok": true}))).await
}
