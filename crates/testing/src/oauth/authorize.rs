//! The authorization endpoint: checks, login, and the way back (RFC 6749 §4.1, RFC 7636, RFC 8707, RFC 9207).

use std::collections::HashMap;

use axum::{
    Form,
    extract::{Query, State as Extracted},
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use url::Url;

use super::{CODE_SECONDS, Code, Login, MockTestUser, Shared, State, endpoints::refusal};
use crate::{lock, random_text, token::now};

type Parameters = HashMap<String, String>;

/// Checks the parts of a request whose failure must not be sent to the redirect URI, then the others.
enum Checked {
    Fine(Box<Code>),
    Page(Response),
    Back { redirect_uri: Url, error: &'static str, why: &'static str },
}

fn check(state: &State, parameters: &Parameters) -> Checked {
    let get = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let page = |why: &str| Checked::Page(refusal(StatusCode::BAD_REQUEST, "invalid_request", why));
    let Some(client_id) = get("client_id") else { return page("`client_id` is missing") };
    if state.options.client_id.as_deref().is_some_and(|known| known != client_id) {
        return Checked::Page(refusal(StatusCode::BAD_REQUEST, "invalid_client", "this client is not known"));
    }
    let Some(redirect) = get("redirect_uri") else { return page("`redirect_uri` is missing") };
    let Ok(redirect_uri) = Url::parse(redirect) else { return page("`redirect_uri` is no URL") };
    if !state.may_redirect_to(redirect, &redirect_uri) {
        return page("`redirect_uri` is not one of the client's");
    }
    let back = |error, why| Checked::Back { redirect_uri: redirect_uri.clone(), error, why };
    if get("response_type") != Some("code") {
        return back("unsupported_response_type", "`response_type` must be `code`");
    }
    let Some(challenge) = get("code_challenge") else {
        return back("invalid_request", "`code_challenge` is missing: PKCE is required");
    };
    if get("code_challenge_method") != Some("S256") {
        return back("invalid_request", "`code_challenge_method` must be `S256`");
    }
    let resource = get("resource");
    if resource.is_some_and(|uri| Url::parse(uri).map_or(true, |uri| uri.fragment().is_some())) {
        return back("invalid_target", "`resource` must be an absolute URI without a fragment");
    }
    let known = &state.options.protected_resources;
    if resource.is_some_and(|uri| !known.is_empty() && !known.iter().any(|known| known == uri)) {
        return back("invalid_target", "`resource` is not one this server issues tokens for");
    }
    Checked::Fine(Box::new(Code {
        client_id: client_id.to_owned(),
        redirect_uri: redirect.to_owned(),
        challenge: challenge.to_owned(),
        scopes: get("scope").unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect(),
        resource: resource.map(str::to_owned),
        user: MockTestUser::new(""),
        login: Login { at: now(), nonce: get("nonce").map(str::to_owned) },
        expires: now() + CODE_SECONDS,
    }))
}

impl State {
    pub(super) fn may_redirect_to(&self, text: &str, uri: &Url) -> bool {
        let valid = &self.options.valid_redirect_uris;
        if valid.is_empty() {
            return matches!(uri.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        }
        valid.iter().any(|pattern| matches(pattern, text))
    }
}

/// `*` stands for any characters but `/`, `?` and `#`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let reach = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            (0..=reach).filter(|at| rest.is_char_boundary(*at)).any(|at| matches(after, &rest[at..]))
        }),
    }
}

fn back(mut uri: Url, answer: &[(&str, &str)], state: Option<&String>, issuer: &str) -> Response {
    {
        let mut query = uri.query_pairs_mut();
        query.extend_pairs(answer);
        if let Some(state) = state {
            query.append_pair("state", state);
        }
        query.append_pair("iss", issuer);
    }
    Redirect::to(uri.as_str()).into_response()
}

fn approve(state: &mut State, mut code: Code, user: MockTestUser, parameters: &Parameters) -> Response {
    let Ok(uri) = Url::parse(&code.redirect_uri) else {
        return refusal(StatusCode::BAD_REQUEST, "invalid_request", "`redirect_uri` is no URL");
    };
    code.user = user;
    let secret = random_text();
    state.codes.insert(secret.clone(), code);
    let issuer = state.issuer();
    back(uri, &[("code", &secret)], parameters.get("state"), &issuer)
}

pub(super) async fn ask(
    Extracted(state): Extracted<Shared>,
    Query(parameters): Query<Parameters>,
) -> Response {
    let mut state = lock(&state);
    match check(&state, &parameters) {
        Checked::Page(page) => page,
        Checked::Back { redirect_uri, error, why } => {
            let answer = [("error", error), ("error_description", why)];
            back(redirect_uri, &answer, parameters.get("state"), &state.issuer())
        }
        Checked::Fine(code) => match (state.options.auto_approve, state.options.test_user.clone()) {
            (true, user) => {
                let user = user.unwrap_or_else(|| MockTestUser::new("test-user"));
                approve(&mut state, *code, user, &parameters)
            }
            (false, user) => login_page(&parameters, user.as_ref()),
        },
    }
}

fn login_page(parameters: &Parameters, user: Option<&MockTestUser>) -> Response {
    let escape = |text: &str| {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
    };
    let mut fields: Vec<String> = parameters
        .iter()
        .map(|(name, value)| {
            format!(r#"<input type="hidden" name="{}" value="{}">"#, escape(name), escape(value))
        })
        .collect();
    fields.sort();
    let sub = escape(user.map_or("test-user", |user| &user.sub));
    Html(format!(
        r#"<!doctype html><title>Mock login</title><form method="post" action="/oauth/authorize/submit">{}
<label>Subject <input name="sub" value="{sub}"></label>
<button name="decision" value="approve">Log in</button><button name="decision" value="deny">Deny</button></form>"#,
        fields.concat()
    ))
    .into_response()
}

pub(super) async fn submit(
    Extracted(state): Extracted<Shared>,
    Form(parameters): Form<Parameters>,
) -> Response {
    let mut state = lock(&state);
    match check(&state, &parameters) {
        Checked::Page(page) => page,
        Checked::Back { redirect_uri, error, why } => {
            let answer = [("error", error), ("error_description", why)];
            back(redirect_uri, &answer, parameters.get("state"), &state.issuer())
        }
        Checked::Fine(code) if parameters.get("decision").is_some_and(|decision| decision == "deny") => {
            match Url::parse(&code.redirect_uri) {
                Ok(uri) => back(uri, &[("error", "access_denied")], parameters.get("state"), &state.issuer()),
                Err(_) => refusal(StatusCode::BAD_REQUEST, "invalid_request", "`redirect_uri` is no URL"),
            }
        }
        Checked::Fine(code) => {
            let sub = parameters.get("sub").map_or("test-user", String::as_str);
            let known = state.options.test_user.clone().filter(|user| user.sub == sub);
            let user = known.unwrap_or_else(|| MockTestUser::new(sub));
            approve(&mut state, *code, user, &parameters)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stays_within_one_part_of_the_uri() {
        assert!(matches("http://localhost:*/callback", "http://localhost:3000/callback"));
        assert!(matches("https://*.example.com/cb", "https://a.b.example.com/cb"));
        assert!(!matches("https://*.example.com/cb", "https://evil.com/x.example.com/cb"));
        assert!(!matches("http://localhost:*/callback", "http://localhost:1/callback/more"));
        assert!(!matches("https://a.example/cb", "https://a.example/cb2"));
    }
}
