//! Files of variables, as `envFile` of a client's server names them: lines `NAME=value`.

use std::path::Path;

use gatewright_core::read_file;

/// Longest file, in bytes.
const LONGEST: u64 = 1 << 20;

/// The variables in a file, in its order.
///
/// # Errors
/// The file cannot be read, or a line is none of `NAME=value`, a comment and nothing. Messages contain no value.
pub fn read(path: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |why: String| format!("the file {} of `envFile` cannot be used: {why}", path.display());
    let bytes = read_file(path, LONGEST).map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    let mut variables = Vec::new();
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let pair = line.split_once('=').map(|(name, rest)| (name.trim(), rest.trim()));
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let Some((name, rest)) = pair.filter(|(name, _)| is_name(name)) else {
            return Err(failed(format!("line {} is not `NAME=value`", at + 1)));
        };
        variables.push((name.to_owned(), value(rest)));
    }
    Ok(variables)
}

/// A value: in single quotes as it is, in double quotes with `\n` and the like, else up to a comment.
fn value(text: &str) -> String {
    if let Some((inside, _)) = text.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
        return inside.to_owned();
    }
    let Some(rest) = text.strip_prefix('"') else {
        return text.split_once(" #").map_or(text, |(value, _)| value).trim_end().to_owned();
    };
    let (mut out, mut chars) = (String::new(), rest.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => return out,
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    // Without its closing quote, the first one is part of the value.
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<(String, String)>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path())
    }

    #[test]
    fn names_quotes_and_comments_are_read_as_shells_write_them() {
        let text = "# c\n\nA=1\nexport B = two words # c\r\nC='a # \\n'\nD=\"x\\ny \\\" z\" # c\nE=\nF=\"open\nG=a#b\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # \\n"),
            ("D", "x\ny \" z"),
            ("E", ""),
            ("F", "\"open"),
            ("G", "a#b"),
        ];
        assert_eq!(
            read_text(text).unwrap(),
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn a_line_that_is_no_variable_is_named_without_its_text() {
        let problem = read_text("A=1\nhush hush\n").unwrap_err();
        assert!(problem.contains("line 2") && !problem.contains("hush"), "{problem}");
    }
}
