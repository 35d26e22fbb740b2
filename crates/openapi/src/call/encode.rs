//! Spelling of parameters (RFC 6570 and OpenAPI 3.2, style values).
//!
//! Whatever a value holds, it stays in its place: delimiters of the place are escaped in every mode, and a path value that would name
//! another level of the path is refused. Fields of queries and cookies are in `form`; whole URLs are put together in `target`.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::{
    bounded::{BoundedText, Full},
    media::is_json,
};
use crate::{Parameter, Style};

/// All but unreserved characters (RFC 3986 §2.3).
const ALL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The same without reserved characters that mean nothing to a query: `#`, `&`, `=`, `+` and brackets are escaped in any case, and `;`, at
/// which some servers split a query as at `&`.
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
    .remove(b',');
/// The same for paths: `?`, `#` and brackets are escaped in any case.
const PATH_RESERVED: &AsciiSet =
    &QUERY_RESERVED.remove(b'&').remove(b'=').remove(b'+').remove(b';').add(b'?');

/// Characters that are sent as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    All,
    Query,
    Path,
    /// Nothing is escaped: headers and cookies of style `cookie`.
    Nothing,
}

impl Escape {
    pub(crate) fn put(self, text: &str, out: &mut BoundedText) -> Result<(), Full> {
        match self {
            Self::All => out.push_escaped(text, ALL),
            Self::Query => out.push_escaped(text, QUERY_RESERVED),
            Self::Path => out.push_escaped(text, PATH_RESERVED),
            Self::Nothing => out.push(text),
        }
    }

    /// Those of `characters` that are sent as they are.
    fn kept(self, characters: &str) -> String {
        let set = match self {
            Self::All => ALL,
            Self::Query => QUERY_RESERVED,
            Self::Path => PATH_RESERVED,
            Self::Nothing => return characters.to_owned(),
        };
        let is_kept = |c: &char| utf8_percent_encode(c.encode_utf8(&mut [0; 4]), set).to_string().len() == 1;
        characters.chars().filter(is_kept).collect()
    }

    /// The escapes of a key, which is always written in full.
    pub(crate) fn of_key(self) -> Self {
        if self == Self::Nothing { self } else { Self::All }
    }
}

/// A name or a value with every character escaped that is not unreserved.
pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ALL).to_string()
}

/// Writes a text with every character escaped that is not unreserved.
pub(crate) fn put_escaped(text: &str, out: &mut BoundedText) -> Result<(), Full> {
    Escape::All.put(text, out)
}

/// Text of a value that has no parts, or whose parts no style spells: the latter in JSON.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        Value::Null => "".into(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string().into(),
    }
}

/// Text of the value of a parameter with `content`.
pub(crate) fn content_text<'v>(media_type: &str, value: &'v Value) -> Cow<'v, str> {
    match is_json(media_type) {
        true => value.to_string().into(),
        false => text(value),
    }
}

/// Writes the expansion of a path parameter.
///
/// # Errors
/// The value is empty, or would name another level of the path, or there is no room.
pub(crate) fn path(parameter: &Parameter, value: &Value, out: &mut BoundedText) -> Result<(), String> {
    check_path(value)?;
    let escape = if parameter.allow_reserved { Escape::Path } else { Escape::All };
    let start = out.len();
    match &parameter.content {
        Some(media_type) => Escape::All.put(&content_text(media_type, value), out)?,
        None => expand_path(parameter, value, escape, out)?,
    }
    // The point of a label alone would be a segment that is left out.
    let has_text = parameter.style == Style::Matrix || has_text(value);
    match out.len() > start && has_text {
        false => Err("must not be empty: the path would be that of something else".to_owned()),
        true => Ok(()),
    }
}

fn has_text(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => items.iter().any(has_text),
        Value::Object(fields) => fields.iter().any(|(name, value)| !name.is_empty() || has_text(value)),
        Value::Bool(_) | Value::Number(_) => true,
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

/// Refuses a list or an object of which a value or a key has one of the characters that divide it: it would be read as several.
///
/// # Errors
/// There is one.
pub(crate) fn check_parts(value: &Value, in_values: &str, in_keys: &str) -> Result<(), String> {
    let check = |text: &str, dividers: &str| match text.chars().find(|c| dividers.contains(*c)) {
        None => Ok(()),
        Some(divider) => Err(format!(
            "must not have `{}` in a value or a key, which divides them here; give each value by itself",
            divider.escape_debug()
        )),
    };
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check(&text(item), in_values)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .try_for_each(|(key, value)| check(key, in_keys).and_then(|()| check(&text(value), in_values))),
        _ => Ok(()),
    }
}

