//! Several instances behind one name: a request of a session that another instance holds is passed on to it.
//!
//! A session lives in the process that opened it. Its id names that process, sealed with a key that the instances share, so
//! that any of them knows where a session is without asking, and no client can make the gateway call an address of its
//! choice. What is passed on is passed on once and never repeated: a call that may have run is not run again.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest,
};
use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use gatewright_core::CallerAddress;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, header, request::Parts, uri::PathAndQuery,
};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::refusal;

/// Shortest key, in bytes.
const SHORTEST_KEY: usize = 32;
/// How long a connection to another instance is kept, at most.
const POOL_IDLE: Duration = Duration::from_secs(20);
/// Longest wait for a connection to another instance.
const CONNECT: Duration = Duration::from_secs(2);
/// Marks what was passed on already, and says for whom: the caller's address, sealed.
const FORWARDED: HeaderName = HeaderName::from_static("gatewright-forwarded");
/// What an address is sealed as. No session's id is that.
const CALLER: &str = "caller";
/// Headers of one connection (RFC 9110 §7.6.1); they are not passed on.
const OF_THE_CONNECTION: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_LENGTH,
];

/// The `http.cluster` section: what instances behind one load balancer share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterConfig {
    /// The same secret on every instance, at least 32 characters. Sessions opened under another key are unknown.
    #[schemars(with = "String")]
    pub key: ClusterKey,
    /// Address at which the other instances reach this one over plain HTTP, such as `10.0.0.5:3000`. Default: the address it
    /// listens on; required when that is `0.0.0.0` or `::`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub advertise: Option<SocketAddr>,
}

/// The shared secret, as its digest.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey([u8; 32]);

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(..)")
    }
}

impl Serialize for ClusterKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[redacted]")
    }
}

impl<'de> Deserialize<'de> for ClusterKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text.len() < SHORTEST_KEY {
            let problem = format!("the cluster's key must have at least {SHORTEST_KEY} characters");
            return Err(serde::de::Error::custom(problem));
        }
        let digest = digest::digest(&digest::SHA256, text.as_bytes());
        let mut key = [0; 32];
        key.copy_from_slice(digest.as_ref());
        Ok(Self(key))
    }
}

/// This instance among the others.
pub(crate) struct Cluster {
    own: SocketAddr,
    key: RandomizedNonceKey,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Cluster {
    /// Reached by the others at `own`; they keep a connection for `idle`.
    pub(crate) fn new(key: &ClusterKey, own: SocketAddr, idle: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        Self {
            own,
            key: RandomizedNonceKey::new(&AES_256_GCM, &key.0).expect("32 bytes are a key"),
            client: Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE.min(idle / 2))
                // A request whose connection broke is not sent again.
                .retry_canceled_requests(false)
                .build(connector),
        }
    }

    /// The public form of a session's id: the id, and where it lives, sealed.
    pub(crate) fn seal(&self, id: &str) -> String {
        format!("{id}.{}", self.sealed(id, &self.own.to_string()))
    }

    fn sealed(&self, about: &str, text: &str) -> String {
        let mut sealed = text.as_bytes().to_vec();
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(about), &mut sealed)
            .expect("few bytes can be sealed");
        sealed.extend_from_slice(nonce.as_ref());
        URL_SAFE_NO_PAD.encode(sealed)
    }

    fn opened<T: FromStr>(&self, about: &str, sealed: &str) -> Option<T> {
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let nonce: [u8; NONCE_LEN] =
            sealed.split_off(sealed.len().checked_sub(NONCE_LEN)?).try_into().ok()?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(about), &mut sealed).ok()?;
        std::str::from_utf8(opened).ok()?.parse().ok()
    }

    /// The caller's address, when another instance passed the request on.
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<IpAddr> {
        self.opened(CALLER, headers.get(FORWARDED)?.to_str().ok()?)
    }

    /// Where the session lives, when that is another instance.
    pub(crate) fn elsewhere(&self, headers: &HeaderMap, session: &str) -> Option<SocketAddr> {
        if headers.contains_key(FORWARDED) {
            return None;
        }
        let (id, sealed) = session.split_once('.')?;
        let home: SocketAddr = self.opened(id, sealed)?;
        (home != self.own).then_some(home)
    }

    /// Passes a request on, once. An instance that cannot be reached has lost its sessions; one that breaks off may have done
    /// what it was asked.
    pub(crate) async fn pass_on(&self, to: SocketAddr, parts: &Parts, message: Bytes) -> Response<Body> {
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let mut request = Request::builder().method(&parts.method).uri(format!("http://{to}{path}"));
        if let Some(headers) = request.headers_mut() {
            headers.extend(end_to_end(&parts.headers));
            let caller = parts.extensions.get::<CallerAddress>().map(|caller| caller.0.to_string());
            let sealed = self.sealed(CALLER, caller.as_deref().unwrap_or_default());
            headers.insert(FORWARDED, HeaderValue::try_from(sealed).unwrap_or(HeaderValue::from_static("1")));
        }
        let Ok(request) = request.body(Full::new(message.clone())) else {
            return refusal::broke_off(&message);
        };
        match self.client.request(request).await {
            Ok(response) => {
                let (mut parts, body) = response.into_parts();
                parts.headers = end_to_end(&parts.headers).collect();
                Response::from_parts(parts, Body::new(body))
            }
            Err(error) if error.is_connect() => {
                tracing::warn!(instance = %to, %error, "the instance that held a session cannot be reached: the session is lost");
                refusal::session_not_found()
            }
            Err(error) => {
                tracing::warn!(instance = %to, %error, "the instance that held a session broke off");
                refusal::broke_off(&message)
            }
        }
    }
}

