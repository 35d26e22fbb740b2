//! The mock that comes nearest to an unmatched call, and what differs.

use super::{
    call::HttpCall,
    expectation::Expectation,
    matching::{BodyMatcher, TextMatcher, UrlMatcher},
};
use crate::{
    base::text::shorten,
    cassette::redact::{shown, shown_value},
    matchers::json_diff,
};

/// Differences named for a mock.
const MOST_NAMED: usize = 5;
/// Characters shown of a value.
const SHOWN: usize = 120;

/// Describes the nearest mock: the one with the fewest differences among those whose URL has most in common with the call's.
pub(super) fn nearest<'a>(
    call: &HttpCall,
    all: impl IntoIterator<Item = &'a std::sync::Arc<Expectation>>,
) -> Option<String> {
    let ranked = all.into_iter().map(|one| {
        let differences = differences(one, call);
        (url_distance(&one.options.url, &call.url), differences.len(), one, differences)
    });
    let (distance, _, nearest, differences) =
        ranked.min_by_key(|(distance, count, ..)| (*distance, *count))?;
    if distance == FAR {
        return None;
    }
    let mut text = format!("nearest mock: {:?}", nearest.options);
    for one in differences.iter().take(MOST_NAMED) {
        text.push_str("\n  ");
        text.push_str(one);
    }
    if differences.len() > MOST_NAMED {
        text.push_str(&format!("\n  and {} more differences", differences.len() - MOST_NAMED));
    }
    Some(text)
}

/// The distance of URLs that have nothing in common.
const FAR: usize = usize::MAX;

fn url_distance(matcher: &UrlMatcher, url: &str) -> usize {
    match matcher {
        one if one.matches(url) => 0,
        UrlMatcher::Text(text) => {
            let text = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            let common = text.chars().zip(rest.chars()).take_while(|(a, b)| a == b).count();
            let host = text.split('/').next().unwrap_or(text).chars().count();
            // Another host is another service, a similar one a misspelling.
            if common * 2 < host { FAR } else { text.chars().count() + 1 - common }
        }
        UrlMatcher::Regex(_) | UrlMatcher::Predicate(_) => FAR,
    }
}

/// The conditions of a mock that a call does not meet.
fn differences(one: &Expectation, call: &HttpCall) -> Vec<String> {
    let options = &one.options;
    let mut all = Vec::new();
    if !options.methods.is_empty() && !options.methods.contains(&call.method) {
        all.push(format!("method: expected {}, is {}", options.methods.join(" or "), call.method));
    }
    if !options.url.matches(&call.url) {
        all.push(format!("URL: expected {:?}, is {}", options.url, shorten(&shown(&call.url), SHOWN)));
    }
    let mut pair = |kind: &str, name: &str, matcher: &TextMatcher, values: &[String]| {
        if values.iter().any(|one| matcher.matches(one)) {
            return;
        }
        let is = match values {
            [] => "is missing".to_owned(),
            values => format!("is {:?}", shorten(&shown_value(name, &values.join(", ")), SHOWN)),
        };
        all.push(format!("{kind} `{name}`: expected {matcher:?}, {is}"));
    };
    for (name, matcher) in &options.headers {
        pair("header", name, matcher, &call.header(name).map(str::to_owned).into_iter().collect::<Vec<_>>());
    }
    options.query.iter().for_each(|(name, one)| pair("query", name, one, &call.query(name)));
    options.form.iter().for_each(|(name, one)| pair("form field", name, one, &call.form(name)));
    if let Some(body) = options.body.as_ref().filter(|body| !body.matches(call)) {
        all.extend(body_differences(body, call));
    }
    if all.is_empty() {
        all.extend(one.used_up());
    }
    all
}

fn body_differences(wanted: &BodyMatcher, call: &HttpCall) -> Vec<String> {
    let body = call.body.as_deref().unwrap_or_default();
    let is = format!("is {:?}", shorten(&shown(body), SHOWN));
    match (wanted, call.json()) {
        (BodyMatcher::Json(wanted), Some(found)) => {
            let lines = json_diff(wanted, &found).into_iter();
            lines.map(|line| format!("body: {}", shown(&line))).collect()
        }
        (BodyMatcher::Json(_), None) => vec![format!("body: expected JSON, {is}")],
        (BodyMatcher::Text(text), _) => vec![format!("body: expected to contain {text:?}, {is}")],
        (BodyMatcher::Regex(regex), _) => vec![format!("body: expected to match /{regex}/, {is}")],
        (BodyMatcher::Predicate(_), _) => vec![format!("body: the predicate returned false, {is}")],
    }
}
