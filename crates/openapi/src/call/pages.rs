//! The way to the next page of a result. `items` finds the items of an answer.
//!
//! The next page is found in the header `Link` (RFC 8288), in an address or a cursor of the body, or by counting on a parameter of the operation.
//! Nothing here sends requests; `collect` does.

use std::sync::Arc;

use gatewright_core::rmcp::model::JsonObject;
use http::{HeaderMap, Method, header::LINK};
use serde_json::{Value, json};
use url::Url;

use super::{
    encode::escaped,
    link::{is_of_pages, next_link},
    page_signs::{
        NEXT_CURSORS, NEXT_URLS, OFFSET_NUMBERS, PAGE_NUMBERS, TOTALS, has_more, names_next, number,
        says_failed,
    },
};
use crate::{Location, Operation, Parameter};

/// Names of parameters, in lower case and without other characters than letters and digits.
const CURSORS: [&str; 21] = [
    "pageinfo",
    "cursor",
    "pagetoken",
    "nexttoken",
    "nextpagetoken",
    "startingafter",
    "after",
    "continue",
    "continuationtoken",
    "marker",
    "nextcursor",
    "startcursor",
    "aftercursor",
    "paginationtoken",
    "pagecursor",
    "pageafter",
    "skiptoken",
    "startingtoken",
    "scrollid",
    "bookmark",
    "exclusivestartkey",
];
const PAGES: [&str; 6] = ["page", "pagenumber", "pageno", "pagenum", "pageindex", "currentpage"];
const OFFSETS: [&str; 5] = ["offset", "skip", "startat", "startindex", "pageoffset"];
const SIZES: [&str; 11] = [
    "perpage",
    "limit",
    "pagesize",
    "maxresults",
    "count",
    "top",
    "size",
    "take",
    "pagelimit",
    "resultsperpage",
    "itemsperpage",
];

/// Parameters of the address of a page.
const MOST_PAIRS: usize = 200;

/// The way to the next page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Its address, which is at the API's origin and below its path.
    Url(Url),
    /// The same call with another value of this argument, which the answer names.
    Named(Arc<str>, Value),
    /// The same call with another value of this argument, which is counted.
    Counted(Arc<str>, Value),
    /// The answer says that there is one, but not where the gateway may go.
    OutOfReach,
    /// There is none.
    End,
}

/// An answer of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// The body without its items.
    pub(crate) body: &'a Value,
    pub(crate) items: &'a [Value],
    /// Items of the pages before, if the call began with the first page.
    pub(crate) before: Option<usize>,
    /// The address of the request.
    pub(crate) url: &'a Url,
    /// Credentials in its query, whose names are escaped.
    pub(crate) credentials: &'a [(String, String)],
}

/// Parameters of an operation that choose a page.
#[derive(Debug, Default)]
pub(crate) struct PageParameters<'o> {
    cursor: Option<&'o Parameter>,
    page: Option<&'o Parameter>,
    offset: Option<&'o Parameter>,
    size: Option<&'o Parameter>,
    /// Names of all parameters in the query.
    declared: Vec<&'o str>,
}

impl<'o> PageParameters<'o> {
    pub(crate) fn of(operation: &'o Operation) -> Self {
        let of = |names: &[&str]| {
            let queries = operation.parameters.iter().filter(|one| one.location == Location::Query);
            let mut named = queries.filter(|one| names.contains(&&*bare(&one.name)));
            named.next()
        };
        let queries = operation.parameters.iter().filter(|one| one.location == Location::Query);
        let declared = queries.map(|one| &*one.name).collect();
        Self { cursor: of(&CURSORS), page: of(&PAGES), offset: of(&OFFSETS), size: of(&SIZES), declared }
    }

    /// Returns `true` if the operation is described as one with pages.
    pub(crate) fn are_of_pages(&self) -> bool {
        self.cursor.is_some() || self.page.is_some() || self.offset.is_some()
    }

    /// Returns `true` if a call with `arguments` begins with the first page.
    pub(crate) fn begin_with(&self, arguments: &JsonObject) -> bool {
        let all = [self.cursor, self.page, self.offset];
        all.into_iter().flatten().all(|parameter| !arguments.contains_key(&*parameter.argument))
    }