/// The id by which the process itself knows a session.
pub(crate) fn own_id(session: &str) -> &str {
    session.split_once('.').map_or(session, |(id, _)| id)
}

fn end_to_end(headers: &HeaderMap) -> impl Iterator<Item = (HeaderName, HeaderValue)> + '_ {
    let kept = headers.iter().filter(|(name, _)| !OF_THE_CONNECTION.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(key: &str, own: &str) -> Cluster {
        let key: ClusterKey = serde_json::from_value(key.into()).unwrap();
        Cluster::new(&key, own.parse().unwrap(), Duration::from_secs(75))
    }

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_callers_address_is_believed_when_an_instance_says_it() {
        let (a, b) = (cluster(KEY, "10.0.0.1:3000"), cluster(KEY, "10.0.0.2:3000"));
        let said = |text: &str| HeaderMap::from_iter([(FORWARDED, HeaderValue::from_str(text).unwrap())]);
        let caller = |text: &str| b.caller(&said(text));
        assert_eq!(caller(&a.sealed(CALLER, "203.0.113.7")), Some([203, 0, 113, 7].into()));
        for forged in ["1", "203.0.113.7", &a.seal("x")[2..], &a.sealed("other", "203.0.113.7")] {
            assert_eq!(caller(forged), None, "{forged}");
        }
    }

    #[test]
    fn a_sessions_home_is_known_to_all_who_have_the_key() {
        let (a, b) = (cluster(KEY, "10.0.0.1:3000"), cluster(KEY, "10.0.0.2:3000"));
        let id = a.seal("7f3c");
        assert!(!id.contains("10.0.0.1") && own_id(&id) == "7f3c");
        assert_eq!(b.elsewhere(&HeaderMap::new(), &id), Some("10.0.0.1:3000".parse().unwrap()));
        assert_eq!(a.elsewhere(&HeaderMap::new(), &id), None);
        assert_ne!(a.seal("7f3c"), id);
    }

    #[test]
    fn nobody_else_can_say_where_a_session_is() {
        let (a, b) = (cluster(KEY, "10.0.0.1:3000"), cluster(KEY, "10.0.0.2:3000"));
        let stranger = cluster("another key of thirty-two letters or more", "169.254.169.254:80");
        let id = a.seal("7f3c");
        let sealed = id.split_once('.').unwrap().1;
        for forged in [
            stranger.seal("7f3c"),
            format!("7f3d.{sealed}"),
            format!("7f3c.{}", &sealed[1..]),
            "7f3c.".to_owned(),
            "7f3c".to_owned(),
            "7f3c.!".to_owned(),
        ] {
            assert_eq!(b.elsewhere(&HeaderMap::new(), &forged), None, "{forged}");
        }
        let twice = HeaderMap::from_iter([(FORWARDED, HeaderValue::from_static("1"))]);
        assert_eq!(b.elsewhere(&twice, &id), None);
    }

    #[test]
    fn a_short_key_is_refused_and_no_key_is_shown() {
        let config = |key: &str| serde_json::from_value::<ClusterConfig>(serde_json::json!({"key": key}));
        assert!(config("short").unwrap_err().to_string().contains("32"));
        let config = config(KEY).unwrap();
        assert!(!format!("{config:?}{}", serde_json::to_string(&config).unwrap()).contains(KEY));
    }
}
