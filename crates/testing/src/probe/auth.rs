//! Authorization: metadata for clients without a token, and refusals of tokens that are not good.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{
    context::Probe,
    http::{Received, Sent, initialize},
    report::{Area, Finding},
};
use crate::{
    fuzz::Severity::{self, Error, Note, Warning},
    token::{CreateTokenOptions, Defect, TokenFactory},
};

pub(super) async fn check(probe: &Probe<'_>) {
    let Some(url) = probe.target.endpoint() else { return };
    let checks = Checks { probe, url };
    let sent = Sent::post(url, &initialize());
    let refusal = match sent.send().await {
        Ok(answer) if matches!(answer.status, 401 | 403) => answer,
        Ok(_) if probe.target.bearer().is_none() && probe.options.issuer.is_none() => {
            return probe.notes.leave_out(Area::Auth, "the server serves clients without a token");
        }
        Ok(answer) => {
            let problem = "a client without a token is served".to_owned();
            return checks.keep(Some(checks.finding(Error, problem, &sent, &answer)));
        }
        // The handshake will say so.
        Err(_) => return,
    };
    checks.challenge(&sent, &refusal).await;
    checks.refused("a token that is none", "gatewright-no-token").await;
    let now = crate::base::unix_now();
    let none = json!({"alg": "none", "typ": "JWT"});
    let claims =
        json!({"sub": "gatewright", "aud": url, "iss": "https://gatewright.invalid", "exp": now + 600});
    let unsigned = [none, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    checks.refused("an unsigned JWT (`alg: none`)", &format!("{unsigned}.")).await;
    let stranger = TokenFactory::default();
    checks
        .refused(
            "a JWT with a stranger's signature",
            &stranger.create_test_token(&CreateTokenOptions::new("gatewright")),
        )
        .await;
    let mut good = None;
    if let Some(issuer) = &probe.options.issuer {
        good = checks.minted(issuer).await;
    }
    if let Some(token) = probe.target.bearer() {
        checks.given(token).await;
        good = Some(token.to_owned());
    }
    checks.bypasses(good.as_deref()).await;
}

/// Checks of the endpoint at `url`.
pub(super) struct Checks<'a> {
    pub(super) probe: &'a Probe<'a>,
    pub(super) url: &'a str,
}

