//! Adds a member to an object of a JSON file, and takes it out, without touching any other byte: comments, order and layout stay.

use std::ops::Range;

use gatewright_upstream::strict_json;
use serde::Serialize as _;
use serde_json::{Map, Value};

/// The text with `name` in the object `section` of the file. What was under the name before is replaced.
///
/// # Errors
/// The text is no JSON object, or `section` is none in it.
pub fn insert(text: &str, section: &str, name: &str, value: &Value) -> Result<String, String> {
    let mut wanted = parse(text)?;
    let slot = wanted.entry(section).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(servers) = slot else { return Err(no_object(section)) };
    let is_there = servers.insert(name.to_owned(), value.clone()).is_some();
    let mut text = text.to_owned();
    if is_there {
        text = take_out(&text, section, name)?;
    }
    let file = File::of(&text);
    let edited = match file.root() {
        None => {
            let whole = Value::Object(Map::from_iter([(
                section.to_owned(),
                Value::Object(Map::from_iter([(name.to_owned(), value.clone())])),
            )]));
            let before = if text.is_empty() || text.ends_with('\n') { "" } else { file.line_break() };
            format!("{text}{before}{}{}", file.pretty(&whole, ""), file.line_break())
        }
        Some(root) => match root.member(section) {
            Some(member) => file.with_member(&file.object(member.value.start), name, value),
            None => {
                let servers = Value::Object(Map::from_iter([(name.to_owned(), value.clone())]));
                file.with_member(&root, section, &servers)
            }
        },
    };
    checked(edited, &wanted)
}

/// The text without `name` in the object `section`; `None` if it is not there.
///
/// # Errors
/// The text is no JSON object.
pub fn remove(text: &str, section: &str, name: &str) -> Result<Option<String>, String> {
    let mut wanted = parse(text)?;
    let found =
        wanted.get_mut(section).and_then(Value::as_object_mut).and_then(|servers| servers.shift_remove(name));
    if found.is_none() {
        return Ok(None);
    }
    checked(take_out(text, section, name)?, &wanted).map(Some)
}

/// The object that the text is; nothing but comments counts as an empty one.
pub fn parse(text: &str) -> Result<Map<String, Value>, String> {
    let strict = strict_json(text);
    if strict.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(&strict) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is not a JSON object".to_owned()),
        // Without the text around the place, which may contain secrets.
        Err(error) => Err(format!("it is not JSON: line {}, column {}", error.line(), error.column())),
    }
}

fn no_object(section: &str) -> String {
    format!("`{section}` is there, and is no object")
}

fn checked(edited: String, wanted: &Map<String, Value>) -> Result<String, String> {
    match parse(&edited) {
        Ok(found) if found == *wanted => Ok(edited),
        _ => Err("it is written in a way that cannot be changed without touching the rest of it".to_owned()),
    }
}

fn take_out(text: &str, section: &str, name: &str) -> Result<String, String> {
    let file = File::of(text);
    let root = file.root().ok_or_else(|| no_object(section))?;
    let servers = root.member(section).map(|member| file.object(member.value.start));
    let servers = servers.ok_or_else(|| no_object(section))?;
    let at =
        servers.members.iter().rposition(|member| member.key == name).ok_or_else(|| no_object(section))?;
    Ok(file.without_member(&servers, at))
}

/// An object in the text.
struct Object {
    /// Place of its braces.
    open: usize,
    close: usize,
    members: Vec<Member>,
}

struct Member {
    key: String,
    /// Place of the key's quote.
    start: usize,
    value: Range<usize>,
}

impl Object {
    fn member(&self, key: &str) -> Option<&Member> {
        self.members.iter().rev().find(|member| member.key == key)
    }
}

/// A text that parses, and the same without comments and trailing commas, at the same places.
struct File<'t> {
    text: &'t str,
    strict: String,
}

