//! Finding the program to run: an executable, a cargo binary, a script, or a command line.

use std::path::{Path, PathBuf};

/// A program and its first arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
}

impl Program {
    /// Resolves `server`. In this order: a script by its extension (`.js .mjs .cjs .ts .mts .py`), a file, a binary
    /// that cargo built for this workspace, a command line with spaces, a name on `PATH`.
    pub(crate) fn find(server: &str) -> Self {
        let path = Path::new(server);
        if path.is_file() || !server.contains(' ') {
            return Self::single(server, path);
        }
        let mut words = split(server).into_iter();
        let mut program = Self::single_name(&words.next().unwrap_or_default());
        program.args.extend(words);
        program
    }

    fn single_name(name: &str) -> Self {
        Self::single(name, Path::new(name))
    }

    fn single(name: &str, path: &Path) -> Self {
        let script = |program: &str, first: &[&str]| {
            let args = first.iter().map(|arg| (*arg).to_owned()).chain([name.to_owned()]).collect();
            Self { program: program.into(), args }
        };
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("js" | "mjs" | "cjs") => script("node", &[]),
            Some("ts" | "mts") => match beside(path, "node_modules/.bin/tsx") {
                Some(tsx) => Self { program: tsx, args: vec![name.to_owned()] },
                None => script("npx", &["tsx"]),
            },
            Some("py") => match beside(path, ".venv/bin/python") {
                Some(python) => Self { program: python, args: vec![name.to_owned()] },
                None => script("python3", &[]),
            },
            _ => {
                let found = path.is_file().then(|| path.to_owned()).or_else(|| cargo_binary(name));
                Self { program: found.unwrap_or_else(|| path.to_owned()), args: Vec::new() }
            }
        }
    }
}

/// Problem and advice, if `server` is a script that does not exist in the working directory `dir`.
pub(crate) fn missing_script(server: &str, dir: Option<&Path>) -> Option<(String, String)> {
    let path = Path::new(server);
    let ending = path.extension().and_then(|ending| ending.to_str())?;
    let script = ["js", "mjs", "cjs", "ts", "mts", "py"].contains(&ending);
    if !script || server.contains(char::is_whitespace) {
        return None;
    }
    let file = std::path::absolute(dir.unwrap_or(Path::new(".")).join(path)).ok()?;
    if file.is_file() {
        return None;
    }
    let (beside, name) = (file.parent()?, file.file_name()?.to_str()?);
    let names: Vec<String> = std::fs::read_dir(beside)
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    let near = gatewright_findings::nearest(name, names.iter().map(String::as_str));
    let advice = match near {
        Some(near) => format!("did you mean `{near}`, in the same directory?"),
        None => {
            "give its path from the directory where the test runs (in a suite: from the suite's own)".into()
        }
    };
    Some((format!("there is no file {}", file.display()), advice))
}

/// The file `name` in the directory of `path` or one of its parents.
fn beside(path: &Path, name: &str) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().skip(1).map(|above| above.join(name)).find(|candidate| candidate.is_file())
}

/// A binary of this workspace, searched in the directory of the running test or above it: `target/<profile>/<name>`.
fn cargo_binary(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return None;
    }
    let test = std::env::current_exe().ok()?;
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let places = test.ancestors().skip(1).take(3);
    places.flat_map(|dir| [dir.join(&file), dir.join("examples").join(&file)]).find(|path| path.is_file())
}

/// Splits a command line into words. `'…'` and `"…"` quote words with spaces; there is no other shell syntax.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(end)) if c == end => quote = None,
            (c, Some(_)) => word.push(c),
            ('\'' | '"', None) => (quote, open) = (Some(c), true),
            (c, None) if c.is_whitespace() => {
                if open || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (c, None) => word.push(c),
        }
    }
    if open || !word.is_empty() {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_scripts_by_their_extension() {
        let node = Program::find("server.mjs");
        assert_eq!((node.program, node.args), ("node".into(), vec!["server.mjs".to_owned()]));
        assert_eq!(Program::find("a/b.py").args, ["a/b.py"]);
        assert_eq!(Program::find("x.ts").args, ["tsx", "x.ts"]);
    }

    #[test]
    fn splits_a_command_line_at_spaces_outside_quotes() {
        let program = Program::find("uvx 'my server' --name \"a b\" -x");
        assert_eq!(program.program, PathBuf::from("uvx"));
        assert_eq!(program.args, ["my server", "--name", "a b", "-x"]);
    }
}
