//! `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:PATH}` and `${command:LINE}` in the strings of a configuration.

use std::{
    collections::{HashMap, HashSet},
    io::ErrorKind,
    path::Path,
};

use gatewright_core::read_file;
use gatewright_findings::{Finding, escape};
use serde_json::Value;

use super::secret_command;

/// Shortest value that is hidden as a secret, in bytes: a shorter one is part of too many words.
const SECRET: usize = 6;

/// Longest value of `${file:PATH}`, in bytes.
const LONGEST_FILE: u64 = 64 << 10;

/// Longest name in a message, in characters.
const LONGEST_NAME: usize = 200;

/// Sources of values for the strings of a configuration.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Variables.
    pub environment: &'a HashMap<String, String>,
    /// Folder of the file, for relative paths. Without it, `${file:PATH}` and `${command:LINE}` are refused.
    pub folder: Option<&'a Path>,
    /// Allows `${file:PATH}` and `${command:LINE}`: in the configuration of the gateway, and not in the files of clients. Those may come
    /// with a project of somebody else, and no client reads files or runs commands for them.
    pub is_own: bool,
}

/// A value in which something was filled in.
pub(super) struct Filled {
    pub(super) pointer: String,
    /// The variables, files and commands that it names.
    names: Vec<String>,
}

/// Fills values in, and remembers them so that they can be hidden.
pub(super) struct Filler<'a> {
    around: Surroundings<'a>,
    /// Values that were filled in, by name.
    used: HashMap<String, String>,
    /// Output of commands that ran, by command line.
    ran: HashMap<String, Result<String, String>>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(around: Surroundings<'a>) -> Self {
        Self { around, used: HashMap::new(), ran: HashMap::new() }
    }

    /// Fills in values everywhere below `pointer`, and reports those that there are not. `$${` stands for a literal `${`.
    pub(super) fn apply(&mut self, pointer: &str, value: &mut Value) -> (Vec<Filled>, Vec<Finding>) {
        let (mut filled, mut findings) = (Vec::new(), Vec::new());
        self.walk(value, &mut pointer.to_owned(), &mut filled, &mut findings);
        (filled, findings)
    }

    /// Replaces the values that were filled in by their names, so that a secret in the wrong field is not shown.
    pub(super) fn hide(&self, findings: &mut [Finding]) {
        let mut secrets: Vec<_> = self.used.iter().filter(|(_, value)| value.len() >= SECRET).collect();
        // Longest first: one value may be part of another.
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        for finding in findings {
            for (name, value) in &secrets {
                for shown in [value.as_str(), value.escape_debug().to_string().as_str()] {
                    finding.problem = finding.problem.replace(shown, &format!("${{{name}}}"));
                }
            }
        }
    }

    /// `pointer` is the place of `value`, and unchanged on return.
    fn walk(
        &mut self,
        value: &mut Value,
        pointer: &mut String,
        filled: &mut Vec<Filled>,
        findings: &mut Vec<Finding>,
    ) {
        let mut below = |part: &str, value: &mut Value| {
            let length = pointer.len();
            pointer.push('/');
            pointer.push_str(part);
            self.walk(value, pointer, filled, findings);
            pointer.truncate(length);
        };
        match value {
            Value::String(text) if text.contains("${") => match self.expand(text) {
                Ok((expanded, names)) => {
                    *text = expanded;
                    filled.push(Filled { pointer: pointer.clone(), names });
                }
                Err(problem) => findings.push(Finding::new(pointer, problem)),
            },
            Value::Array(items) => {
                items.iter_mut().enumerate().for_each(|(index, item)| below(&index.to_string(), item));
            }
            Value::Object(fields) => fields.iter_mut().for_each(|(key, field)| below(&escape(key), field)),
            _ => {}
        }
    }

    /// The text with its values filled in, and their names.
    pub(super) fn expand(&mut self, text: &str) -> Result<(String, Vec<String>), String> {
        let (mut out, mut names, mut rest) = (String::new(), Vec::new(), text);
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                out.push_str(&rest[..at]);
                out.push('{');
                rest = &rest[at + 2..];
                continue;
            }
            out.push_str(&rest[..at]);
            let end = rest[at..].find('}').ok_or("`${` without its `}`; write `$${` for a literal one")? + at;
            let inside = &rest[at + 2..end];
            let (name, value) = self.value_of(inside)?;
            if let Some(value) = value.found {
                out.push_str(&value);
                self.used.insert(name.clone(), value);
            } else {
                out.push_str(value.default);
            }
            names.push(name);
            rest = &rest[end + 1..];
        }
        out.push_str(rest);
        Ok((out, names))
    }

    /// The value of the text between `${` and `}`, and its name for messages.
    fn value_of<'t>(&mut self, inside: &'t str) -> Result<(String, Given<'t>), String> {
        // `${file:-x}` is a variable called `file` with a default.
        let kind = |kind: &str| inside.strip_prefix(kind).filter(|rest| !rest.starts_with('-'));
        if let Some(line) = kind("command:") {
            let found = Some(self.output(line)?);
            return Ok(("command:…".to_owned(), Given { found, default: "" }));
        }
        if let Some(id) = kind("input:") {
            return Err(no_input(id, self.around.is_own));
        }
        let (named, default) = match inside.split_once(":-") {
            Some((named, default)) => (named, Some(default)),
            None => (inside, None),
        };
        if let Some(path) = kind("file:").and(named.strip_prefix("file:")) {
            let found = self.file(path, default.is_some())?;
            return Ok((
                format!("file:{}", shown(path)),
                Given { found, default: default.unwrap_or_default() },
            ));
        }
        let name = named.strip_prefix("env:").unwrap_or(named);
        let found = self.around.environment.get(name).filter(|value| !value.is_empty() || default.is_none());
        match (found, default) {
            (None, None) => Err(no_variable(name, self.around.is_own)),
            (found, default) => {
                Ok((shown(name), Given { found: found.cloned(), default: default.unwrap_or_default() }))
            }
        }
    }

    /// The content of a file, without the line break at its end. `None` if it does not exist and `may_miss`.
    fn file(&self, path: &str, may_miss: bool) -> Result<Option<String>, String> {
        let folder = self.own_folder("`${file:…}` is read")?;
        let full = match (path.strip_prefix("~/"), self.around.environment.get("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => folder.join(path),
        };
        let failed = |why: String| format!("the file {} of `${{file:…}}` cannot be used: {why}", shown(path));
        let bytes = match read_file(&full, LONGEST_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound && may_miss => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8".to_owned()))?;
        match without_line_break(&text) {
            "" => Err(failed("it is empty".to_owned())),
            text => Ok(Some(text.to_owned())),
        }
    }

    /// Folder of the gateway's own configuration.
    fn own_folder(&self, form: &str) -> Result<&'a Path, String> {
        self.around.folder.filter(|_| self.around.is_own).ok_or_else(|| {
            format!("{form} only in the configuration of the gateway; write `${{NAME}}` and set the variable")
        })
    }

    /// Standard output of a command line, which runs once for all places that name it.
    fn output(&mut self, line: &str) -> Result<String, String> {
        let folder = self.own_folder("`${command:…}` runs")?;
        let ran = self.ran.entry(line.to_owned()).or_insert_with(|| secret_command::run(line, folder));
        ran.as_ref().map(|text| without_line_break(text).to_owned()).map_err(Clone::clone)
    }
}

