//! Collecting the items of all pages of a result.

use std::{collections::HashSet, time::Instant};

use ::http::HeaderMap;
use gatewright_core::{Paginate, rmcp::model::CallToolResult};
use rmcp::model::{ContentBlock, JsonObject};
use serde_json::{Value, json};
use url::Url;

use super::{
    HttpApi, OperationCall,
    answer::{self, MOST_OF_ERROR, Memory, media_type, parse},
    encode::escaped,
    failure::CallError,
    items::take_items,
    media::is_json,
    page_arguments::arguments_at,
    page_signs::has_more,
    pages::{Answered, Next, PageParameters, is_possible},
};

/// Pages of one call.
const MOST_PAGES: usize = 200;

/// An answer without its items.
struct Page {
    items: Vec<Value>,
    /// Name of the member that they were.
    name: String,
    body: Value,
    headers: HeaderMap,
    bytes: usize,
    /// The address of the request, and the server.
    url: Url,
    base: Url,
    /// Credentials in the query of the address.
    credentials: Vec<(String, String)>,
}

/// A page, or the result that says why there is none.
enum Fetched {
    Page(Box<Page>),
    Refused(CallToolResult),
}

impl HttpApi {
    /// Calls an operation for each of its pages, up to the limits of `paginate`, of the bytes of one answer, and of the time of one call.
    ///
    /// # Errors
    /// A page cannot be read, or may not be asked for.
    pub(super) async fn collect(
        &self,
        call: &OperationCall<'_>,
        paginate: &Paginate,
        memory: &mut Memory,
        until: Instant,
    ) -> Result<CallToolResult, CallError> {
        if !is_possible(call.operation) {
            return Err(CallError::argument("paginate", "is for operations that read (GET)"));
        }
        let parameters = PageParameters::of(call.operation);
        let is_whole = parameters.begin_with(call.arguments);
        let mut arguments = call.arguments.clone();
        // Those that the page stands for, whatever led to it.
        let mut decided_on = arguments.clone();
        let (mut items, mut pages, mut bytes) = (Vec::new(), 0, 0);
        let (mut seen, mut at) = (HashSet::new(), None);
        let mut last: Option<Vec<Value>> = None;
        let mut name: Option<String> = None;
        let mut is_named = false;
        let is_more = loop {
            let most = self.config.max_response_bytes - bytes;
            let fetched = self.page(call, &arguments, (at.as_ref(), name.as_deref()), most, memory, until);
            // What was collected is worth more than a page that comes too late, or is too long to go with it.
            let fetched = match tokio::time::timeout_at(until.into(), fetched).await {
                Err(_) | Ok(Err(CallError::TooLarge(_))) if pages > 0 => break true,
                Err(_) => return Err(CallError::Unreachable("no answer in time".to_owned())),
                Ok(fetched) => fetched?,
            };
            let page = match fetched {
                Fetched::Page(page) => page,
                Fetched::Refused(result) => return Ok(result),
            };
            pages += 1;
            bytes += page.bytes;
            let answer = Answered {
                headers: &page.headers,
                body: &page.body,
                items: &page.items,
                before: is_whole.then_some(items.len()),
                url: &page.url,
                credentials: &page.credentials,
            };
            // An API that counts from 1, although its document does not say so, has given the first page twice.
            let is_first_again = pages == 2 && is_whole && last.as_ref() == Some(&page.items);
            let behind = parameters.behind_page_one(&arguments).filter(|_| is_first_again);
            let is_twice = behind.is_some();
            let found = || parameters.next(answer, &arguments, &page.base);
            let next = match behind.unwrap_or_else(found) {
                // An API that named the pages before this one names no other: counting would begin again.
                Next::Counted(..) if is_named && has_more(&page.body) == Some(true) => Next::OutOfReach,
                Next::Counted(..) if is_named => Next::End,
                next => next,
            };
            is_named |= matches!(next, Next::Url(_) | Next::Named(..));
            // An API that does not know the parameter answers with the first page again.
            if !is_twice && matches!(next, Next::Counted(..)) && last.as_ref() == Some(&page.items) {
                break has_more(&page.body) == Some(true)
                    || parameters.are_more(Answered { items: &[], ..answer });
            }
            name.get_or_insert(page.name);
            last = matches!(next, Next::Counted(..)).then(|| page.items.clone());
            if !is_twice {
                items.extend(page.items);
            }
            if items.len() >= paginate.max {
                break items.len() > paginate.max || next != Next::End;
            }
            let is_new = match &next {
                Next::End => break false,
                Next::OutOfReach => break true,
                Next::Url(url) => seen.insert(url.to_string()),
                Next::Named(name, value) | Next::Counted(name, value) => {
                    seen.insert(format!("{name} {value}"))
                }
            };
            if !is_new || pages == MOST_PAGES || Instant::now() >= until {
                break true;
            }
            let of_page = match &next {
                Next::Url(next) => arguments_at(call.operation, &decided_on, &page.url, next),
                Next::Named(name, value) | Next::Counted(name, value) => {
                    let mut changed = decided_on;
                    changed.insert(name.to_string(), value.clone());
                    Some(changed)
                }
                Next::OutOfReach | Next::End => None,
            };
            let Some(of_page) = of_page else { break true };
            decided_on = of_page.clone();
            match paginate.gate.pass(of_page).await {
                Ok(true) => {}
                Ok(false) => break true,
                Err(no) => return Err(CallError::NoPage { code: no.code().to_owned(), why: no.to_string() }),
            }
            match next {
                Next::Url(url) => at = Some(url),
                Next::Named(name, value) | Next::Counted(name, value) => {
                    at = None;
                    arguments.insert(name.to_string(), value);
                }
                Next::OutOfReach | Next::End => {}
            }
        };
        items.truncate(paginate.max);
        let more = if is_more { "; there are more" } else { "" };
        let text = format!("{} items of {pages} pages{more}", items.len());
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(json!({"items": items, "hasMore": is_more, "pages": pages}));
        Ok(result)
    }