fn expand_path(
    parameter: &Parameter,
    value: &Value,
    escape: Escape,
    out: &mut BoundedText,
) -> Result<(), String> {
    let (first, separator) = match parameter.style {
        Style::Label => (".", "."),
        Style::Matrix => (";", ";"),
        _ => ("", ","),
    };
    let divider = if parameter.explode { separator } else { "," };
    check_parts(value, &escape.kept(divider), &Escape::All.kept(divider))?;
    let named = |out: &mut BoundedText, write: &dyn Fn(&mut BoundedText) -> Result<(), Full>| {
        if parameter.style != Style::Matrix {
            return write(out);
        }
        Escape::All.put(&parameter.name, out)?;
        let end = out.len();
        out.push("=")?;
        write(out)?;
        if out.len() == end + 1 {
            out.truncate(end);
        }
        Ok(())
    };
    let start = out.len();
    out.push(first)?;
    match value {
        Value::Array(items) if parameter.explode => {
            for (at, item) in items.iter().filter(|item| !item.is_null()).enumerate() {
                out.push(if at == 0 { "" } else { separator })?;
                named(out, &|out| escape.put(&text(item), out))?;
            }
        }
        Value::Object(fields) if parameter.explode => pairs(fields, escape, "=", separator, out)?,
        Value::Array(items) if !items.is_empty() => named(out, &|out| list(items, escape, ",", out))?,
        Value::Object(fields) if !fields.is_empty() => {
            named(out, &|out| pairs(fields, escape, ",", ",", out))?
        }
        Value::Array(_) | Value::Object(_) => {}
        scalar => named(out, &|out| escape.put(&text(scalar), out))?,
    }
    if out.len() == start + first.len() && !has_text(value) {
        out.truncate(start);
    }
    Ok(())
}

/// Why a value with [blanks](is_padded) around it is not sent.
pub(crate) const PADDED: &str = "must not begin or end with a blank, which is no part of a value in a header";

/// Returns `true` for a text with blanks around it, which HTTP takes away.
pub(crate) fn is_padded(text: &str) -> bool {
    text.trim_matches([' ', '\t']).len() < text.len()
}

/// Writes the value of a header. Its characters are checked where the header is made.
///
/// # Errors
/// A part has a comma, which divides the parts, or there is no room.
pub(crate) fn header(parameter: &Parameter, value: &Value, out: &mut BoundedText) -> Result<(), String> {
    let has_padding = match value {
        value if parameter.content.is_some() => {
            parameter.content.as_deref().is_some_and(|kind| is_padded(&content_text(kind, value)))
        }
        Value::Array(items) => items.iter().any(|item| is_padded(&text(item))),
        Value::Object(fields) => fields.iter().any(|(key, value)| is_padded(key) || is_padded(&text(value))),
        scalar => is_padded(&text(scalar)),
    };
    if has_padding {
        return Err(PADDED.to_owned());
    }
    if let Some(media_type) = &parameter.content {
        return Ok(out.push(&content_text(media_type, value))?);
    }
    check_parts(value, ",", if parameter.explode { ",=" } else { "," })?;
    match value {
        Value::Array(items) => list(items, Escape::Nothing, ",", out)?,
        Value::Object(fields) => {
            let equals = if parameter.explode { "=" } else { "," };
            pairs(fields, Escape::Nothing, equals, ",", out)?;
        }
        scalar => out.push(&text(scalar))?,
    }
    Ok(())
}

/// Writes the items that are not null.
pub(crate) fn list(
    items: &[Value],
    escape: Escape,
    delimiter: &str,
    out: &mut BoundedText,
) -> Result<(), Full> {
    let present = items.iter().filter(|item| !item.is_null());
    present.enumerate().try_for_each(|(at, item)| {
        out.push(if at == 0 { "" } else { delimiter })?;
        escape.put(&text(item), out)
    })
}

