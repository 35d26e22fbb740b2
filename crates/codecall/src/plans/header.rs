//! The comment that a plan begins with: its name, its words, and the schemas of its input and output.

use std::sync::LazyLock;

use gatewright_core::rmcp::model::{JsonObject, ToolAnnotations};
use gatewright_findings::{Finding, Format, Lines, Schema, parser_problem, with_lines};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Longest header, in bytes.
const LONGEST: usize = 64 * 1024;

/// The header of a plan.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PlanHeader {
    /// The tool's name. Default: the file's name without its extension.
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) description: String,
    /// JSON Schema of the input. Default: there is none.
    pub(super) input: Option<JsonObject>,
    /// JSON Schema of the result.
    pub(super) output: Option<JsonObject>,
    #[serde(default)]
    pub(super) annotations: Annotations,
    /// Scopes that a caller needs besides those of the tools that the plan calls.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    pub(super) enabled_in_code_call: Option<bool>,
    pub(super) visible_in_list_tools: Option<bool>,
}

/// Annotations by the author of a plan, which come before those that follow from the tools that it calls.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[expect(clippy::struct_field_names, reason = "the names of MCP")]
pub(super) struct Annotations {
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

impl Annotations {
    /// These, and `others` where they say nothing.
    pub(super) fn or(&self, mut others: ToolAnnotations) -> ToolAnnotations {
        if self.read_only_hint == Some(true) {
            others.destructive_hint = None;
        }
        others.read_only_hint = self.read_only_hint.or(others.read_only_hint);
        others.destructive_hint = self.destructive_hint.or(others.destructive_hint);
        others.idempotent_hint = self.idempotent_hint.or(others.idempotent_hint);
        others.open_world_hint = self.open_world_hint.or(others.open_world_hint);
        others
    }
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let schema = schemars::schema_for!(PlanHeader).to_value();
    Schema::new(schema).expect("the schema of a type of ours compiles")
});

/// A header, and the lines of its fields in the file.
pub(super) struct FrontMatter {
    pub(super) header: PlanHeader,
    pub(super) lines: Lines,
}

impl FrontMatter {
    /// Reads the header of `text`.
    ///
    /// # Errors
    /// There is none, or every problem in it, with its line.
    pub(super) fn read(text: &str) -> Result<Self, Vec<Finding>> {
        let matter = matter(text).map_err(|problem| vec![at_line(1, problem)])?;
        let lines = Lines::of(&matter, Format::Yaml);
        let value: Value = serde_saphyr::from_str(&matter).map_err(|error| {
            let line = error.location().and_then(|at| usize::try_from(at.line()).ok());
            vec![at_line(line.unwrap_or(1), parser_problem(&error.without_snippet().to_string()))]
        })?;
        if !value.is_object() {
            return Err(vec![at_line(1, "the header must have fields such as `name` and `description`")]);
        }
        let found = with_lines(SCHEMA.findings(&value), &lines);
        if !found.is_empty() {
            return Err(found);
        }
        match serde_json::from_value(value) {
            Ok(header) => Ok(Self { header, lines }),
            Err(error) => Err(vec![at_line(1, error.to_string())]),
        }
    }
}

/// Returns `true` if `text` begins with the header of a plan.
pub(crate) fn has_header(text: &str) -> bool {
    FrontMatter::read(text).is_ok()
}

/// A problem of the file at `line`.
pub(super) fn at_line(line: usize, problem: impl Into<String>) -> Finding {
    Finding { line: Some(line), ..Finding::new("", problem) }
}

const NO_HEADER: &str = "a plan begins with its header: a comment `/* plan … */` with the fields `name`, `description` and `input` in YAML";

/// The text of the header, with as many line breaks in front that its lines are those of the file.
fn matter(text: &str) -> Result<String, &'static str> {
    let mut rest = text.trim_start();
    while rest.starts_with("//") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    let comment = rest.strip_prefix("/*").ok_or(NO_HEADER)?;
    let fields = comment.trim_start_matches('*').trim_start().strip_prefix("plan").ok_or(NO_HEADER)?;
    if !fields.starts_with(char::is_whitespace) {
        return Err(NO_HEADER);
    }
    let before = text[..text.len() - fields.len()].matches('\n').count();
    let (fields, _) =
        fields.split_once("*/").ok_or("the comment with the header does not end: `*/` is missing")?;
    if fields.len() > LONGEST {
        return Err("the header is longer than 65536 bytes");
    }
    Ok("\n".repeat(before) + fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        FrontMatter::read(text).map(|_| ()).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_header_is_yaml_or_json_in_the_first_comment() {
        let yaml = "// Copyright\n\n/* plan\nname: orders\ndescription: Lists orders.\ninput:\n  properties: { id: { type: string } }\nannotations: { readOnlyHint: true }\n*/\nreturn 1";
        let front_matter = FrontMatter::read(yaml).unwrap();
        assert_eq!(
            (front_matter.header.name.as_deref(), front_matter.lines.nearest("/input/properties")),
            (Some("orders"), Some(7))
        );
        let json = "/* plan {\"name\": \"orders\", \"description\": \"Lists orders.\",\n \"input\": {\"properties\": {\"id\": {\"type\": \"string\"}}},\n\
                    \"annotations\": {\"readOnlyHint\": true}} */ return 1";
        assert_eq!(FrontMatter::read(json).unwrap().header, front_matter.header);
    }

    #[test]
    fn a_file_without_a_header_is_told_what_one_is() {
        for text in [
            "",
            "return 1",
            "/* planning */ return 1",
            "return 1 /* plan\ndescription: x\n*/",
            "/* a */ /* plan\ndescription: x */",
        ] {
            assert!(problems(text)[0].starts_with("line 1: a plan begins with its header"), "{text}");
        }
        assert!(problems("/* plan\ndescription: x\n")[0].contains("`*/` is missing"));
    }

    #[test]
    fn each_bad_field_has_its_line_and_the_nearest_name() {
        let text = "// x\n/* plan\nname: 7\ndescripton: Lists orders.\nscopes: crm\nannotations: { readOnly: true }\n*/\n";
        let found = problems(text);
        let expected = [
            "line 1: the value",
            "line 3: name: must be text",
            "line 4: descripton: unknown key; did you mean `description`?",
            "line 5: scopes: must be ",
            "line 6: annotations.readOnly: unknown key; did you mean `readOnlyHint`?",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (at, expected) in expected.iter().enumerate().skip(1) {
            assert!(found[at].starts_with(expected), "{found:#?}");
        }
        assert!(found.iter().any(|one| one.contains("\"description\" is a required property")), "{found:#?}");
    }

    #[test]
    fn a_header_that_is_no_yaml_has_the_line_of_the_problem() {
        assert!(problems("/* plan\ndescription: [x\n*/")[0].starts_with("line "));
        assert!(problems("/* plan\n- a\n*/")[0].contains("must have fields"));
        let bomb = "/* plan\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                    g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n*/";
        assert!(!problems(bomb).is_empty());
    }
}
