//! Paths that are examples: `/path/to/file.txt` and `/home/me/x.csv` behind `e.g.`. They name nothing on any machine, and are advice on the input.

/// First two parts of paths that nobody has.
const BEGINNINGS: [(&str, &str); 6] = [
    ("path", "to"),
    ("absolute", "path"),
    ("full", "path"),
    ("your", "path"),
    ("some", "path"),
    ("example", "path"),
];
/// Folders with the folders of users.
const HOMES: [&str; 2] = ["home", "Users"];
/// Users in examples. `user` is none of them: containers have one of this name.
const USERS: [&str; 6] = ["me", "you", "username", "yourname", "your-name", "your_name"];
/// Words in front of an example.
const INTRODUCTIONS: [&str; 5] = ["e.g.", "for example", "for instance", "such as", " like "];
/// Bytes in front of a path in which one of them may stand.
const NEAR: usize = 64;

/// Returns `true` for the path between `start` and `end` of `text` if it is an example by its parts, and introduced as one.
pub(super) fn is_example(text: &str, start: usize, end: usize) -> bool {
    let path = &text[start..end];
    let bytes = path.as_bytes();
    let has_drive = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    let below = if has_drive { &path[2..] } else { path };
    // One word of plain parts: nothing else may stand in it, such as a second path.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | '\\');
    if !below.starts_with(['/', '\\']) || !below.chars().all(is_plain) || below.contains("..") {
        return false;
    }
    let mut parts = below.split(['/', '\\']).filter(|part| !part.is_empty());
    let (Some(first), Some(second)) = (parts.next(), parts.next()) else { return false };
    let is_placeholder =
        BEGINNINGS.contains(&(first, second)) || HOMES.contains(&first) && USERS.contains(&second);
    is_placeholder && is_introduced(&text[..start])
}

/// Returns `true` if the line `before` a path introduces an example.
fn is_introduced(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(NEAR))..];
    let near = near.rsplit('\n').next().unwrap_or_default().to_ascii_lowercase();
    INTRODUCTIONS.iter().any(|introduction| near.contains(introduction))
}