    /// Page 2, if `arguments` ask for page 1.
    pub(crate) fn behind_page_one(&self, arguments: &JsonObject) -> Option<Next> {
        let page = self.page.filter(|_| self.offset.is_none())?;
        let given = arguments.get(&*page.argument).and_then(number)?;
        (given == 1).then(|| Next::Counted(page.argument.clone(), json!(2)))
    }

    /// Returns `true` if the answer says how many items there are, and that they are more than were read with it.
    pub(crate) fn are_more(&self, answer: Answered<'_>) -> bool {
        let read = answer.before.map(|before| (before + answer.items.len()) as u64);
        // A sum of money or of points may be called so as well.
        let place = |place: &&&str| **place != "/total" || self.are_of_pages();
        let total = TOTALS.iter().filter(place).find_map(|place| answer.body.pointer(place)?.as_u64());
        has_more(answer.body) != Some(false) && read.zip(total).is_some_and(|(read, total)| read < total)
    }

    /// The way to the page after `answer`, which came for `arguments` from the API at `base`.
    pub(crate) fn next(&self, answer: Answered<'_>, arguments: &JsonObject, base: &Url) -> Next {
        let Answered { headers, body, .. } = answer;
        let links: Vec<&str> = headers.get_all(LINK).iter().filter_map(|link| link.to_str().ok()).collect();
        if let Some(next) = links.iter().find_map(|link| next_link(link)) {
            return self.at(next, answer, base);
        }
        // A last page has links to others, such as the first.
        if links.iter().any(|link| is_of_pages(link)) {
            return Next::End;
        }
        let is_address = |text: &str| text.contains("://") || text.starts_with(['/', '?']);
        let text = |place: &&str| body.pointer(place).and_then(Value::as_str);
        if let Some(next) = NEXT_URLS.iter().filter_map(text).find(|text| is_address(text)) {
            return self.at(next, answer, base);
        }
        let has_more = has_more(body);
        if has_more == Some(false) {
            return Next::End;
        }
        if let Some(parameter) = self.cursor {
            return match self.cursor_after(answer, has_more) {
                Some(cursor) => Next::Named(parameter.argument.clone(), cursor),
                // Some APIs have both, and the cursor only where it is asked for.
                None => self.count(answer, arguments, has_more),
            };
        }
        self.count(answer, arguments, has_more)
    }

    fn cursor_after(&self, answer: Answered<'_>, has_more: Option<bool>) -> Option<Value> {
        let is_cursor = |value: &&Value| match value {
            Value::String(text) => !text.is_empty() && !text.contains("://"),
            Value::Number(_) => true,
            _ => false,
        };
        let mut found = NEXT_CURSORS.iter().filter_map(|place| answer.body.pointer(place)).filter(is_cursor);
        if let Some(cursor) = found.next() {
            return Some(cursor.clone());
        }
        // Stripe and others go on after the last item.
        let is_after = self.cursor.is_some_and(|parameter| bare(&parameter.name) == "startingafter");
        let id = answer.items.last()?.get("id").filter(is_cursor)?;
        (is_after && has_more == Some(true)).then(|| id.clone())
    }

    /// The next page by its number, or by the number of items before it.
    fn count(&self, answer: Answered<'_>, arguments: &JsonObject, has_more: Option<bool>) -> Next {
        match self.counted(answer, arguments, has_more) {
            Next::End if self.are_more(answer) => Next::OutOfReach,
            next => next,
        }
    }

