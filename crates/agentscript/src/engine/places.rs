//! The function that is compiled for a script, and places in it.

use crate::outcome::Location;

/// Name of the script in positions.
pub(super) const NAME: &str = "script";

/// Text before the script on its first line.
const OPEN: &str = "(async function(){";

/// The function that the engine compiles for the text of a script.
pub(crate) fn wrapped(code: &str) -> String {
    format!("{OPEN}{code}\n}})")
}

/// The first place of the script in a stack text such as `    at f (script:3:7)`.
pub(super) fn location(stack: &str) -> Option<Location> {
    let at = stack.find("script:")?;
    let mut numbers = stack[at + "script:".len()..].split(|c: char| !c.is_ascii_digit());
    let line: u32 = numbers.next()?.parse().ok()?;
    let column: u32 = numbers.next()?.parse().ok()?;
    let before = if line == 1 { u32::try_from(OPEN.len()).ok()? } else { 0 };
    Some(Location { line, column: column.saturating_sub(before).max(1) })
}

/// Longest name of a function in a message, in bytes.
const LONGEST: usize = 80;

/// The function whose call is at `at`, as the caller's text names it.
pub(super) fn called(source: &str, at: Location) -> Option<String> {
    let line = source.split(['\n', '\r']).nth(at.line.checked_sub(1)? as usize)?;
    let column = line.char_indices().nth(at.column.checked_sub(1)? as usize)?.0;
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
    let start = line[..column].trim_end_matches(in_name).len();
    let end = line.len() - line[column..].trim_start_matches(in_name).len();
    let arguments = line[end..].trim_start().strip_prefix('(')?;
    // What a call gave may be what is called next.
    let mut depth = 1;
    let close = arguments.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    })?;
    let calls_result = arguments[close + 1..].trim_start().starts_with('(');
    let name = &line[start..end];
    let whole = if name.starts_with('.') { format!("(…){name}") } else { name.to_owned() };
    let is_name = name.chars().any(char::is_alphabetic) && !name.ends_with('.');
    (is_name && !calls_result && whole.len() <= LONGEST).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_as_the_text_has_it_or_not_at_all() {
        let named = |source, line, column| called(source, Location { line, column });
        assert_eq!(named("return o.missing(1)", 1, 10).as_deref(), Some("o.missing"));
        assert_eq!(named("a\nreturn 1 + f (1)", 2, 12).as_deref(), Some("f"));
        assert_eq!(named("[1]\n  .foo()", 2, 4).as_deref(), Some("(…).foo"));
        assert_eq!(named("m.get('a')(1)", 1, 3), None);
        assert_eq!(named("f(o.nope(x))", 1, 10), None);
        assert_eq!(named("5(1)", 1, 1), None);
        assert_eq!(named("é", 9, 9), None);
    }

    #[test]
    fn finds_the_first_place_of_the_script_in_a_stack() {
        let stack = "    at f (native)\n    at g (script:3:7)\n    at <anonymous> (script:1:20)\n";
        assert_eq!(location(stack), Some(Location { line: 3, column: 7 }));
        assert_eq!(location("    at <anonymous> (script:1:20)"), Some(Location { line: 1, column: 2 }));
        assert_eq!(location(""), None);
    }
}