/// A value, or a default where there is none.
struct Given<'t> {
    found: Option<String>,
    default: &'t str,
}

/// A name as messages show it.
fn shown(name: &str) -> String {
    gatewright_findings::printable(name, LONGEST_NAME)
}

fn without_line_break(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn no_input(id: &str, is_own: bool) -> String {
    let name: String =
        id.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let (id, name) = (shown(id), shown(&name));
    let or = if is_own { ", or `${file:PATH}` and put the value into a file" } else { "" };
    format!(
        "`${{input:{id}}}` asks the person at an editor, and a gateway has nobody to ask; write `${{{name}}}` and set that environment \
         variable{or}"
    )
}

fn no_variable(name: &str, is_own: bool) -> String {
    let name = shown(name);
    if name.contains(':') {
        let own = if is_own { ", ${file:PATH}, ${command:LINE}" } else { "" };
        return format!(
            "`${{{name}}}` is unknown; known are ${{NAME}}, ${{NAME:-default}}, ${{env:NAME}}{own}"
        );
    }
    format!("environment variable {name} is not set; set it, or give a default as ${{{name}:-…}}")
}

/// Places of strings that name variables which are not set, and these variables.
pub fn missing_variables(value: &Value, environment: &HashMap<String, String>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    each_string(value, &mut String::new(), &mut |pointer, text| {
        for inside in
            text.split("${").skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside)
        {
            let name = inside.strip_prefix("env:").unwrap_or(inside);
            if !name.contains(':') && !environment.contains_key(name) {
                found.push((pointer.to_owned(), name.to_owned()));
            }
        }
    });
    found
}