    fn counted(&self, answer: Answered<'_>, arguments: &JsonObject, has_more: Option<bool>) -> Next {
        let given = |parameter: &Parameter| arguments.get(&*parameter.argument).and_then(number);
        let items = answer.items.len() as u64;
        if items == 0 {
            return if says_failed(answer.body) { Next::OutOfReach } else { Next::End };
        }
        // A page that is not full is the last one.
        let size = self.size.and_then(given);
        if has_more.is_none() && size.is_some_and(|size| items < size) && !self.are_more(answer) {
            return Next::End;
        }
        let total = TOTALS.iter().find_map(|place| answer.body.pointer(place)?.as_u64());
        if let Some(parameter) = self.offset {
            let first = self.first(parameter, answer, &OFFSET_NUMBERS, arguments).unwrap_or(0);
            let next = given(parameter).unwrap_or(first).saturating_add(items);
            return match total.is_some_and(|total| next.saturating_sub(first) >= total) {
                true => Next::End,
                false => Next::Counted(parameter.argument.clone(), json!(next)),
            };
        }
        let Some(parameter) = self.page else {
            return if has_more == Some(true) || names_next(answer.body) {
                Next::OutOfReach
            } else {
                Next::End
            };
        };
        let first = self.first(parameter, answer, &PAGE_NUMBERS, arguments);
        let page = given(parameter).or(first).unwrap_or(1);
        // Without the pages before, of those that are counted from 1: of others, one page too many is asked for.
        let before = page.max(1).saturating_mul(size.unwrap_or(items).max(items)).saturating_sub(items);
        let before = answer.before.map_or(before, |before| before as u64);
        let is_all = total.is_some_and(|total| before.saturating_add(items) >= total);
        match is_all && has_more != Some(true) {
            true => Next::End,
            false => Next::Counted(parameter.argument.clone(), json!(page.saturating_add(1))),
        }
    }

    /// The number of the first page or item, 0 or 1: that of an answer to a call that named none, or the one of the document.
    fn first(
        &self,
        parameter: &Parameter,
        answer: Answered<'_>,
        places: &[&str],
        arguments: &JsonObject,
    ) -> Option<u64> {
        let is_named = arguments.contains_key(&*parameter.argument);
        // A number of another name may count otherwise, but for those of pages.
        let own = bare(&parameter.name);
        let is_own = |place: &&&str| {
            PAGES.contains(&&*own) || place.rsplit('/').next().is_some_and(|last| bare(last) == own)
        };
        let said =
            || places.iter().filter(is_own).find_map(|place| answer.body.pointer(place).and_then(number));
        let said = (!is_named).then(said).flatten();
        said.filter(|first| *first <= 1).or_else(|| parameter.first.filter(|first| *first <= 1))
    }

    /// Returns `true` if addresses differ only in parameters that the operation declares, or that are named like a page.
    fn differs_in_known(&self, answer: Answered<'_>, next: &Url) -> bool {
        let is_credential = |name: &str| answer.credentials.iter().any(|(own, _)| *own == escaped(name));
        let pairs = |url: &Url| -> Vec<(String, String)> {
            url.query_pairs().into_owned().filter(|(name, _)| !is_credential(name)).collect()
        };
        let (was, is) = (pairs(answer.url), pairs(next));
        if was.len().max(is.len()) > MOST_PAIRS {
            return false;
        }
        let is_known = |name: &str| {
            let declared = self.declared.contains(&name);
            declared
                || [&CURSORS[..], &PAGES, &OFFSETS, &SIZES].iter().any(|names| names.contains(&&*bare(name)))
        };
        let gone = was.iter().filter(|pair| !is.contains(pair));
        let new = is.iter().filter(|pair| !was.contains(pair));
        let twice = is.iter().filter(|(name, _)| {
            let times = |pairs: &[(String, String)]| pairs.iter().filter(|(other, _)| other == name).count();
            times(&is) != times(&was)
        });
        gone.chain(new).chain(twice).all(|(name, _)| is_known(name))
    }

    /// The page at an address that the API names. One elsewhere is not asked; its page is, if a parameter of the operation names it.
    fn at(&self, next: &str, answer: Answered<'_>, base: &Url) -> Next {
        let url = answer.url;
        let Ok(mut next) = url.join(next) else { return Next::OutOfReach };
        next.set_fragment(None);
        // Another path is another operation, and what else differs may be an argument: only the page is taken from such an address.
        if is_within(&next, base) && next.path() == url.path() && self.differs_in_known(answer, &next) {
            return Next::Url(next);
        }
        let chosen = [self.cursor, self.page, self.offset].into_iter().flatten().find_map(|parameter| {
            let (_, value) = next.query_pairs().find(|(name, _)| **name == *parameter.name)?;
            Some(Next::Named(parameter.argument.clone(), Value::String(value.into_owned())))
        });
        chosen.unwrap_or(Next::OutOfReach)
    }
}