/// Writes the members that are not null.
pub(crate) fn pairs(
    fields: &Map<String, Value>,
    escape: Escape,
    equals: &str,
    delimiter: &str,
    out: &mut BoundedText,
) -> Result<(), Full> {
    let present = fields.iter().filter(|(_, value)| !value.is_null());
    present.enumerate().try_for_each(|(at, (key, value))| {
        out.push(if at == 0 { "" } else { delimiter })?;
        escape.of_key().put(key, out)?;
        out.push(equals)?;
        escape.put(&text(value), out)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Location,
        call::{
            bounded::Limit,
            form,
            names::{FieldWriter, TakenNames},
        },
    };

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
            first: None,
            members: Box::default(),
        }
    }

    fn written(write: impl FnOnce(&mut BoundedText) -> Result<(), String>) -> Result<String, String> {
        let mut out = BoundedText::new(Limit::URL);
        write(&mut out).map(|()| out.into_text())
    }

    fn path(parameter: &Parameter, value: &Value) -> Result<String, String> {
        written(|out| super::path(parameter, value, out))
    }

    fn query(parameter: &Parameter, value: &Value) -> String {
        let taken = TakenNames::default();
        written(|out| form::query(parameter, value, &mut FieldWriter::new(out, "&", &taken))).unwrap()
    }

    fn in_query(style: Style, explode: bool, value: &Value) -> String {
        query(&parameter(Location::Query, style, explode), value)
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
        let in_header = |explode, value: &Value| {
            let parameter = parameter(Location::Header, Style::Simple, explode);
            written(|out| header(&parameter, value, out)).unwrap()
        };
        assert_eq!(in_header(false, &array), "blue,black,brown");
        assert_eq!(in_header(false, &object), "R,100,G,200,B,150");
        assert_eq!(in_header(true, &object), "R=100,G=200,B=150");
        let in_cookie = |style, explode, value: &Value| {
            let (parameter, taken) = (parameter(Location::Cookie, style, explode), TakenNames::default());
            written(|out| form::cookie(&parameter, value, &mut FieldWriter::new(out, "; ", &taken)))
        };
        assert_eq!(in_cookie(Style::Form, false, &array).unwrap(), "color=blue,black,brown");
        assert_eq!(in_cookie(Style::Form, true, &array).unwrap(), "color=blue; color=black; color=brown");
        assert_eq!(in_cookie(Style::Form, false, &json!("a;b c")).unwrap(), "color=a%3Bb%20c");
        assert_eq!(in_cookie(Style::Cookie, false, &json!("a b,c")).unwrap(), "color=a b,c");
        assert!(in_cookie(Style::Cookie, false, &json!("a; session=mine")).is_err());
        assert!(in_cookie(Style::Cookie, false, &json!("a\r\nX: y")).is_err());
    }

    #[test]
    fn parts_of_a_list_or_an_object_do_not_become_several() {
        let dividers = |value: &Value| {
            let mut refused = String::new();
            let mut try_one = |name: char, written: Result<String, String>| {
                if written.is_err() {
                    refused.push(name);
                }
            };
            let taken = TakenNames::default();
            let form = |style, allow_reserved| {
                let one = Parameter { allow_reserved, ..parameter(Location::Query, style, false) };
                written(|out| form::query(&one, value, &mut FieldWriter::new(out, "&", &taken)))
            };
            let header = |explode| {
                written(|out| header(&parameter(Location::Header, Style::Simple, explode), value, out))
            };
            let cookie = |style| {
                let one = parameter(Location::Cookie, style, false);
                written(|out| form::cookie(&one, value, &mut FieldWriter::new(out, "; ", &taken)))
            };
            let in_path = |style, explode, allow_reserved| {
                path(&Parameter { allow_reserved, ..parameter(Location::Path, style, explode) }, value)
            };
            try_one('f', form(Style::Form, false));
            try_one('F', form(Style::Form, true));
            try_one('s', form(Style::SpaceDelimited, false));
            try_one('p', form(Style::PipeDelimited, false));
            try_one('t', form(Style::TabDelimited, false));
            try_one('d', form(Style::DeepObject, false));
            try_one('h', header(false));
            try_one('H', header(true));
            try_one('c', cookie(Style::Form));
            try_one('C', cookie(Style::Cookie));
            try_one('x', in_path(Style::Simple, true, false));
            try_one('X', in_path(Style::Simple, true, true));
            try_one('l', in_path(Style::Label, true, false));
            try_one('M', in_path(Style::Matrix, true, true));
            refused
        };
        for (value, refused) in [
            (json!(["a", "b,c"]), "FhHCX"),
            (json!(["a b"]), "s"),
            (json!(["a|b"]), "p"),
            (json!(["a\tb"]), "tC"),
            (json!(["a.b"]), "l"),
            (json!(["a;b"]), "CM"),
            (json!({"a": "b,role=admin"}), "FhHCX"),
            (json!({"a,b": "c"}), "hHC"),
            (json!({"a=b": "c"}), "H"),
            (json!({"a][role": "c"}), "d"),
            (json!({"a": {"b]": "c"}}), "d"),
            (json!("a,b c|d"), ""),
            (json!(" a"), "hHC"),
            (json!(["a", "b\t"]), "thHC"),
        ] {
            assert_eq!(dividers(&value), refused, "{value}");
        }
    }

    #[test]
    fn a_member_of_one_object_is_none_of_another() {
        let object = |name: &str, members: &[&str]| Parameter {
            argument: name.into(),
            name: name.into(),
            members: members.iter().map(|member| (*member).into()).collect(),
            ..parameter(Location::Query, Style::Form, true)
        };
        let (free, roles) = (object("filter", &[]), object("opts", &["role", "level"]));
        let all = [&free, &roles];
        let taken = TakenNames::new(["filter", "opts"])
            .with_members(all.map(|object| (&object.name, &*object.members)));
        let both = |filter: Value, opts: Value| {
            written(|out| {
                let mut fields = FieldWriter::new(out, "&", &taken);
                form::query(&free, &filter, &mut fields)?;
                form::query(&roles, &opts, &mut fields)
            })
        };
        assert_eq!(
            both(json!({"a": 1}), json!({"role": "user", "b": 2})).as_deref(),
            Ok("a=1&role=user&b=2")
        );
        for (filter, opts) in [
            (json!({"role": "admin"}), json!({})),
            (json!({"Role": "admin"}), json!({})),
            (json!({"role[]": "admin"}), json!({"level": "low"})),
            (json!({"a": 1}), json!({"a": 2})),
        ] {
            assert!(both(filter.clone(), opts.clone()).is_err(), "{filter} {opts}");
        }
    }

    #[test]
    fn a_label_without_text_is_refused_as_an_empty_value() {
        for (value, explode) in
            [(json!(""), false), (json!([""]), true), (json!(["", ""]), true), (json!([]), true)]
        {
            assert!(path(&parameter(Location::Path, Style::Label, explode), &value).is_err(), "{value}");
        }
        let matrix = parameter(Location::Path, Style::Matrix, true);
        assert_eq!(path(&matrix, &json!([""])).as_deref(), Ok(";color"));
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
        assert_eq!(path(&own, &json!("a/b;v?c#d&e=f%2F")).as_deref(), Ok("a/b;v%3Fc%23d&e=f%252F"));
        assert!(path(&own, &json!("a/../b")).is_err());
        let mut field = parameter(Location::Query, Style::Form, true);
        assert_eq!(query(&field, &json!("a&b=c#d+e")), "color=a%26b%3Dc%23d%2Be");
        field.allow_reserved = true;
        assert_eq!(
            query(&field, &json!("https://a.example/?x=1&b;d#c+%20")),
            "color=https://a.example/?x%3D1%26b%3Bd%23c%2B%2520"
        );
    }

    #[test]
    fn a_parameter_with_content_is_written_in_its_type() {
        let mut filter = parameter(Location::Query, Style::Form, true);
        filter.content = Some("application/json".into());
        assert_eq!(query(&filter, &json!({"a": "b"})), "color=%7B%22a%22%3A%22b%22%7D");
        assert_eq!(query(&filter, &json!("b")), "color=%22b%22");
        filter.content = Some("text/plain".into());
        assert_eq!(query(&filter, &json!("b")), "color=b");
    }
}
