//! Spelling of parameters (RFC 6570 and OpenAPI 3.2, style values).
//!
//! Whatever a value holds, it stays in its place: delimiters of the place are escaped in every mode, and a path value that would name
//! another level of the path is refused. Whole URLs are put together in `target`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::media::is_json;
use crate::{Parameter, Style};

/// All but unreserved characters (RFC 3986 §2.3).
const ALL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same without reserved characters that mean nothing to a query: `#`, `&`, `=`, `+` and brackets are escaped in any case.
const QUERY_RESERVED: &AsciiSet = &ALL
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');
/// The same for paths: `?`, `#` and brackets are escaped in any case.
const PATH_RESERVED: &AsciiSet = &QUERY_RESERVED.remove(b'&').remove(b'=').remove(b'+').add(b'?');

/// Characters that are sent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    All,
    Query,
    Path,
    /// Nothing is escaped: headers and cookies of style `cookie`.
    Nothing,
}

impl Escape {
    fn apply(self, text: &str) -> String {
        match self {
            Self::All => utf8_percent_encode(text, ALL).to_string(),
            Self::Query => utf8_percent_encode(text, QUERY_RESERVED).to_string(),
            Self::Path => utf8_percent_encode(text, PATH_RESERVED).to_string(),
            Self::Nothing => text.to_owned(),
        }
    }
}

/// A name or a value with every character escaped that is not unreserved.
pub(crate) fn escaped(text: &str) -> String {
    Escape::All.apply(text)
}

/// Text of a value that has no parts, or whose parts no style spells: the latter in JSON.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Text of the value of a parameter with `content`.
fn content_text(media_type: &str, value: &Value) -> String {
    match is_json(media_type) {
        true => value.to_string(),
        false => text(value),
    }
}

/// The expansion of a path parameter.
///
/// # Errors
/// The value is empty, or would name another level of the path.
pub(crate) fn path(parameter: &Parameter, value: &Value) -> Result<String, String> {
    check_path(value)?;
    let escape = if parameter.allow_reserved { Escape::Path } else { Escape::All };
    let expanded = match &parameter.content {
        Some(media_type) => Escape::All.apply(&content_text(media_type, value)),
        None => expand_path(parameter, value, escape),
    };
    match expanded.is_empty() {
        true => Err("must not be empty: the path would be that of something else".to_owned()),
        false => Ok(expanded),
    }
}

/// Refuses `.` and `..` between slashes: servers that decode a path before they split it would go up.
fn check_path(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) if text.split(['/', '\\']).any(|part| matches!(part, "." | "..")) => {
            Err("must not have `.` or `..` as a part of its path".to_owned())
        }
        Value::Array(items) => items.iter().try_for_each(check_path),
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
            check_path(&Value::String(name.clone())).and_then(|()| check_path(value))
        }),
        Value::Null => Err("must not be null: the path would be that of something else".to_owned()),
        Value::String(_) | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn expand_path(parameter: &Parameter, value: &Value, escape: Escape) -> String {
    let name = Escape::All.apply(&parameter.name);
    let (first, separator) = match parameter.style {
        Style::Label => (".", "."),
        Style::Matrix => (";", ";"),
        _ => ("", ","),
    };
    let named = |value: String| match parameter.style {
        Style::Matrix if value.is_empty() => name.clone(),
        Style::Matrix => format!("{name}={value}"),
        _ => value,
    };
    let parts: Vec<String> = match value {
        Value::Array(items) if parameter.explode => texts(items, escape).into_iter().map(named).collect(),
        Value::Object(fields) if parameter.explode => {
            pairs(fields, escape).into_iter().map(|(key, value)| format!("{key}={value}")).collect()
        }
        Value::Array(items) if !items.is_empty() => vec![named(texts(items, escape).join(","))],
        Value::Object(fields) if !fields.is_empty() => vec![named(joined(fields, escape, ","))],
        Value::Array(_) | Value::Object(_) => Vec::new(),
        scalar => vec![named(escape.apply(&text(scalar)))],
    };
    match parts.is_empty() {
        true => String::new(),
        false => format!("{first}{}", parts.join(separator)),
    }
}

/// Spelling of a field of a query or a form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spelling {
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) allow_reserved: bool,
}