/// Returns `true` if pages of the operation can be collected: it only reads.
pub(crate) fn is_possible(operation: &Operation) -> bool {
    operation.method == Method::GET
}

fn bare(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns `true` if an address is at the origin of `base` and below its path.
fn is_within(url: &Url, base: &Url) -> bool {
    let below = url.path().strip_prefix(base.path().trim_end_matches('/'));
    let is_below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // A decoder of the API must not see a way up in it.
    let path = url.path().to_ascii_lowercase();
    let is_plain = !["%2e", "..%2f", "..%5c", "%2f..", "%5c.."].iter().any(|way| path.contains(way));
    url.origin() == base.origin()
        && url.username().is_empty()
        && url.password().is_none()
        && is_below
        && is_plain
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::{super::items::take_items, *};

    fn base() -> Url {
        Url::parse("https://api.example/v1").unwrap()
    }

    fn parameter(name: &str) -> Parameter {
        Parameter {
            argument: name.into(),
            name: name.into(),
            location: Location::Query,
            style: crate::Style::Form,
            explode: true,
            allow_reserved: false,
            required: false,
            content: None,
            first: None,
            members: Box::default(),
        }
    }

    /// The way on from an answer to a call with these parameters and arguments.
    fn next(parameters: &[&str], arguments: Value, link: Option<&str>, mut body: Value) -> Next {
        let parameters: Vec<Parameter> = parameters.iter().map(|name| parameter(name)).collect();
        let of = |names: &[&str]| parameters.iter().find(|one| names.contains(&&*bare(&one.name)));
        let known = PageParameters {
            cursor: of(&CURSORS),
            page: of(&PAGES),
            offset: of(&OFFSETS),
            size: of(&SIZES),
            declared: parameters.iter().map(|one| &*one.name).collect(),
        };
        let mut headers = HeaderMap::new();
        headers.extend(link.map(|link| (LINK, HeaderValue::from_str(link).unwrap())));
        let (_, items) = take_items(&mut body, None).unwrap();
        let url = Url::parse("https://api.example/v1/things?page=1").unwrap();
        let arguments = arguments.as_object().unwrap();
        let before = known.begin_with(arguments).then_some(0);
        let answer =
            Answered { headers: &headers, body: &body, items: &items, before, url: &url, credentials: &[] };
        known.next(answer, arguments, &base())
    }

    fn named(name: &str, value: Value) -> Next {
        Next::Named(name.into(), value)
    }

    fn counted(name: &str, value: u64) -> Next {
        Next::Counted(name.into(), json!(value))
    }

    fn at(url: &str) -> Next {
        Next::Url(Url::parse(url).unwrap())
    }

    #[test]
    fn links_are_followed_at_the_origin_and_below_the_path_of_the_api_only() {
        let to = |link: &str| next(&[], json!({}), Some(&format!("<{link}>; rel=next")), json!([1]));
        assert_eq!(to("/v1/things?page=2"), at("https://api.example/v1/things?page=2"));
        assert_eq!(to("?page=2"), at("https://api.example/v1/things?page=2"));
        assert_eq!(
            to("https://api.example:443/v1/things?page=2#x"),
            at("https://api.example/v1/things?page=2")
        );
        for out in [
            "https://evil.example/v1/things",
            "http://api.example/v1/things",
            "https://api.example:8443/v1/things",
            "https://api.example/v2/things",
            "https://api.example/v10/things",
            "https://api.example/v1/../admin",
            "https://api.example/v1/%2e%2e/admin",
            "https://api.example/v1/a%2E%2e%2fadmin",
            "https://api.example/v1/..%2Fadmin",
            "https://api.example/v1/..%5cadmin",
            "https://me@api.example/v1/things",
            "//evil.example/v1/things",
            "javascript:alert(1)",
            "/v1/other?page=2",
            "/v1/things/1?page=2",
            "/v1/things?page=2&tenant=other",
            "/v1/things?page=1&page=2&page=3&tenant=",
        ] {
            assert_eq!(to(out), Next::OutOfReach, "{out}");
        }
        let elsewhere = Some("<http://internal/things?cursor=c%2F2&page=9>; rel=next");
        assert_eq!(next(&["cursor"], json!({}), elsewhere, json!([1])), named("cursor", json!("c/2")));
        let last = Some("</v1/things?page=1>; rel=first");
        assert_eq!(next(&["page"], json!({"page": 4}), last, json!([1])), Next::End);
    }

    #[test]
    fn cursors_and_addresses_are_found_where_apis_put_them() {
        let slack = json!({"ok": true, "channels": [{"id": 1}], "response_metadata": {"next_cursor": "c2"}});
        assert_eq!(next(&["cursor", "limit"], json!({}), None, slack), named("cursor", json!("c2")));
        let ended = json!({"ok": true, "channels": [{}], "response_metadata": {"next_cursor": ""}});
        assert_eq!(next(&["cursor", "limit"], json!({}), None, ended), Next::End);
        let kubernetes =
            json!({"kind": "PodList", "metadata": {"continue": "k", "resourceVersion": "1"}, "items": [{}]});
        assert_eq!(next(&["continue", "limit"], json!({}), None, kubernetes), named("continue", json!("k")));
        let google = json!({"files": [{}], "nextPageToken": "g"});
        assert_eq!(next(&["pageToken"], json!({}), None, google), named("pageToken", json!("g")));
        let stripe = |more: bool| json!({"object": "list", "has_more": more, "url": "/v1/c", "data": [{"id": "a"}, {"id": "b"}]});
        assert_eq!(
            next(&["starting_after"], json!({}), None, stripe(true)),
            named("starting_after", json!("b"))
        );
        assert_eq!(next(&["starting_after"], json!({}), None, stripe(false)), Next::End);
        let django = json!({"count": 3, "next": "https://api.example/v1/things/?page=2", "results": [{}]});
        assert_eq!(next(&["page"], json!({}), None, django), named("page", json!("2")), "another path");
        let odata = json!({"@odata.nextLink": "https://api.example/v1/things?$skiptoken=x", "value": [{}]});
        assert_eq!(next(&[], json!({}), None, odata), at("https://api.example/v1/things?$skiptoken=x"));
        let wrapped = json!({"data": {"users": [{}], "next_cursor": "w"}});
        assert_eq!(next(&["cursor"], json!({}), None, wrapped), named("cursor", json!("w")));
    }

    #[test]
    fn pages_and_offsets_are_counted_until_the_answer_says_that_it_was_all() {
        let two = || json!([{"id": 1}, {"id": 2}]);
        assert_eq!(next(&["page", "per_page"], json!({}), None, two()), counted("page", 2));
        assert_eq!(
            next(&["page", "per_page"], json!({"page": 7, "per_page": 2}), None, two()),
            counted("page", 8)
        );
        assert_eq!(next(&["page", "per_page"], json!({"per_page": 3}), None, two()), Next::End);
        assert_eq!(next(&["page"], json!({"page": 7}), None, json!([])), Next::End);
        assert_eq!(next(&["offset", "limit"], json!({"offset": "4"}), None, two()), counted("offset", 6));
        let of = |total: u64| json!({"total": total, "items": [{}, {}]});
        assert_eq!(next(&["offset"], json!({"offset": 2}), None, of(5)), counted("offset", 4));
        assert_eq!(next(&["offset"], json!({"offset": 3}), None, of(5)), Next::End);
        assert_eq!(next(&["page"], json!({}), None, of(2)), Next::End);
        for argument in ["page", "offset"] {
            let last = next(&[argument], json!({argument: u64::MAX}), None, two());
            assert_eq!(last, counted(argument, u64::MAX), "no overflow");
        }
        assert_eq!(next(&[], json!({}), None, json!({"has_more": true, "items": [{}]})), Next::OutOfReach);
        assert_eq!(next(&[], json!({}), None, two()), Next::End);
        let failed = json!({"ok": false, "error": "ratelimited", "items": []});
        assert_eq!(next(&["page"], json!({"page": 2}), None, failed), Next::OutOfReach);
        let empty = json!({"ok": true, "errors": [], "items": []});
        assert_eq!(next(&["page"], json!({"page": 2}), None, empty), Next::End);
        let short = json!({"total": 25, "items": [{}, {}]});
        assert_eq!(next(&["page", "per_page"], json!({"per_page": 50}), None, short), counted("page", 2));
    }
}
