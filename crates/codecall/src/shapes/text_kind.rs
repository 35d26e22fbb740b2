//! Formats of texts that tools answer with: what a script has to parse.

use serde::{Deserialize, Serialize, de::IgnoredAny};

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Json,
    /// A list, tuple or dictionary as Python prints it.
    Python,
    Csv,
}

impl TextKind {
    /// The name that types show.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "JSON text",
            Self::Python => "Python literal",
            Self::Csv => "CSV",
        }
    }

    /// The kind of `text`; `None` for any other text.
    fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let closes = match text.as_bytes().first()? {
            b'{' => "}",
            b'[' => "]",
            b'(' => ")",
            _ => return is_csv(text).then_some(Self::Csv),
        };
        if serde_json::from_str::<IgnoredAny>(text).is_ok() {
            return Some(Self::Json);
        }
        // JSON has no single quotes around names and values, and other names of its constants.
        let is_python = text.ends_with(closes)
            && [": '", "['", "{'", "('", "('", ", '", "None", "True", "False"]
                .iter()
                .any(|mark| text.contains(mark));
        is_python.then_some(Self::Python)
    }
}

/// Returns `true` if the first lines have the same number of commas, and the first one reads like a head of columns.
fn is_csv(text: &str) -> bool {
    const LINES: usize = 4;
    const LONGEST_NAME: usize = 40;
    let mut lines = text.lines().take(LINES);
    let Some(head) = lines.next() else { return false };
    let columns = head.split(',').count();
    let is_name = |name: &str| {
        !name.trim().is_empty() && name.len() <= LONGEST_NAME && !name.contains(['.', ':', '{', '<'])
    };
    let mut rows = lines.peekable();
    columns > 1
        && rows.peek().is_some()
        && head.split(',').all(|name| is_name(name) && !name.starts_with(' '))
        && rows.all(|row| row.split(',').count() == columns)
}

/// Numbers of texts of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TextKinds {
    #[serde(rename = "j", default)]
    json: u32,
    #[serde(rename = "y", default)]
    python: u32,
    #[serde(rename = "c", default)]
    csv: u32,
    #[serde(rename = "o", default)]
    other: u32,
}

impl TextKinds {
    pub(crate) fn count(&mut self, text: &str) {
        let count = match TextKind::of(text) {
            Some(TextKind::Json) => &mut self.json,
            Some(TextKind::Python) => &mut self.python,
            Some(TextKind::Csv) => &mut self.csv,
            // It says nothing of the format of those that have something in them.
            None if text.trim().is_empty() => return,
            None => &mut self.other,
        };
        *count = count.saturating_add(1);
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.json = self.json.saturating_add(other.json);
        self.python = self.python.saturating_add(other.python);
        self.csv = self.csv.saturating_add(other.csv);
        self.other = self.other.saturating_add(other.other);
    }

    /// The kind of all texts, if they are of one.
    pub(crate) fn common(self) -> Option<TextKind> {
        match self {
            Self { json: 1.., python: 0, csv: 0, other: 0 } => Some(TextKind::Json),
            Self { json: 0, python: 1.., csv: 0, other: 0 } => Some(TextKind::Python),
            Self { json: 0, python: 0, csv: 1.., other: 0 } => Some(TextKind::Csv),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_python_literals_and_csv_are_told_from_other_text() {
        for (text, kind) in [
            ("{\"a\": [1, 2]}", Some(TextKind::Json)),
            (" [] ", Some(TextKind::Json)),
            ("[{'name': 'Ada', 'born': 1815}]", Some(TextKind::Python)),
            ("[(1, None), (2, True)]", Some(TextKind::Python)),
            ("name,city\nAda,London\n", Some(TextKind::Csv)),
            ("name,city\nAda", None),
            ("Dear Ada, hello.\nYours, Grace", None),
            ("[main 1a2b] It's done", None),
            ("plain", None),
            ("", None),
        ] {
            assert_eq!(TextKind::of(text), kind, "{text}");
        }
    }

    #[test]
    fn a_kind_is_common_if_no_text_is_of_another() {
        let mut kinds = TextKinds::default();
        assert_eq!(kinds.common(), None);
        kinds.count("[{'a': 1}]");
        kinds.count("  ");
        assert_eq!(kinds.common(), Some(TextKind::Python));
        kinds.count("nothing found");
        assert_eq!(kinds.common(), None);
    }
}