    /// Fetches the page for `arguments`, or the one at an address.
    async fn page(
        &self,
        call: &OperationCall<'_>,
        arguments: &JsonObject,
        (at, name): (Option<&Url>, Option<&str>),
        most: usize,
        memory: &mut Memory,
        until: Instant,
    ) -> Result<Fetched, CallError> {
        let mut prepared = self.prepare(call, arguments)?;
        if let Some(at) = at {
            prepared.request.url = with_credentials(at, &prepared.query);
        }
        let (url, base) = (prepared.request.url.clone(), prepared.base.clone());
        let credentials = prepared.query.clone();
        let (_place, response) = self.send(call, prepared, until).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        if !status.is_success() {
            let body = response.read(MOST_OF_ERROR, memory).await.unwrap_or_default();
            return Ok(Fetched::Refused(answer::refused(status, &headers, &body, &self.redactor)));
        }
        let kind = media_type(&headers);
        let body = response.read(most, memory).await?;
        let bytes = body.len();
        let no_list = || {
            let problem = "needs an answer with one list of items, which the answer of the operation does not have; call it without";
            CallError::argument("paginate", problem)
        };
        if bytes > 0 && !is_json(&kind) && !kind.is_empty() {
            return Err(no_list());
        }
        // A page after the last one may be empty.
        let mut body = match bytes {
            0 => Value::Array(Vec::new()),
            _ => parse(self.redactor.data(body), most, memory).await?.0,
        };
        memory.end_body();
        let (name, items) = take_items(&mut body, name).ok_or_else(no_list)?;
        Ok(Fetched::Page(Box::new(Page { items, name, body, headers, bytes, url, base, credentials })))
    }
}

/// An address of the API with the credentials that belong into its query.
fn with_credentials(at: &Url, query: &[(String, String)]) -> Url {
    if query.is_empty() {
        return at.clone();
    }
    let is_credential = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
        query.iter().any(|(own, _)| *own == escaped(&name))
    };
    let kept =
        at.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !is_credential(pair));
    let own = query.iter().map(|(name, value)| format!("{name}={value}"));
    let all: Vec<String> = kept.map(str::to_owned).chain(own).collect();
    let mut url = at.clone();
    url.set_query(Some(&all.join("&")));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_the_query_go_with_every_page_once() {
        let key = [("api%20key".to_owned(), "k%2F1".to_owned())];
        let with = |url: &str| with_credentials(&Url::parse(url).unwrap(), &key).to_string();
        assert_eq!(with("https://a.example/x?page=2"), "https://a.example/x?page=2&api%20key=k%2F1");
        assert_eq!(
            with("https://a.example/x?api%20key=masked&page=2"),
            "https://a.example/x?page=2&api%20key=k%2F1"
        );
        assert_eq!(with("https://a.example/x"), "https://a.example/x?api%20key=k%2F1");
    }
}