impl<'t> File<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, strict: strict_json(text) }
    }

    fn root(&self) -> Option<Object> {
        self.strict.find('{').map(|at| self.object(at))
    }

    /// The object whose brace is at `open`.
    fn object(&self, open: usize) -> Object {
        let bytes = self.strict.as_bytes();
        let (mut members, mut at) = (Vec::new(), open + 1);
        loop {
            at = self.past_spaces(at);
            match bytes.get(at) {
                Some(b',') => at += 1,
                Some(b'"') => {
                    let end = past_value(bytes, at);
                    let key = serde_json::from_str(&self.strict[at..end]).unwrap_or_default();
                    let colon = self.past_spaces(end);
                    let value = self.past_spaces(colon + 1);
                    members.push(Member { key, start: at, value: value..past_value(bytes, value) });
                    at = past_value(bytes, value);
                }
                _ => return Object { open, close: at.min(self.text.len()), members },
            }
        }
    }

    fn past_spaces(&self, from: usize) -> usize {
        let rest = self.strict.get(from..).unwrap_or_default();
        from + (rest.len() - rest.trim_start().len())
    }

    fn line_break(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The spaces at the beginning of the line of a place.
    fn indent(&self, at: usize) -> &'t str {
        let line = &self.text[self.line_start(at)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |found| found + 1)
    }

    /// One step of indentation: that of the first member of the file.
    fn step(&self) -> &'t str {
        let first = self.root().and_then(|root| root.members.first().map(|member| member.start));
        match first.map(|at| self.indent(at)) {
            Some(step) if !step.is_empty() => step,
            _ => "  ",
        }
    }

    fn pretty(&self, value: &Value, indent: &str) -> String {
        let mut out = Vec::new();
        let step = self.step().as_bytes();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(step);
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        // A value is always written to memory.
        let _ = value.serialize(&mut serializer);
        String::from_utf8_lossy(&out).replace('\n', &format!("{}{indent}", self.line_break()))
    }

    /// The place after the comma that follows `from`, with only spaces and comments between.
    fn past_comma(&self, from: usize) -> Option<usize> {
        let at = self.past_comments(from, true);
        self.text[at..].starts_with(',').then_some(at + 1)
    }

    /// The place after spaces and comments; on the same line unless `over_lines`.
    fn past_comments(&self, from: usize, over_lines: bool) -> usize {
        let mut at = from;
        loop {
            let rest = &self.text[at..];
            let spaces = match over_lines {
                true => rest.len() - rest.trim_start().len(),
                false => rest.len() - rest.trim_start_matches([' ', '\t']).len(),
            };
            let rest = &rest[spaces..];
            let comment = if rest.starts_with("//") {
                rest.find(['\r', '\n']).unwrap_or(rest.len())
            } else if let Some(inside) = rest.strip_prefix("/*") {
                let length = inside.find("*/").map_or(rest.len(), |end| end + 4);
                if !over_lines && rest[..length].contains('\n') { 0 } else { length }
            } else {
                0
            };
            at += spaces + comment;
            if comment == 0 {
                return at;
            }
        }
    }

    /// The end of the line if only spaces and comments follow on it, else the place itself.
    fn end_of_line_after(&self, at: usize) -> usize {
        let end = self.past_comments(at, false);
        if self.text[end..].is_empty() || self.text[end..].starts_with(['\r', '\n']) { end } else { at }
    }

    /// The text with one more member at the end of the object.
    fn with_member(&self, object: &Object, key: &str, value: &Value) -> String {
        let (text, line_break) = (self.text, self.line_break());
        let inside = &text[object.open + 1..object.close];
        let key = Value::from(key);
        let Some(last) = object.members.last() else {
            let outer = self.indent(object.open);
            let indent = format!("{outer}{}", self.step());
            let member = format!("{line_break}{indent}{key}: {}", self.pretty(value, &indent));
            if inside.contains('\n') {
                let at = object.open + 1 + inside.trim_end().len();
                return format!("{}{member}{}", &text[..at], &text[at..]);
            }
            return format!("{}{member}{line_break}{outer}{}", &text[..object.close], &text[object.close..]);
        };
        let trailing = self.past_comma(last.value.end);
        let (end, comma, closing) = match trailing {
            Some(after) => (after, "", ","),
            None => (last.value.end, ",", ""),
        };
        if !inside.contains('\n') {
            return format!("{}{comma} {key}: {value}{closing}{}", &text[..end], &text[end..]);
        }
        let at = self.end_of_line_after(end);
        let first_on_line = text[self.line_start(last.start)..last.start].trim().is_empty();
        let indent = match first_on_line {
            true => self.indent(last.start).to_owned(),
            false => format!("{}{}", self.indent(object.open), self.step()),
        };
        let value = self.pretty(value, &indent);
        format!(
            "{}{comma}{}{line_break}{indent}{key}: {value}{closing}{}",
            &text[..end],
            &text[end..at],
            &text[at..]
        )
    }

    /// The text without a member, its comma, and the lines that would be empty.
    fn without_member(&self, object: &Object, at: usize) -> String {
        let text = self.text;
        let member = &object.members[at];
        let comma = self.past_comma(member.value.end);
        let (mut start, mut end) = (member.start, comma.unwrap_or(member.value.end));
        let begins_line = text[self.line_start(start)..start].trim().is_empty();
        let ends_line = text[end..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
        // Of the last member without a comma after it, the comma before it goes.
        let before = at.checked_sub(1).filter(|_| comma.is_none()).map(|one| &object.members[one]);
        let comma_before = before.and_then(|one| self.past_comma(one.value.end)).map(|after| after - 1);
        if begins_line && ends_line {
            start = self.line_start(start);
            end += text[end..].find('\n').map_or(0, |length| length + 1);
        } else if let Some(comma_before) = comma_before {
            start = comma_before + 1;
        } else {
            end += text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
        }
        let kept = match comma_before {
            Some(comma) => format!("{}{}", &text[..comma], &text[comma + 1..start]),
            None => text[..start].to_owned(),
        };
        let is_empty = object.members.len() == 1
            && text[object.open + 1..start].trim().is_empty()
            && text[end..object.close].trim().is_empty();
        if is_empty {
            return format!("{}{}", &text[..=object.open], &text[object.close..]);
        }
        kept + &text[end..]
    }
}