fn each_string(value: &Value, pointer: &mut String, see: &mut impl FnMut(&str, &str)) {
    let mut below = |part: &str, value: &Value| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(part);
        each_string(value, pointer, see);
        pointer.truncate(length);
    };
    match value {
        Value::String(text) => see(pointer, text),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, field)| below(&escape(key), field)),
        _ => {}
    }
}

/// Turns filled values into numbers and booleans where `check` rejects text, and names the variables in the remaining findings.
pub(super) fn typed(
    value: &mut Value,
    filled: &[Filled],
    check: impl Fn(&Value) -> Vec<Finding>,
) -> Vec<Finding> {
    let mut findings = check(value);
    let mut changed = false;
    let refused: HashSet<&str> = findings.iter().map(|finding| finding.pointer.as_str()).collect();
    for one in filled.iter().filter(|one| refused.contains(one.pointer.as_str())) {
        let Some(slot) = value.pointer_mut(&one.pointer) else { continue };
        let scalar = slot.as_str().and_then(|text| serde_json::from_str::<Value>(text.trim()).ok());
        if let Some(scalar) = scalar.filter(|scalar| scalar.is_number() || scalar.is_boolean()) {
            *slot = scalar;
            changed = true;
        }
    }
    if changed {
        findings = check(value);
    }
    let filled: HashMap<&str, &Filled> = filled.iter().map(|one| (one.pointer.as_str(), one)).collect();
    for finding in &mut findings {
        if let Some(one) = filled.get(finding.pointer.as_str()) {
            finding.problem.push_str(&format!("; the value comes from {}", one.names.join(" and ")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> HashMap<String, String> {
        [("HOST", "db"), ("EMPTY", ""), ("TOKEN", "hush\"hush"), ("file", "f")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    fn expanded_in(folder: Option<&Path>, text: &str) -> Result<String, String> {
        let environment = environment();
        let around = Surroundings { environment: &environment, folder, is_own: true };
        Filler::new(around).expand(text).map(|(text, _)| text)
    }

    fn expanded(text: &str) -> Result<String, String> {
        expanded_in(None, text)
    }

    #[test]
    fn variables_defaults_and_literals() {
        assert_eq!(expanded("redis://${HOST}:${PORT:-6379}/").unwrap(), "redis://db:6379/");
        assert_eq!(expanded("${EMPTY:-x}").unwrap(), "x");
        assert_eq!(expanded("a $${HOST} b").unwrap(), "a ${HOST} b");
        assert_eq!(expanded("${env:HOST} ${env:NOPE:-x} ${file:-x}").unwrap(), "db x f");
    }

    #[test]
    fn a_secret_in_a_wrong_field_is_shown_by_its_name() {
        let environment = environment();
        let around = Surroundings { environment: &environment, folder: None, is_own: false };
        let mut filler = Filler::new(around);
        filler.expand("x-${TOKEN:-}").unwrap();
        let mut findings =
            [Finding::new("/auth/mode", r#"`hush"hush`: unknown value "hush\"hush"; known here: public"#)];
        filler.hide(&mut findings);
        assert_eq!(findings[0].problem, r#"`${TOKEN}`: unknown value "${TOKEN}"; known here: public"#);
    }

    #[test]
    fn a_missing_variable_an_unknown_kind_and_a_question_are_told_with_what_to_write() {
        assert!(expanded("${NOPE}").unwrap_err().contains("NOPE"));
        assert!(expanded("${NOPE").is_err());
        assert!(expanded("${config:a.b}").unwrap_err().contains("${env:NAME}"));
        assert!(expanded("${input:github-token}").unwrap_err().contains("`${GITHUB_TOKEN}`"));
        assert!(expanded("${file:a}").is_err() && expanded("${command:true}").is_err());
    }

    #[test]
    fn files_are_read_beside_the_configuration_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let inside = Some(folder.path());
        std::fs::write(folder.path().join("token"), "s3cret \n").unwrap();
        std::fs::write(folder.path().join("empty"), "\n").unwrap();
        std::fs::write(folder.path().join("long"), "s3cret".repeat(20_000)).unwrap();
        std::fs::write(folder.path().join("binary"), b"s3cret\xff").unwrap();
        assert_eq!(expanded_in(inside, "a ${file:token}b").unwrap(), "a s3cret b");
        assert_eq!(expanded_in(inside, "${file:none:-else}").unwrap(), "else");
        for (name, says) in [
            ("none", "No such file"),
            ("empty", "is empty"),
            ("long", "longer than 65536"),
            ("binary", "not UTF-8"),
            (".", "not a regular file"),
        ] {
            let problem = expanded_in(inside, &format!("${{file:{name}}}")).unwrap_err();
            assert!(problem.contains(says) && !problem.contains("s3cret"), "{problem}");
        }
    }

    #[test]
    fn commands_run_once_in_the_folder_and_neither_they_nor_files_are_used_where_a_client_wrote() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "s3cret\n").unwrap();
        let environment = environment();
        let mut around =
            Surroundings { environment: &environment, folder: Some(folder.path()), is_own: true };
        let mut filler = Filler::new(around);
        let line = "${command:echo x >> ran; cat token}";
        assert_eq!(filler.expand(&format!("{line} {line}")).unwrap().0, "s3cret s3cret");
        assert_eq!(std::fs::read_to_string(folder.path().join("ran")).unwrap(), "x\n");
        around.is_own = false;
        for (text, says) in
            [(line, "`${command:…}` runs only"), ("${file:token}", "`${file:…}` is read only")]
        {
            let problem = Filler::new(around).expand(text).unwrap_err();
            assert!(problem.contains(says) && problem.contains("`${NAME}`"), "{problem}");
        }
        let asks = |around| Filler::new(around).expand("${input:a}").unwrap_err();
        assert!(!asks(around).contains("${file:PATH}"), "{}", asks(around));
        assert_eq!(std::fs::read_to_string(folder.path().join("ran")).unwrap(), "x\n");
    }

    #[test]
    fn missing_variables_are_found_with_their_places() {
        let value = serde_json::json!({"a": ["${HOST} ${NOPE} ${env:GONE}", "${X:-y}"], "b": "${file:x}"});
        let found = missing_variables(&value, &environment());
        let expected =
            [("/a/0", "NOPE"), ("/a/0", "GONE")].map(|(at, name)| (at.to_owned(), name.to_owned()));
        assert_eq!(found, expected);
    }
}
