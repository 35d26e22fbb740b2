//! Work on texts that clients, users and providers choose: it grows no faster than the text.

use gatewright_core::{Authenticator as _, Scopes};
use http::{Request, header};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::support::{
    idp::Idp,
    site::{Site, ask, post},
};

#[path = "../../../../tests/growth/mod.rs"]
mod work;

/// Pieces of scopes, URIs and names whose repetition makes work that is not linear grow the most.
const PIECES: [&str; 12] =
    ["a ", " ", "x", "read ", "a/", "../", "%2F", "%", ":", "https://a.example/ ", "\u{e9}", "\""];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A site that counts no requests, for the work is done thousands of times.
fn site(runtime: &Runtime) -> Site {
    let most = 1_000_000_000;
    let limits = json!({"token": most, "authorize": most, "register": most});
    runtime.block_on(Site::with(json!({"dcrEnabled": true, "limits": limits})))
}

#[test]
fn no_parameter_of_an_authorization_request_makes_work_more_than_in_proportion() {
    let runtime = runtime();
    for name in ["scope", "state", "redirect_uri", "resource", "nonce", "client_id", "login_hint"] {
        let site = site(&runtime);
        for piece in PIECES {
            let at = |place: &str| format!("{name} of {piece:?} at {place}");
            // What is percent-encoded is three times as long, and an address has at most 64 KiB.
            let address = |len: usize| ask(&[(name, &work::repeated(piece, len / 8))]);
            work::assert_linear(&at("/oauth/authorize"), address, |path| {
                drop(runtime.block_on(site.get(path)));
            });
            let pushed = |len: usize| work::repeated(piece, len / 2);
            work::assert_linear(&at("/oauth/par"), pushed, |text| {
                let query = ask(&[(name, text)]);
                let body = query.split_once('?').unwrap().1.to_owned();
                let mut request = post("/oauth/par", &[]);
                *request.body_mut() = body.into();
                drop(runtime.block_on(site.send(request)));
            });
        }
    }
}

#[test]
fn no_parameter_of_a_token_request_makes_work_more_than_in_proportion() {
    let (runtime, secret) = (runtime(), crate::support::site::SECRET);
    let site = site(&runtime);
    for name in ["scope", "resource", "code", "refresh_token", "code_verifier", "client_assertion"] {
        let grant = match name {
            "scope" | "resource" => "client_credentials",
            "refresh_token" => "refresh_token",
            _ => "authorization_code",
        };
        for piece in PIECES {
            work::assert_linear(
                &format!("{name} of {piece:?}"),
                |len| work::repeated(piece, len / 2),
                |text| {
                    let client = [("client_id", "poster"), ("client_secret", secret)];
                    let pairs = [&client[..], &[("grant_type", grant), (name, text)]].concat();
                    drop(runtime.block_on(site.token(&pairs)));
                },
            );
        }
    }
}

#[test]
fn no_client_metadata_makes_work_more_than_in_proportion() {
    let runtime = runtime();
    let site = site(&runtime);
    for member in
        ["client_name", "redirect_uris", "scope", "client_uri", "grant_types", "contacts", "made up"]
    {
        for piece in PIECES {
            let body = |len: usize| {
                let text = work::repeated(piece, len / 8);
                let list = || text.split_inclusive(' ').collect::<Vec<_>>();
                let value = if member.ends_with('s') { json!(list()) } else { json!(text) };
                let mut body =
                    json!({"redirect_uris": ["https://n.example/cb"], "token_endpoint_auth_method": "none"});
                body[member] = value;
                body.to_string()
            };
            work::assert_linear(&format!("{member} of {piece:?}"), body, |body| {
                let request =
                    Request::post("/oauth/register").header(header::CONTENT_TYPE, "application/json");
                drop(runtime.block_on(site.send(request.body(body.to_owned().into()).unwrap())));
            });
        }
    }
}

#[test]
fn no_scope_claim_and_no_list_of_scopes_makes_work_more_than_in_proportion() {
    let runtime = runtime();
    let idp = runtime.block_on(Idp::start());
    let guard = idp.guard(json!({}));
    let mut number = 0_u32;
    // Each of its own name, too: a list of these is the longest to look through.
    let different = |len: usize| (0..len / 8).map(|n| format!("s{n:06} ")).collect::<String>();
    for piece in work::SHAPES.into_iter().step_by(3).chain(PIECES).map(Some).chain([None]) {
        let make = |len: usize| piece.map_or_else(|| different(len), |piece| work::repeated(piece, len));
        work::assert_linear(&format!("a list of {piece:?}"), make, |text| {
            // Once is too little work to be measured.
            (0..16).for_each(|_| drop(std::hint::black_box(Scopes::parse(text))));
        });
        work::assert_linear(
            &format!("a claim of {piece:?}"),
            |len| make(len / 8),
            |text| {
                // A token that was checked is known by its digest.
                number += 1;
                let token = idp.token(&idp.key, json!({"scope": text, "jti": number}));
                let request = Request::post("/mcp").header(header::AUTHORIZATION, format!("Bearer {token}"));
                let parts = request.body(()).unwrap().into_parts().0;
                drop(runtime.block_on(guard.authenticate(&parts)));
            },
        );
    }
}
