//! Calls that a mock passes on to the network.

use std::sync::OnceLock;

use gatewright_core::HOP_BY_HOP;
use http_body_util::BodyExt as _;
use hyper::{Method, Response, body::Bytes};

use super::{call::HttpCall, response::HttpResponse};
use crate::base::net::{direct_client, root_cause};

/// The network, with a client that is created for the first call.
#[derive(Default)]
pub(super) struct Network {
    client: OnceLock<reqwest::Client>,
}

impl Network {
    /// Sends a call. One that is recorded asks for a response that is not compressed, because secrets in it have to be found.
    pub(super) async fn send(
        &self,
        call: &HttpCall,
        body: Bytes,
        record: bool,
    ) -> Result<reqwest::Response, String> {
        let method = Method::from_bytes(call.method.as_bytes()).unwrap_or_default();
        let client = match self.client.get() {
            Some(client) => client,
            None => {
                let client = direct_client("https://").map_err(|error| error.to_string())?;
                self.client.get_or_init(|| client)
            }
        };
        let mut request = client.request(method, &call.url).body(body);
        for (name, value) in &call.headers {
            let left_out = name == "host" || (record && name == "accept-encoding");
            if !left_out && !HOP_BY_HOP.contains(&name.as_str()) {
                request = request.header(name, value);
            }
        }
        request.send().await.map_err(|error| root_cause(&error))
    }
}

/// Reads a response to its end.
pub(super) async fn buffered(response: reqwest::Response) -> Result<HttpResponse, String> {
    let mut answer = HttpResponse { status: response.status().as_u16(), ..HttpResponse::default() };
    for (name, value) in response.headers() {
        if !HOP_BY_HOP.contains(&name.as_str()) {
            answer = answer.header(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
        }
    }
    if let Some((_, coding)) =
        answer.headers.iter().find(|(name, value)| name == "content-encoding" && value != "identity")
    {
        return Err(format!(
            "the answer is compressed ({coding}), so its secrets cannot be found; it is not recorded"
        ));
    }
    answer.body = response.bytes().await.map_err(|error| root_cause(&error))?.to_vec();
    Ok(answer)
}

/// Passes a response on as it streams.
pub(super) fn streamed(
    response: reqwest::Response,
) -> Response<http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>> {
    let (mut parts, body) = http::Response::from(response).into_parts();
    for name in HOP_BY_HOP {
        parts.headers.remove(name);
    }
    parts.version = hyper::Version::HTTP_11;
    Response::from_parts(parts, body.map_err(std::io::Error::other).boxed_unsync())
}