/// The place after the value that begins at `at`, in text that parses.
fn past_value(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut at) = (0_usize, at);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                if depth == 0 {
                    return at + 1;
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return if depth == 0 { at } else { at + 1 },
            b'}' | b']' => depth -= 1,
            byte if depth == 0 && (*byte == b',' || byte.is_ascii_whitespace()) => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(text: &str) -> String {
        insert(text, "mcpServers", "gw", &json!({"url": "u"}))
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_member_is_added_in_the_layout_of_the_file() {
        for (before, after) in [
            ("", "{\n  \"mcpServers\": {\n    \"gw\": {\n      \"url\": \"u\"\n    }\n  }\n}\n"),
            (
                "// mine",
                "// mine\n{\n  \"mcpServers\": {\n    \"gw\": {\n      \"url\": \"u\"\n    }\n  }\n}\n",
            ),
            ("{}", "{\n  \"mcpServers\": {\n    \"gw\": {\n      \"url\": \"u\"\n    }\n  }\n}"),
            (
                "{\r\n\t\"a\": 1, // one\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {} // last\r\n\t}\r\n}\r\n",
                "{\r\n\t\"a\": 1, // one\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {}, // last\r\n\t\t\"gw\": {\r\n\t\t\t\"url\": \"u\"\r\n\t\t}\r\n\t}\r\n}\r\n",
            ),
            (
                "{\n    \"mcpServers\": {\n        \"x\": [1],\n    },\n}",
                "{\n    \"mcpServers\": {\n        \"x\": [1],\n        \"gw\": {\n            \"url\": \"u\"\n        },\n    },\n}",
            ),
            (
                "{\"a\":{\"mcpServers\":{}},\"mcpServers\":{\"x\":{}}}",
                "{\"a\":{\"mcpServers\":{}},\"mcpServers\":{\"x\":{}, \"gw\": {\"url\":\"u\"}}}",
            ),
            (
                "{\n  \"mcpServers\": {\n    // none yet\n  }\n}",
                "{\n  \"mcpServers\": {\n    // none yet\n    \"gw\": {\n      \"url\": \"u\"\n    }\n  }\n}",
            ),
        ] {
            assert_eq!(added(before), after, "{before}");
        }
    }

    #[test]
    fn whatever_was_added_after_other_members_is_taken_out_again_byte_for_byte() {
        for text in [
            "{\n  \"mcpServers\": {\n    \"x\": {\"a\": \"}\\\"\"} // last\n  }\n}\n",
            "{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {},\r\n\t\t\"y\": 1\r\n\t}, \"z\": [ 1 ,2 ]\r\n}",
            "{\n    \"mcpServers\": {\n        \"x\": [1], /* a, b */\n    },\n}",
            "{\"mcpServers\":{\"x\":{}}}",
            "{ \"mcpServers\": { \"x\": {}, }, }",
            "{\n\"mcpServers\": {},\n\"b\": null}",
        ] {
            let after = added(text);
            assert_ne!(after, text);
            assert_eq!(remove(&after, "mcpServers", "gw").unwrap().as_deref(), Some(text), "{after}");
        }
    }

    #[test]
    fn members_before_and_between_others_are_taken_out_with_their_comma() {
        let text = "{\n  \"mcpServers\": {\n    \"gw\": 1,\n    // of b\n    \"b\": 2\n  }\n}";
        assert_eq!(
            remove(text, "mcpServers", "gw").unwrap().unwrap(),
            "{\n  \"mcpServers\": {\n    // of b\n    \"b\": 2\n  }\n}"
        );
        let text = "{\"mcpServers\": {\"a\": 1, \"gw\": 2, \"b\": 3}}";
        assert_eq!(
            remove(text, "mcpServers", "gw").unwrap().unwrap(),
            "{\"mcpServers\": {\"a\": 1, \"b\": 3}}"
        );
        assert_eq!(remove(text, "mcpServers", "none").unwrap(), None);
        assert_eq!(remove("", "mcpServers", "gw").unwrap(), None);
    }

    #[test]
    fn a_member_of_the_same_name_is_replaced() {
        let text = "{\n  \"mcpServers\": {\n    \"gw\": {\"old\": 1},\n    \"b\": 2\n  }\n}";
        assert_eq!(
            added(text),
            "{\n  \"mcpServers\": {\n    \"b\": 2,\n    \"gw\": {\n      \"url\": \"u\"\n    }\n  }\n}"
        );
    }

    #[test]
    fn text_that_cannot_be_edited_is_refused_without_being_shown() {
        for text in [
            "{\"token\": \"hush\"",
            "[\"hush\"]",
            "{\"mcpServers\": [\"hush\"]}",
            "{\"mcpServers\": null}",
            "hush",
        ] {
            let problem = insert(text, "mcpServers", "gw", &json!({})).unwrap_err();
            assert!(!problem.contains("hush"), "{problem}");
        }
        let twice = "{\"mcpServers\": {\"gw\": 1, \"gw\": 2}}";
        assert!(remove(twice, "mcpServers", "gw").is_err());
    }
}
