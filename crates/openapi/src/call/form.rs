//! Fields `name=value` of queries, forms and cookies, in every style (OpenAPI 3.2, style values).

use serde_json::{Map, Value};

use super::{
    bounded::{BoundedText, Full},
    encode::{Escape, PADDED, check_parts, content_text, is_padded, list, pairs, text},
    names::{FieldWriter, NameOf, Written},
};
use crate::{Parameter, Style};

/// Spelling of a field of a query or a form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spelling {
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) allow_reserved: bool,
}

/// Writes the fields of a query parameter. None for null, and for an array or an object without parts.
///
/// # Errors
/// There is no room, or a name of the caller's is taken.
pub(crate) fn query(parameter: &Parameter, value: &Value, out: &mut FieldWriter<'_>) -> Result<(), String> {
    match &parameter.content {
        Some(media_type) if !value.is_null() => {
            let text = content_text(media_type, value);
            plain(&parameter.name, &text, out)
        }
        _ => {
            let Parameter { style, explode, allow_reserved, .. } = *parameter;
            let spelling = Spelling { style, explode, allow_reserved };
            fields(NameOf::Document, &parameter.name, value, spelling, out)
        }
    }
}

/// Writes a field whose value is not spelled by a style.
pub(crate) fn plain(name: &str, value: &str, out: &mut FieldWriter<'_>) -> Result<(), String> {
    let put = |text| move |out: &mut BoundedText| Escape::All.put(text, out);
    out.field(NameOf::Document, put(name), put(value)).map(drop)
}

/// Writes the fields of a value in a query or a form. `name_of` is the source of `name`.
///
/// # Errors
/// There is no room, or a name of the caller's is taken.
pub(crate) fn fields(
    name_of: NameOf,
    name: &str,
    value: &Value,
    spelling: Spelling,
    out: &mut FieldWriter<'_>,
) -> Result<(), String> {
    out.begin(name);
    let escape = if spelling.allow_reserved { Escape::Query } else { Escape::All };
    let delimiter = match spelling.style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::TabDelimited => "%09",
        _ => ",",
    };
    let key = |out: &mut BoundedText| Escape::All.put(name, out);
    let each_by_itself = spelling.explode || spelling.style == Style::DeepObject;
    if !each_by_itself {
        match spelling.style {
            Style::SpaceDelimited => check_parts(value, " ", " ")?,
            Style::PipeDelimited => check_parts(value, "|", "|")?,
            Style::TabDelimited => check_parts(value, "\t", "\t")?,
            _ => check_parts(value, if spelling.allow_reserved { "," } else { "" }, "")?,
        }
    }
    match value {
        Value::Null => {}
        Value::Array(items) if each_by_itself => {
            for item in items.iter().filter(|item| !item.is_null()) {
                out.field(name_of, key, |out| escape.put(&text(item), out))?;
            }
        }
        Value::Object(_) if spelling.style == Style::DeepObject => {
            // The name itself is checked without its brackets.
            let name_of = if name_of == NameOf::Caller { NameOf::Caller } else { NameOf::Both };
            deep(name_of, name, &mut Vec::new(), value, escape, out)?;
        }
        Value::Object(fields) if each_by_itself => each(fields, escape, out, |_| Ok(()))?,
        Value::Array(items) if items.iter().all(Value::is_null) => {}
        Value::Array(items) => {
            out.field(name_of, key, |out| list(items, escape, delimiter, out)).map(drop)?
        }
        Value::Object(fields) if fields.values().all(Value::is_null) => {}
        Value::Object(fields) => {
            out.field(name_of, key, |out| pairs(fields, escape, delimiter, delimiter, out))?;
        }
        scalar => out.field(name_of, key, |out| escape.put(&text(scalar), out)).map(drop)?,
    }
    Ok(())
}

/// Writes each member of an object as a field of its own, under its own name.
fn each(
    fields: &Map<String, Value>,
    escape: Escape,
    out: &mut FieldWriter<'_>,
    check: impl Fn(&Written<'_>) -> Result<(), String>,
) -> Result<(), String> {
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let name = |out: &mut BoundedText| escape.of_key().put(key, out);
        check(&out.field(NameOf::Caller, name, |out| escape.put(&text(value), out))?)?;
    }
    Ok(())
}