/// The fields of a query parameter, escaped. None for null, and for an array or an object without parts.
pub(crate) fn query(parameter: &Parameter, value: &Value) -> Vec<(String, String)> {
    match &parameter.content {
        Some(media_type) if !value.is_null() => {
            vec![(escaped(&parameter.name), escaped(&content_text(media_type, value)))]
        }
        _ => {
            let Parameter { style, explode, allow_reserved, .. } = *parameter;
            fields(&parameter.name, value, Spelling { style, explode, allow_reserved })
        }
    }
}

/// The fields of a value in a query or a form, escaped.
pub(crate) fn fields(name: &str, value: &Value, spelling: Spelling) -> Vec<(String, String)> {
    let escape = if spelling.allow_reserved { Escape::Query } else { Escape::All };
    let key = escaped(name);
    let delimiter = match spelling.style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::TabDelimited => "%09",
        _ => ",",
    };
    let each_by_itself = spelling.explode || spelling.style == Style::DeepObject;
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) if each_by_itself => {
            texts(items, escape).into_iter().map(|item| (key.clone(), item)).collect()
        }
        Value::Object(_) if spelling.style == Style::DeepObject => {
            let mut found = Vec::new();
            deep(key, value, escape, &mut found);
            found
        }
        Value::Object(fields) if each_by_itself => pairs(fields, escape),
        Value::Array(items) if items.iter().all(Value::is_null) => Vec::new(),
        Value::Array(items) => vec![(key, texts(items, escape).join(delimiter))],
        Value::Object(fields) if fields.values().all(Value::is_null) => Vec::new(),
        Value::Object(fields) => vec![(key, joined(fields, escape, delimiter))],
        scalar => vec![(key, escape.apply(&text(scalar)))],
    }
}

/// `name[key]=value`, with a bracket for each level of the value.
fn deep(name: String, value: &Value, escape: Escape, found: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| {
                deep(format!("{name}%5B{}%5D", escaped(key)), value, escape, found);
            });
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| {
            let is_nested = item.is_object() || item.is_array();
            let name = if is_nested { format!("{name}%5B{at}%5D") } else { name.clone() };
            deep(name, item, escape, found);
        }),
        scalar => found.push((name, escape.apply(&text(scalar)))),
    }
}

/// The value of a header. Its characters are checked where the header is made.
pub(crate) fn header(parameter: &Parameter, value: &Value) -> String {
    match (&parameter.content, value) {
        (Some(media_type), _) => content_text(media_type, value),
        (None, Value::Array(items)) => texts(items, Escape::Nothing).join(","),
        (None, Value::Object(fields)) if parameter.explode => {
            let pairs = pairs(fields, Escape::Nothing).into_iter();
            pairs.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
        }
        (None, Value::Object(fields)) => joined(fields, Escape::Nothing, ","),
        (None, scalar) => text(scalar),
    }
}

/// The fields of a cookie parameter: `name=value` each.
///
/// # Errors
/// The value has a character that no cookie has.
pub(crate) fn cookie(parameter: &Parameter, value: &Value) -> Result<Vec<String>, String> {
    let escape = if parameter.style == Style::Cookie { Escape::Nothing } else { Escape::All };
    let found: Vec<(String, String)> = match (&parameter.content, value) {
        (_, Value::Null) => Vec::new(),
        (Some(media_type), _) => {
            vec![(parameter.name.to_string(), escaped(&content_text(media_type, value)))]
        }
        (None, Value::Array(items)) if parameter.explode => {
            texts(items, escape).into_iter().map(|item| (parameter.name.to_string(), item)).collect()
        }
        (None, Value::Object(fields)) if parameter.explode => pairs(fields, escape),
        (None, Value::Array(items)) => {
            vec![(parameter.name.to_string(), texts(items, escape).join(","))]
        }
        (None, Value::Object(fields)) => vec![(parameter.name.to_string(), joined(fields, escape, ","))],
        (None, scalar) => vec![(parameter.name.to_string(), escape.apply(&text(scalar)))],
    };
    found
        .into_iter()
        .map(|(name, value)| match is_cookie(&name, &value) {
            true => Ok(format!("{name}={value}")),
            false => Err("has a character that a cookie cannot have".to_owned()),
        })
        .collect()
}

