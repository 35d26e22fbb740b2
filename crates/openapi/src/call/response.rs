//! Responses, and their bodies within a limit.

use http::{
    HeaderMap, HeaderValue, StatusCode, Version,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING},
};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};

use super::{
    answer::Memory,
    failure::{CallError, reason},
    traffic::Traffic,
};

/// Bytes of a body that there is room for before they are there.
const LIKELY: usize = 64 * 1024;

/// A response whose body was not read.
#[derive(Debug)]
pub(crate) struct Response {
    status: StatusCode,
    version: Version,
    headers: HeaderMap,
    body: Incoming,
    /// Of the connection.
    traffic: Option<Traffic>,
}

impl Response {
    pub(super) fn new(response: http::Response<Incoming>) -> Self {
        let (mut parts, body) = response.into_parts();
        let traffic: Option<Traffic> = parts.extensions.remove();
        if let Some(traffic) = &traffic {
            traffic.response();
        }
        Self { status: parts.status, version: parts.version, headers: parts.headers, body, traffic }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns `true` if the server may have sent something after this response that would be taken for another one: a body where none may
    /// be (204), which no client reads (RFC 9110 §8.6). Frames of HTTP/2 belong to their response.
    pub(super) fn has_forbidden_body(&self) -> bool {
        let length = self.headers.get(CONTENT_LENGTH).map(HeaderValue::as_bytes);
        let announces =
            length.is_some_and(|length| length != b"0") || self.headers.contains_key(TRANSFER_ENCODING);
        self.status == StatusCode::NO_CONTENT && announces && self.version < Version::HTTP_2
    }

    /// The next part of the body. None at its end.
    ///
    /// # Errors
    /// The connection breaks.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| CallError::Unreachable(reason(&error, false)))?;
            // Trailers are for nobody.
            let Ok(part) = frame.into_data() else { continue };
            if let Some(traffic) = &self.traffic {
                traffic.part(part.len());
            }
            return Ok(Some(part));
        }
    }

    /// Refuses a compressed body: none was asked for, and it may be many times as long as it seems.
    ///
    /// # Errors
    /// It is compressed.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        let is_plain = |value: &HeaderValue| {
            value.to_str().is_ok_and(|codings| {
                let mut codings = codings.split(',').map(|coding| coding.trim().to_ascii_lowercase());
                codings.all(|coding| matches!(&*coding, "" | "identity" | "chunked"))
            })
        };
        let mut codings =
            [CONTENT_ENCODING, TRANSFER_ENCODING].into_iter().flat_map(|name| self.headers.get_all(name));
        match codings.all(is_plain) {
            true => Ok(()),
            false => {
                Err(CallError::BadAnswer("it is compressed, which the gateway did not ask for".to_owned()))
            }
        }
    }

    /// Reads a body of at most `most` bytes. A longer one is not read on: the request is given up. `memory` has room for it from then on.
    ///
    /// # Errors
    /// It is longer, compressed, or breaks off, or there is no memory for it.
    pub(crate) async fn read(mut self, most: usize, memory: &mut Memory) -> Result<Vec<u8>, CallError> {
        self.check()?;
        let length = self.body.size_hint().exact().unwrap_or_default();
        if length > most as u64 {
            return Err(CallError::TooLarge(most));
        }
        let mut body = Vec::with_capacity(usize::try_from(length).unwrap_or(most).min(LIKELY));
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > most {
                return Err(CallError::TooLarge(most));
            }
            memory.take_body(chunk.len())?;
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}