/// A level of a value below its name.
#[derive(Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    Item(usize),
}

/// Writes `name[key]=value`, with a bracket for each level of the value.
fn deep<'v>(
    name_of: NameOf,
    name: &str,
    steps: &mut Vec<Step<'v>>,
    value: &'v Value,
    escape: Escape,
    out: &mut FieldWriter<'_>,
) -> Result<(), String> {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (key, value) in fields {
                if key.contains(['[', ']']) {
                    let shown = &key[..key.floor_char_boundary(60)];
                    return Err(format!(
                        "must not have the name `{shown}`: brackets would make it that of another place"
                    ));
                }
                steps.push(Step::Key(key));
                deep(name_of, name, steps, value, escape, out)?;
                steps.pop();
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let is_nested = item.is_object() || item.is_array();
                steps.extend(is_nested.then_some(Step::Item(at)));
                deep(name_of, name, steps, item, escape, out)?;
                steps.truncate(steps.len() - usize::from(is_nested));
            }
        }
        scalar => {
            let whole = |out: &mut BoundedText| {
                Escape::All.put(name, out)?;
                steps.iter().try_for_each(|step| {
                    out.push("%5B")?;
                    match step {
                        Step::Key(key) => Escape::All.put(key, out)?,
                        Step::Item(at) => out.push(&at.to_string())?,
                    }
                    out.push("%5D")
                })
            };
            out.field(name_of, whole, |out| escape.put(&text(scalar), out))?;
        }
    }
    Ok(())
}

/// Writes the fields of a cookie parameter: `name=value` each.
///
/// # Errors
/// The value has a character that no cookie has, there is no room, or a name of the caller's is taken.
pub(crate) fn cookie(parameter: &Parameter, value: &Value, out: &mut FieldWriter<'_>) -> Result<(), String> {
    let escape = if parameter.style == Style::Cookie { Escape::Nothing } else { Escape::All };
    let check = |written: &Written<'_>| match is_cookie(written.name, written.value) {
        true if is_padded(&String::from_utf8_lossy(written.value)) => Err(PADDED.to_owned()),
        true => Ok(()),
        false => Err("has a character that a cookie cannot have".to_owned()),
    };
    out.begin(&parameter.name);
    if !parameter.explode && parameter.content.is_none() && parameter.style == Style::Cookie {
        check_parts(value, ",", ",")?;
    }
    let mut one = |value: &dyn Fn(&mut BoundedText) -> Result<(), Full>| {
        let name = |out: &mut BoundedText| out.push(&parameter.name);
        check(&out.field(NameOf::Document, name, value)?)
    };
    match (&parameter.content, value) {
        (_, Value::Null) => Ok(()),
        (Some(media_type), _) => one(&|out| Escape::All.put(&content_text(media_type, value), out)),
        (None, Value::Array(items)) if parameter.explode => items
            .iter()
            .filter(|item| !item.is_null())
            .try_for_each(|item| one(&|out| escape.put(&text(item), out))),
        (None, Value::Object(fields)) if parameter.explode => each(fields, escape, out, check),
        (None, Value::Array(items)) => one(&|out| list(items, escape, ",", out)),
        (None, Value::Object(fields)) => one(&|out| pairs(fields, escape, ",", ",", out)),
        (None, scalar) => one(&|out| escape.put(&text(scalar), out)),
    }
}

/// Returns `true` if a cookie may have this name and value, so that neither ends it (RFC 6265 §4.1.1, and spaces and commas, which
/// browsers send, too).
pub(crate) fn is_cookie(name: &[u8], value: &[u8]) -> bool {
    let is_name = |byte: u8| byte.is_ascii_graphic() && !b"=;,\"\\ ".contains(&byte);
    !name.is_empty()
        && name.iter().copied().all(is_name)
        && !value.iter().any(|&byte| byte == b';' || byte < 0x20 || byte == 0x7f)
}
