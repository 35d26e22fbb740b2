//! Work on the text of a configuration: it grows no faster than the text, whatever is repeated in it.

use std::{collections::HashMap, fmt::Write as _};

use gatewright_findings::Format;
use serde_json::{Value, json};

use super::{Config, Surroundings};
use crate::logging::redact::growth as work;

/// A configuration with about `len` bytes of something.
type Make = fn(usize) -> Value;

/// An object of `count` members.
fn members(count: usize, name: impl Fn(usize) -> String, value: impl Fn(usize) -> Value) -> Value {
    Value::Object((0..count).map(|at| (name(at), value(at))).collect())
}

fn items(count: usize, item: impl Fn(usize) -> Value) -> Value {
    Value::Array((0..count).map(item).collect())
}

fn auth(name: &str, value: Value) -> Value {
    json!({"apps": {"crm": {"builtin": "crm"}}, "auth": {"mode": "orchestrated", name: value}})
}

const REPEATED: [(&str, Make); 22] = [
    ("unknown keys", |len| members(len / 16, |at| format!("key{at:06}"), |_| json!(1))),
    ("unknown keys that are nearly right", |len| {
        members(len / 16, |at| format!("app{at:06}"), |_| json!({}))
    }),
    (
        "unknown keys of an app",
        |len| json!({"apps": {"a": members(len / 16, |at| format!("url{at:06}"), |_| json!(1))}}),
    ),
    (
        "apps",
        |len| json!({"apps": members(len / 32, |at| format!("a{at:06}"), |_| json!({"builtin": "crm"}))}),
    ),
    ("apps that are none", |len| json!({"apps": members(len / 16, |at| format!("a{at:06}"), |_| json!(7))})),
    ("apps with addresses", |len| {
        let app =
            |at: usize| json!({"url": format!("https://a{at}.example/mcp"), "headers": {"x": "${NAME}"}});
        json!({"apps": members(len / 64, |at| format!("a{at:06}"), app)})
    }),
    (
        "apps with bad addresses",
        |len| json!({"apps": members(len / 32, |at| format!("a{at:06}"), |_| json!({"url": "ftp:/x"}))}),
    ),
    ("tools of an app", |len| {
        let tools = members(len / 32, |at| format!("t{at:06}"), |_| json!({"scopes": ["s"]}));
        json!({"apps": {"crm": {"builtin": "crm", "tools": tools}}})
    }),
    ("resources of an app", |len| {
        let rules = members(len / 48, |at| format!("file:///{at}/*"), |_| json!({"scopes": ["s"]}));
        json!({"apps": {"crm": {"builtin": "crm", "resources": rules}}})
    }),
    (
        "arguments",
        |len| json!({"apps": {"a": {"command": "x", "args": items(len / 12, |at| json!(format!("--{at:06}")))}}}),
    ),
    (
        "variables of a command",
        |len| json!({"apps": {"a": {"command": "x", "env": members(len / 16, |at| format!("V{at:06}"), |_| json!("x"))}}}),
    ),
    ("nested lists", |len| (0..len.min(60)).fold(json!(1), |inner, _| json!([inner]))),
    ("scopes", |len| auth("scopes", members(len / 16, |at| format!("s{at:06}"), |_| json!("S")))),
    ("default scopes", |len| auth("defaultScopes", items(len / 12, |at| json!(format!("s{at:06}"))))),
    ("clients", |len| {
        let client =
            |at| json!({"clientId": format!("c{at}"), "redirectUris": [format!("https://c{at}.example/cb")]});
        auth("clients", items(len / 80, client))
    }),
    ("addresses of a client", |len| {
        let uris = items(len / 32, |at| json!(format!("https://c{at}.example/cb")));
        auth("clients", json!([{"clientId": "c", "redirectUris": uris}]))
    }),
    ("users", |len| {
        let user = |at: usize| json!({"username": format!("u{at}"), "passwordHash": "no hash"});
        auth("local", json!({"users": items(len / 64, user)}))
    }),
    ("proxies", |len| {
        auth("trustedProxies", items(len / 16, |at| json!(format!("10.{}.{}.0/24", at / 256, at % 256))))
    }),
    (
        "origins",
        |len| json!({"http": {"allowedOrigins": items(len / 32, |at| json!(format!("https://o{at}.example")))}}),
    ),
    ("hosts", |len| json!({"http": {"allowedHosts": items(len / 24, |at| json!(format!("h{at}.example")))}})),
    ("rate limits", |len| {
        let rule = |at: usize| json!({"tool": format!("a:t{at}"), "limit": 1, "window": "1h"});
        json!({"rateLimits": items(len / 48, rule)})
    }),
    (
        "words to redact",
        |len| json!({"logging": {"redact": items(len / 12, |at| json!(format!("w{at:06}")))}}),
    ),
];

/// A configuration with a text at some place.
type Place = fn(&str) -> Value;

