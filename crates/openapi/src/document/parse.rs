//! Texts of documents, JSON or YAML, as values. Length, number of values and depth are bounded before and while they are built.

use serde_json::Value;

use super::{
    DocumentError,
    room::{DocumentRoom, IfTaken},
};

/// Longest text, in bytes. GitHub's document with all its references has 13 MB, and Microsoft Graph's has 35 MB.
pub(super) const LONGEST_TEXT: usize = 48 << 20;
/// Most keys and values of a text.
const MOST_VALUES: usize = 4_000_000;
/// Deepest nesting of YAML, which is that of `serde_json`.
const DEEPEST: usize = 128;
/// Keys and values of a text with aliases for each of its bytes, and those that any text may have.
const VALUES_PER_BYTE: usize = 4;
const LEAST_VALUES: usize = 20_000;
/// Stack for the reader of YAML, which needs much for each level.
const STACK: usize = 32 << 20;

/// Reads `text` as JSON or YAML, in the room that is returned with its value.
///
/// # Errors
/// The text is neither, or larger than the limits, or there is too little memory left.
pub(super) fn parse(text: &str, if_taken: IfTaken) -> Result<(Value, DocumentRoom), DocumentError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LONGEST_TEXT {
        return Err(DocumentError::TooLarge(format!("it has more than {} MiB", LONGEST_TEXT >> 20)));
    }
    if !text.trim_start().starts_with('{') {
        return yaml(text, if_taken);
    }
    let room = DocumentRoom::of_json(text, MOST_VALUES, if_taken)?;
    // A mapping of YAML may begin with a brace, too.
    match serde_json::from_str(text) {
        Ok(value) => Ok((value, room)),
        Err(error) => {
            drop(room);
            yaml(text, if_taken).map_err(|_| DocumentError::Syntax(error.to_string()))
        }
    }
}

fn yaml(text: &str, if_taken: IfTaken) -> Result<(Value, DocumentRoom), DocumentError> {
    // Aliases may make more of a text than it says, in proportion to its length.
    let most = text.len().saturating_mul(VALUES_PER_BYTE).saturating_add(LEAST_VALUES).min(MOST_VALUES);
    let room = DocumentRoom::of_yaml(text, most, if_taken)?;
    let failed = || DocumentError::Syntax("it cannot be read: there is no thread for it".to_owned());
    std::thread::scope(|scope| {
        let reader =
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || read_yaml(text, most));
        let value = reader.map_err(|_| failed())?.join().map_err(|_| failed())??;
        Ok((value, room))
    })
}

fn read_yaml(text: &str, most: usize) -> Result<Value, DocumentError> {
    let options = serde_saphyr::options! {
        // `on`, `no` and `y` are texts in YAML 1.2.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: DEEPEST,
            max_events: most,
            max_nodes: most,
            max_recorded_anchor_events: most,
            max_documents: 1,
        },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| DocumentError::Syntax(error.without_snippet().to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Value, DocumentError> {
        super::parse(text, IfTaken::Refuse).map(|(value, _)| value)
    }

    #[test]
    fn json_and_yaml_are_told_apart_and_keys_of_yaml_are_texts() {
        assert_eq!(parse("{\"a\": 1}").unwrap(), json!({"a": 1}));
        assert_eq!(parse("\u{feff}{\"a\": 1}").unwrap(), json!({"a": 1}));
        assert_eq!(parse("{a: 1}").unwrap(), json!({"a": 1}));
        let yaml =
            "responses:\n  200: {description: ok}\n  default: {description: no}\nenum: [on, off, true]\n";
        let expected = json!({
            "responses": {"200": {"description": "ok"}, "default": {"description": "no"}},
            "enum": ["on", "off", true],
        });
        assert_eq!(parse(yaml).unwrap(), expected);
    }

    #[test]
    fn yaml_may_be_as_deep_as_json() {
        let block: String = (0..120).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
        let json = format!("{}1{}", "{\"a\":".repeat(120), "}".repeat(120));
        let yaml = format!("{block}{}1\n", " ".repeat(120));
        assert_eq!(parse(&yaml).unwrap(), parse(&json).unwrap());
    }

    #[test]
    fn a_bad_or_a_deep_text_is_refused() {
        assert!(matches!(parse("{\"a\": "), Err(DocumentError::Syntax(_))));
        assert!(matches!(parse("a: [1"), Err(DocumentError::Syntax(_))));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(parse(&deep), Err(DocumentError::Syntax(_))));
        let deep = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(parse(&deep), Err(DocumentError::Syntax(_))));
        let aliases = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n\
                       d: &d [*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e]\n\
                       g: &g [*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g]\n";
        assert!(matches!(parse(aliases), Err(DocumentError::Syntax(_))));
    }

    #[test]
    fn aliases_make_no_more_of_a_text_than_its_length_allows() {
        // Each level has twice the values of the one before: 60,000 from some 400 bytes.
        let levels: String =
            (1..16).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1)).collect();
        let bomb = format!("a0: &a0 [x]\n{levels}");
        assert!(matches!(parse(&bomb), Err(DocumentError::Syntax(_))));
        let few = bomb.lines().take(10).collect::<Vec<_>>().join("\n");
        assert!(parse(&few).is_ok());
    }
}
