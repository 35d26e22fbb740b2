//! Documents behind a URL: fetched again only when they have changed.

use std::time::Instant;

use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{ACCEPT, ACCEPT_ENCODING, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED},
};
use url::Url;

use super::{
    HttpApi,
    answer::Memory,
    failure::CallError,
    http::{Outgoing, Retries},
};

/// A document as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) text: String,
    /// `ETag` and `Last-Modified`, for the next time.
    pub(crate) validators: Validators,
}

/// Validators of a fetched document (RFC 9110 §8.8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

impl HttpApi {
    /// Fetches a document. None if it is the same as that of `known`.
    ///
    /// # Errors
    /// There is no answer, it is no success, or longer than `maxDocumentBytes`.
    pub(crate) async fn fetch_document(
        &self,
        url: &Url,
        known: &Validators,
    ) -> Result<Option<Fetched>, String> {
        let mut headers = HeaderMap::new();
        if self.base.as_ref().is_some_and(|base| base.origin() == url.origin()) {
            headers.clone_from(&self.headers);
        }
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/yaml, application/json, text/plain, */*;q=0.5"),
        );
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.extend(known.etag.clone().map(|etag| (IF_NONE_MATCH, etag)));
        headers.extend(known.modified.clone().map(|modified| (IF_MODIFIED_SINCE, modified)));
        let method = Method::GET;
        let url = url.clone();
        let request = Outgoing { method, url, headers, body: None, shows_certificate: false, trail: None };
        let until = Instant::now() + self.config.connect_timeout;
        let retries = Retries { most: 1, is_idempotent: true, until };
        let fetching = async {
            let response = self.http.send(&request, retries).await?;
            let (status, headers) = (response.status(), response.headers().clone());
            // Without validators there is nothing that it could be the same as.
            if status == StatusCode::NOT_MODIFIED && *known != Validators::default() {
                return Ok(None);
            }
            if !status.is_success() {
                return Err(CallError::BadAnswer(format!("HTTP {}", status.as_u16())));
            }
            let text = String::from_utf8(
                response.read(self.config.max_document_bytes, &mut Memory::default()).await?,
            )
            .map_err(|_| CallError::BadAnswer("it is no text in UTF-8".to_owned()))?;
            let header = |name| headers.get(name).cloned();
            let validators = Validators { etag: header(ETAG), modified: header(LAST_MODIFIED) };
            Ok(Some(Fetched { text, validators }))
        };
        match tokio::time::timeout_at(until.into(), fetching).await {
            Ok(fetched) => fetched.map_err(|error: CallError| match error {
                CallError::TooLarge(most) => format!("it has more than {most} bytes; see `maxDocumentBytes`"),
                CallError::BadAnswer(why) | CallError::Unreachable(why) => why,
                CallError::Refused(why) => format!("{why}; `allowPrivate: true` allows private addresses"),
                other => other.to_string(),
            }),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}