/// Places of one long text.
const PLACES: [(&str, Place); 10] = [
    ("a key", |text| json!({text: 1})),
    ("the id of an app", |text| json!({"apps": {text: {"builtin": "crm"}}})),
    ("a key of an app", |text| json!({"apps": {"a": {text: 1}}})),
    ("an address", |text| json!({"apps": {"a": {"url": format!("https://a.example/{text}")}}})),
    ("the name of a host", |text| json!({"apps": {"a": {"url": format!("https://{text}.example")}}})),
    ("a command", |text| json!({"apps": {"a": {"command": text, "args": [text]}}})),
    ("a wrong value", |text| json!({"apps": text, "http": {"port": text}, "codecall": {"mode": text}})),
    ("a variable", |text| json!({"info": {"name": format!("${{{text}}} ${{NAME:-{text}}}")}})),
    ("an address of a client", |text| {
        auth("clients", json!([{"clientId": text, "redirectUris": [format!("https://c.example/{text}")]}]))
    }),
    ("a scope", |text| auth("scopes", json!({text: text}))),
];

/// The text of a configuration in block style, as people write it.
fn yaml(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(all) if !all.is_empty() => {
            for (key, value) in all {
                let _ = write!(text, "\n{indent}{}:", json!(key));
                yaml(value, depth + 1, text);
            }
        }
        Value::Array(all) if !all.is_empty() => {
            for value in all {
                // What an item holds may be in flow style.
                let _ = write!(text, "\n{indent}- {value}");
            }
        }
        value => drop(write!(text, " {value}")),
    }
}

/// A value of TOML in one line. Its texts are written as those of JSON.
fn inline(value: &Value, text: &mut String) {
    match value {
        Value::Object(all) => {
            text.push('{');
            for (at, (key, value)) in all.iter().enumerate() {
                let _ = write!(text, "{}{} = ", if at > 0 { ", " } else { "" }, json!(key));
                inline(value, text);
            }
            text.push('}');
        }
        Value::Array(all) => {
            text.push('[');
            for value in all {
                inline(value, text);
                text.push(',');
            }
            text.push(']');
        }
        value => drop(write!(text, "{value}")),
    }
}

fn written(value: &Value, format: Format) -> String {
    let mut text = String::new();
    match format {
        Format::Yaml => yaml(value, 0, &mut text),
        Format::Json => text = serde_json::to_string_pretty(value).unwrap_or_default(),
        Format::Toml => {
            for (key, value) in value.as_object().into_iter().flatten() {
                let _ = write!(text, "{} = ", json!(key));
                inline(value, &mut text);
                text.push('\n');
            }
        }
    }
    text
}

/// Reads a text as `check` does, with every finding as it is printed.
fn read(text: &str, format: Format) {
    let environment = HashMap::from([("NAME".to_owned(), "value".to_owned())]);
    let around = Surroundings { environment: &environment, folder: None, is_own: false };
    let (config, findings, _) = Config::parse(text, format, around);
    assert!(config.is_some() || !findings.is_empty());
    let printed: usize = findings.iter().map(|finding| finding.to_string().len()).sum();
    std::hint::black_box(printed);
}

#[test]
fn a_configuration_of_many_keys_values_lists_and_addresses_is_read_in_proportion_to_its_length() {
    for format in [Format::Yaml, Format::Json, Format::Toml] {
        for (what, make) in REPEATED {
            let text = |len: usize| written(&make(len), format);
            work::assert_linear(&format!("{what} in {format:?}"), text, |text| read(text, format));
        }
    }
}

#[test]
fn a_configuration_with_a_long_text_is_read_in_proportion_to_its_length() {
    let own = ["x", "${", "${NAME}", "${A:-", "$", ".", "*", "\n", "#", "../"];
    let pieces: Vec<&str> = work::SHAPES.into_iter().chain(own).collect();
    for format in [Format::Yaml, Format::Json, Format::Toml] {
        for (number, (place, make)) in PLACES.into_iter().enumerate() {
            // Each place with another few of the pieces.
            for piece in pieces.iter().cycle().skip(5 * number + format as usize).step_by(4).take(6) {
                let text = |len: usize| written(&make(&work::repeated(piece, len)), format);
                let what = format!("{place} of {piece:?} in {format:?}");
                work::assert_linear(&what, text, |text| read(text, format));
            }
        }
    }
    // Not written by a program: what the parsers make of the marks themselves.
    for piece in [
        "- ", "? ", "[", "{", "a: ", "a:\n", "- a\n", "&a ", "*a ", "!a ", "\"", "|\n", "[a]\n", "a.",
        "[[a]]\n", "a=1\n",
    ] {
        for format in [Format::Yaml, Format::Json, Format::Toml] {
            let what = format!("{piece:?} as {format:?}");
            work::assert_linear(&what, |len| work::repeated(piece, len), |text| read(text, format));
        }
    }
}