/// Returns `true` if a cookie may have this name and value, so that neither ends it (RFC 6265 §4.1.1, and spaces and commas, which
/// browsers send, too).
pub(crate) fn is_cookie(name: &str, value: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_graphic() && !b"=;,\"\\ ".contains(&byte);
    !name.is_empty()
        && name.bytes().all(is_name)
        && !value.bytes().any(|byte| byte == b';' || byte < 0x20 || byte == 0x7f)
}

fn texts(items: &[Value], escape: Escape) -> Vec<String> {
    items.iter().filter(|item| !item.is_null()).map(|item| escape.apply(&text(item))).collect()
}

fn pairs(fields: &Map<String, Value>, escape: Escape) -> Vec<(String, String)> {
    let key = |key: &str| if escape == Escape::Nothing { key.to_owned() } else { escaped(key) };
    let present = fields.iter().filter(|(_, value)| !value.is_null());
    present.map(|(name, value)| (key(name), escape.apply(&text(value)))).collect()
}

fn joined(fields: &Map<String, Value>, escape: Escape, delimiter: &str) -> String {
    let pairs = pairs(fields, escape).into_iter();
    pairs.flat_map(|(key, value)| [key, value]).collect::<Vec<_>>().join(delimiter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Location;

    fn parameter(location: Location, style: Style, explode: bool) -> Parameter {
        Parameter {
            argument: "color".into(),
            name: "color".into(),
            location,
            style,
            explode,
            allow_reserved: false,
            required: false,
            content: None,
        }
    }

    fn in_query(style: Style, explode: bool, value: &Value) -> String {
        let fields = query(&parameter(Location::Query, style, explode), value).into_iter();
        fields.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }

    /// The table of OpenAPI 3.2, "Style Examples".
    #[test]
    fn every_style_is_spelled_as_the_specification_shows() {
        let (text, array) = (json!("blue"), json!(["blue", "black", "brown"]));
        let object = json!({"R": 100, "G": 200, "B": 150});
        let in_path = |style, explode, value: &Value| path(&parameter(Location::Path, style, explode), value);
        for (style, explode, value, expected) in [
            (Style::Matrix, false, &text, ";color=blue"),
            (Style::Matrix, false, &array, ";color=blue,black,brown"),
            (Style::Matrix, false, &object, ";color=R,100,G,200,B,150"),
            (Style::Matrix, true, &text, ";color=blue"),
            (Style::Matrix, true, &array, ";color=blue;color=black;color=brown"),
            (Style::Matrix, true, &object, ";R=100;G=200;B=150"),
            (Style::Label, false, &text, ".blue"),
            (Style::Label, false, &array, ".blue,black,brown"),
            (Style::Label, false, &object, ".R,100,G,200,B,150"),
            (Style::Label, true, &text, ".blue"),
            (Style::Label, true, &array, ".blue.black.brown"),
            (Style::Label, true, &object, ".R=100.G=200.B=150"),
            (Style::Simple, false, &text, "blue"),
            (Style::Simple, false, &array, "blue,black,brown"),
            (Style::Simple, false, &object, "R,100,G,200,B,150"),
            (Style::Simple, true, &text, "blue"),
            (Style::Simple, true, &array, "blue,black,brown"),
            (Style::Simple, true, &object, "R=100,G=200,B=150"),
        ] {
            assert_eq!(in_path(style, explode, value).as_deref(), Ok(expected), "{style:?} {explode}");
        }
        for (style, explode, value, expected) in [
            (Style::Form, false, &text, "color=blue"),
            (Style::Form, false, &json!(""), "color="),
            (Style::Form, false, &array, "color=blue,black,brown"),
            (Style::Form, false, &object, "color=R,100,G,200,B,150"),
            (Style::Form, true, &text, "color=blue"),
            (Style::Form, true, &array, "color=blue&color=black&color=brown"),
            (Style::Form, true, &object, "R=100&G=200&B=150"),
            (Style::SpaceDelimited, false, &array, "color=blue%20black%20brown"),
            (Style::SpaceDelimited, false, &object, "color=R%20100%20G%20200%20B%20150"),
            (Style::SpaceDelimited, true, &array, "color=blue&color=black&color=brown"),
            (Style::PipeDelimited, false, &array, "color=blue%7Cblack%7Cbrown"),
            (Style::PipeDelimited, false, &object, "color=R%7C100%7CG%7C200%7CB%7C150"),
            (Style::PipeDelimited, true, &array, "color=blue&color=black&color=brown"),
            (Style::TabDelimited, false, &array, "color=blue%09black%09brown"),
            (Style::DeepObject, true, &object, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
            (Style::DeepObject, false, &object, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
            (
                Style::DeepObject,
                true,
                &json!({"a": {"b": [1, 2, {"c": 3}]}}),
                "color%5Ba%5D%5Bb%5D=1&color%5Ba%5D%5Bb%5D=2&color%5Ba%5D%5Bb%5D%5B2%5D%5Bc%5D=3",
            ),
            (Style::Form, true, &json!([]), ""),
            (Style::Form, false, &json!([]), ""),
            (Style::Form, true, &json!({}), ""),
            (Style::Form, false, &Value::Null, ""),
            (Style::Form, true, &json!([null, 1]), "color=1"),
            (Style::Form, true, &json!([{"a": 1}]), "color=%7B%22a%22%3A1%7D"),
        ] {
            assert_eq!(in_query(style, explode, value), expected, "{style:?} {explode} {value}");
        }
        let in_header =
            |explode, value: &Value| header(&parameter(Location::Header, Style::Simple, explode), value);
        assert_eq!(in_header(false, &array), "blue,black,brown");
        assert_eq!(in_header(false, &object), "R,100,G,200,B,150");
        assert_eq!(in_header(true, &object), "R=100,G=200,B=150");
        let in_cookie = |style, explode, value: &Value| {
            cookie(&parameter(Location::Cookie, style, explode), value).map(|fields| fields.join("; "))
        };
        assert_eq!(in_cookie(Style::Form, false, &array).unwrap(), "color=blue,black,brown");
        assert_eq!(in_cookie(Style::Form, true, &array).unwrap(), "color=blue; color=black; color=brown");
        assert_eq!(in_cookie(Style::Form, false, &json!("a;b c")).unwrap(), "color=a%3Bb%20c");
        assert_eq!(in_cookie(Style::Cookie, false, &json!("a b,c")).unwrap(), "color=a b,c");
        assert!(in_cookie(Style::Cookie, false, &json!("a; session=mine")).is_err());
        assert!(in_cookie(Style::Cookie, false, &json!("a\r\nX: y")).is_err());
    }

    #[test]
    fn values_do_not_leave_their_place() {
        let mut own = parameter(Location::Path, Style::Simple, false);
        for (value, expected) in [
            ("a/b", "a%2Fb"),
            ("a?b#c", "a%3Fb%23c"),
            ("a\r\nb", "a%0D%0Ab"),
            ("a%2e%2e", "a%252e%252e"),
            ("..x", "..x"),
            ("%2e%2e", "%252e%252e"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(path(&own, &json!(value)).as_deref(), Ok(expected));
        }
        for refused in [
            json!(""),
            json!("."),
            json!(".."),
            json!("a/../b"),
            json!("..\\a"),
            json!(null),
            json!([]),
            json!(["..", 1]),
        ] {
            assert!(path(&own, &refused).is_err(), "{refused}");
        }
        own.allow_reserved = true;
        assert_eq!(path(&own, &json!("a/b?c#d&e=f%2F")).as_deref(), Ok("a/b%3Fc%23d&e=f%252F"));
        assert!(path(&own, &json!("a/../b")).is_err());
        let mut field = parameter(Location::Query, Style::Form, true);
        assert_eq!(query(&field, &json!("a&b=c#d+e"))[0].1, "a%26b%3Dc%23d%2Be");
        field.allow_reserved = true;
        assert_eq!(
            query(&field, &json!("https://a.example/?x=1&b#c+%20"))[0].1,
            "https://a.example/?x%3D1%26b%23c%2B%2520"
        );
    }

    #[test]
    fn a_parameter_with_content_is_written_in_its_type() {
        let mut filter = parameter(Location::Query, Style::Form, true);
        filter.content = Some("application/json".into());
        assert_eq!(query(&filter, &json!({"a": "b"})), [("color".into(), "%7B%22a%22%3A%22b%22%7D".into())]);
        assert_eq!(query(&filter, &json!("b")), [("color".into(), "%22b%22".into())]);
        filter.content = Some("text/plain".into());
        assert_eq!(query(&filter, &json!("b")), [("color".into(), "b".into())]);
    }
}