impl Checks<'_> {
    pub(super) fn keep(&self, finding: Option<Finding>) {
        self.probe.notes.check(Area::Auth, finding);
    }

    pub(super) fn finding(
        &self,
        severity: Severity,
        problem: String,
        sent: &Sent,
        answer: &Received,
    ) -> Finding {
        Finding::new(Area::Auth, severity, problem).request(sent.shown()).answer(&answer.shown())
    }

    /// A token of any kind, which the server has to refuse with 401.
    async fn refused(&self, what: &str, token: &str) {
        let sent = Sent::post(self.url, &initialize()).header("authorization", format!("Bearer {token}"));
        let Ok(answer) = sent.send().await else {
            let finding =
                Finding::new(Area::Auth, Error, format!("{what} gets no answer")).request(sent.shown());
            return self.keep(Some(finding));
        };
        self.keep(match answer.status {
            401 => {
                let is_told = answer.header("www-authenticate").is_some_and(|told| told.contains("invalid_token"));
                let problem = format!("{what} is refused without `error=\"invalid_token\"` in `WWW-Authenticate` (RFC 6750 §3.1)");
                (!is_told).then(|| self.finding(Note, problem, &sent, &answer))
            }
            200..300 => Some(self.finding(Error, format!("{what} is accepted"), &sent, &answer)),
            500.. => Some(self.finding(Error, format!("{what} gets HTTP {}", answer.status), &sent, &answer)),
            status => Some(self.finding(Warning, format!("{what} gets HTTP {status}, not 401"), &sent, &answer)),
        });
    }

    /// `WWW-Authenticate`, and the documents that it leads to (RFC 9728, RFC 8414).
    async fn challenge(&self, sent: &Sent, refusal: &Received) {
        let challenge = refusal.header("www-authenticate");
        self.keep(match challenge {
            None => {
                let problem = "a client without a token gets no `WWW-Authenticate`, so it does not learn where to log in";
                Some(self.finding(Error, problem.into(), sent, refusal))
            }
            Some(told) if !told.to_ascii_lowercase().starts_with("bearer") => {
                let problem = format!("`WWW-Authenticate` asks for `{told}`, not for a bearer token");
                Some(self.finding(Error, problem, sent, refusal))
            }
            Some(_) => None,
        });
        let told = challenge.and_then(|challenge| parameter(challenge, "resource_metadata"));
        let address = told.clone().or_else(|| well_known(self.url, "oauth-protected-resource"));
        let Some(metadata) =
            self.document("protected resource metadata (RFC 9728)", address.as_deref()).await
        else {
            return;
        };
        let is_own = metadata["resource"].as_str().is_some_and(|resource| {
            self.url.trim_end_matches('/').starts_with(resource.trim_end_matches('/'))
        });
        let sent = Sent::get(address.as_deref().unwrap_or_default());
        self.keep((!is_own).then(|| {
            let problem = format!(
                "its `resource` is {}, which does not name this endpoint: clients refuse it",
                metadata["resource"]
            );
            Finding::new(Area::Auth, Error, problem).request(sent.shown()).answer(&metadata.to_string())
        }));
        let Some(issuer) = metadata["authorization_servers"][0].as_str() else {
            let problem = "the metadata has no `authorization_servers`";
            return self.keep(Some(
                Finding::new(Area::Auth, Error, problem).request(sent.shown()).answer(&metadata.to_string()),
            ));
        };
        let mut found = None;
        for name in ["oauth-authorization-server", "openid-configuration"] {
            let address = well_known(issuer, name);
            let sent = Sent::get(address.as_deref().unwrap_or_default());
            if let Ok(answer) = sent.send().await
                && answer.status == 200
            {
                found = serde_json::from_str::<Value>(&answer.body).ok().map(|document| (sent, document));
                break;
            }
        }
        let Some((sent, document)) = found else {
            let problem = format!("the authorization server {issuer} has no metadata (RFC 8414)");
            return self.keep(Some(Finding::new(Area::Auth, Error, problem)));
        };
        let has_s256 = document["code_challenge_methods_supported"]
            .as_array()
            .is_some_and(|all| all.contains(&json!("S256")));
        self.keep((!has_s256).then(|| {
            let problem =
                "the authorization server does not tell that it has PKCE with S256: clients refuse it";
            Finding::new(Area::Auth, Error, problem).request(sent.shown()).answer(&document.to_string())
        }));
    }

    async fn document(&self, what: &str, address: Option<&str>) -> Option<Value> {
        let sent = Sent::get(address?);
        let answer = sent.send().await;
        let document = answer.as_ref().ok().filter(|answer| answer.status == 200);
        let document = document.and_then(|answer| serde_json::from_str::<Value>(&answer.body).ok());
        let shown = answer.map_or_else(|error| error, |answer| answer.shown());
        self.keep(document.is_none().then(|| {
            Finding::new(Area::Auth, Error, format!("there is no {what}"))
                .request(sent.shown())
                .answer(&shown)
        }));
        document
    }

    /// Tokens of the server's own issuer. Returns one that is accepted.
    async fn minted(&self, issuer: &TokenFactory) -> Option<String> {
        let user = CreateTokenOptions::new("gatewright");
        let good = issuer.create_test_token(&user);
        let audience = issuer.get_audience();
        let what = format!("a token of the issuer for `{audience}` (`--audience` names another)");
        if !self.accepted(&what, &good).await {
            // Refusals of others would show nothing.
            return None;
        }
        for (name, defect) in Defect::ALL {
            let what = format!("a token of the issuer with the defect `{name}`");
            self.refused(&what, &issuer.create_broken_token(&user, defect)).await;
        }
        let other = issuer.create_test_token(&CreateTokenOptions::new("gatewright-other"));
        self.session_of_other(&good, &other).await;
        Some(good)
    }

    /// The token that was given for the probe.
    async fn given(&self, token: &str) {
        self.accepted("the given token", token).await;
        self.refused("the given token with a broken signature", &broken(token)).await;
        let mut url = url::Url::parse(self.url).ok();
        if let Some(url) = &mut url {
            url.query_pairs_mut().append_pair("access_token", token);
            let sent = Sent::post(url.as_str(), &initialize());
            let is_served = sent.send().await.is_ok_and(|answer| (200..300).contains(&answer.status));
            self.keep(is_served.then(|| {
                let shown = Sent::post(&format!("{}?access_token=…", self.url), &initialize()).shown();
                Finding::new(
                    Area::Auth,
                    Error,
                    "a token in the query of the URL is accepted, where logs keep it",
                )
                .request(shown)
            }));
        }
    }

    async fn accepted(&self, what: &str, token: &str) -> bool {
        let sent = Sent::post(self.url, &initialize()).header("authorization", format!("Bearer {token}"));
        let answer = sent.send().await;
        let is_accepted = answer.as_ref().is_ok_and(|answer| (200..300).contains(&answer.status));
        self.keep(match &answer {
            Ok(_) if is_accepted => None,
            Ok(answer) => Some(self.finding(Error, format!("{what} is refused"), &sent, answer)),
            Err(error) => Some(
                Finding::new(Area::Auth, Error, format!("{what} gets no answer: {error}"))
                    .request(sent.shown()),
            ),
        });
        is_accepted
    }
}

/// A token with another first letter of its last part.
fn broken(token: &str) -> String {
    let (head, tail) = token.rsplit_once('.').unwrap_or(("", token));
    let first = if tail.starts_with('A') { 'B' } else { 'A' };
    let tail: String = std::iter::once(first).chain(tail.chars().skip(1)).collect();
    if head.is_empty() { tail } else { format!("{head}.{tail}") }
}

/// A parameter of a challenge, quoted or not.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let (_, rest) = challenge.split_once(&format!("{name}="))?;
    Some(match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default().to_owned(),
        None => rest.split([',', ' ']).next().unwrap_or_default().to_owned(),
    })
}

/// The well-known address for a URL, before its path (RFC 8414 §3.1).
fn well_known(url: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    let path = url.path().trim_end_matches('/');
    Some(format!("{}/.well-known/{name}{path}", url.origin().ascii_serialization()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_challenges_and_makes_well_known_addresses() {
        let challenge = r#"Bearer realm="a", resource_metadata="https://a.example/.well-known/x", scope="b""#;
        assert_eq!(parameter(challenge, "resource_metadata").unwrap(), "https://a.example/.well-known/x");
        assert_eq!(parameter("Bearer error=invalid_token, x=y", "error").unwrap(), "invalid_token");
        let address = well_known("https://a.example/tenant/", "oauth-authorization-server").unwrap();
        assert_eq!(address, "https://a.example/.well-known/oauth-authorization-server/tenant");
        assert_ne!(broken("a.b.Abc"), "a.b.Abc");
    }
}
