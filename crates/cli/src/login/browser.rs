//! Sign-in with a browser: the code comes back to a loopback address (RFC 8252 §7.3), bound to us by PKCE. From a browser on another machine,
//! where that address leads nowhere, the user brings it by hand.

use std::time::Duration;

use anyhow::{Context as _, bail};
use data_encoding::BASE64URL_NOPAD;
use gatewright_auth::{Entropy as _, SystemEntropy};
use gatewright_findings::printable;
use reqwest::Url;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::{
    client::client,
    discovery::Discovered,
    grant::{Answer, Wanted, redeem, show},
    http::{Http, Refused},
};
use crate::{ask, output::errln};

/// Longest wait for the user.
const PATIENCE: Duration = Duration::from_secs(600);
/// Longest wait for one request to the loopback address, and its longest head, in bytes.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
const LONGEST_HEAD: usize = 32 * 1024;

/// Asks the user in a browser.
pub async fn ask(http: &Http, server: &Discovered, wanted: &Wanted, scope: &str) -> anyhow::Result<Answer> {
    let issuer = &server.metadata.issuer;
    let Some(endpoint) = &server.metadata.authorization_endpoint else {
        bail!("the authorization server {issuer} has no page to sign in at");
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await;
    let listener = listener.context("no loopback address can be listened on")?;
    let redirect = format!("http://127.0.0.1:{}/callback", listener.local_addr()?.port());
    let client = client(http, server, wanted.client_id.as_deref(), Some(&redirect)).await?;
    let (state, verifier) = (random(), random());
    let challenge = BASE64URL_NOPAD.encode(&Sha256::digest(&verifier));
    let mut address = Url::parse(endpoint)?;
    address
        .query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &client.id)
        .append_pair("redirect_uri", &redirect)
        .append_pair("state", &state)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256")
        .append_pair("resource", &server.resource);
    if !scope.is_empty() {
        address.query_pairs_mut().append_pair("scope", scope);
    }
    show(address.as_str(), wanted.open_browser);
    if ask::can_ask() {
        errln!(
            "If the browser is on another machine, it ends at a page that it cannot open, {redirect}?…: copy the address of that page, and paste it here."
        );
    }
    let waiting = callback(&listener, &state, server);
    let code =
        tokio::time::timeout(PATIENCE, waiting).await.context("nobody signed in within ten minutes")??;
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", redirect.as_str()),
        ("code_verifier", verifier.as_str()),
    ];
    redeem(http, server, client, &fields).await
}

/// 256 random bits as text.
fn random() -> String {
    let mut bytes = [0; 32];
    SystemEntropy.fill(&mut bytes);
    BASE64URL_NOPAD.encode(&bytes)
}

/// Waits for the browser to come back with a code, or for the user to paste the address that it was sent to. Answers to other requests than
/// ours are refused, and waited on.
async fn callback(listener: &TcpListener, state: &str, server: &Discovered) -> anyhow::Result<String> {
    let mut lines = ask::lines();
    loop {
        let (mut socket, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            Some(line) = lines.recv() => {
                match Url::parse(line.trim()).ok().and_then(|url| answer(&url, state, server)) {
                    Some(answer) => return answer,
                    None => errln!("This is not the address of the page after the sign-in; it has `/callback` and `state` in it. Paste all of it:"),
                }
                continue;
            }
        };
        let Some(target) = tokio::time::timeout(HEAD_WITHIN, target(&mut socket)).await.ok().flatten() else {
            continue;
        };
        let Ok(url) = Url::parse(&format!("http://127.0.0.1{target}")) else { continue };
        let Some(answer) = answer(&url, state, server) else {
            respond(&mut socket, "404 Not Found", "This is not the answer that is waited for.").await;
            continue;
        };
        match &answer {
            Ok(_) => respond(&mut socket, "200 OK", "You are signed in. Go back to the terminal.").await,
            Err(_) => respond(&mut socket, "200 OK", "You are not signed in. The terminal says why.").await,
        }
        return answer;
    }
}

/// The code or the error in an address, unless it is not the answer to our request.
fn answer(url: &Url, state: &str, server: &Discovered) -> Option<anyhow::Result<String>> {
    let value =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let is_ours = url.path() == "/callback" && value("state").as_deref() == Some(state);
    is_ours.then(|| outcome(&value, server))
}

/// The code of an authorization response, or its error.
fn outcome(value: &impl Fn(&str) -> Option<String>, server: &Discovered) -> anyhow::Result<String> {
    let metadata = &server.metadata;
    // RFC 9207 §2.4: an answer of another server is a mix-up attack.
    let iss = value("iss");
    let missing = metadata.authorization_response_iss_parameter_supported && iss.is_none();
    if missing || iss.is_some_and(|iss| iss != metadata.issuer) {
        bail!("the answer is from another authorization server than {}", metadata.issuer);
    }
    if let Some(error) = value("error") {
        let description = value("error_description").unwrap_or_default();
        return Err(Refused::new(&error, &description).because("the sign-in was refused"));
    }
    value("code").filter(|code| !code.is_empty()).context("the answer has no code")
}

/// The target of a GET request.
async fn target(socket: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = socket.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        head.extend_from_slice(&chunk[..read]);
        if head.len() > LONGEST_HEAD {
            return None;
        }
    }
    let line = std::str::from_utf8(&head).ok()?.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    target.starts_with('/').then(|| target.to_owned())
}

async fn respond(socket: &mut TcpStream, status: &str, text: &str) {
    let text = printable(text, 200);
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>Gatewright</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\ncontent-security-policy: default-src 'none'\r\nreferrer-policy: no-referrer\r\n\r\n",
        page.len()
    );
    // The browser may be gone: the answer has arrived.
    let _ = socket.write_all((head + &page).as_bytes()).await;
    let _ = socket.shutdown().await;
}
