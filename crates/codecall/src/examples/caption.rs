//! Captions of examples, in the words of the tool's own title or description.

use gatewright_core::ToolEntry;

use super::intent::words;

/// Longest caption, in characters.
const LONGEST: usize = 100;
/// Bytes of a description in which its first sentence is looked for.
const LOOKED_AT: usize = 400;

/// The tool's title, else the first sentence of its description, else its name as words. Without a full stop.
pub(super) fn of(tool: &ToolEntry) -> String {
    let title = tool.tool.title.as_deref();
    let title = title.or_else(|| tool.tool.annotations.as_ref()?.title.as_deref());
    // One word names a thing; a caption says what is done.
    let title = title.map(str::trim).filter(|title| title.contains(' ') && title.chars().count() <= LONGEST);
    title.map(str::to_owned).or_else(|| first_sentence(tool.own_description())).unwrap_or_else(|| name(tool))
}

fn first_sentence(text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(LOOKED_AT)];
    let line = text.lines().map(|line| line.trim_matches(|c: char| c.is_whitespace() || "#*_`".contains(c)));
    let line = line.into_iter().find(|line| line.chars().any(char::is_alphanumeric))?;
    let sentence = line.split(". ").next().unwrap_or(line).trim_end_matches(['.', ':', '!', ' ']);
    let fits = sentence.contains(' ') && sentence.chars().count() <= LONGEST;
    fits.then(|| sentence.to_owned())
}

fn name(tool: &ToolEntry) -> String {
    let words = words(&tool.local_name).join(" ");
    let words: String = words.chars().take(LONGEST).collect();
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(|| "Call the tool".to_owned(), |first| first.to_uppercase().chain(letters).collect())
}
