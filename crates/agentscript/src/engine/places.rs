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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_place_of_the_script_in_a_stack() {
        let stack = "    at f (native)\n    at g (script:3:7)\n    at <anonymous> (script:1:20)\n";
        assert_eq!(location(stack), Some(Location { line: 3, column: 7 }));
        assert_eq!(location("    at <anonymous> (script:1:20)"), Some(Location { line: 1, column: 2 }));
        assert_eq!(location(""), None);
    }
}
