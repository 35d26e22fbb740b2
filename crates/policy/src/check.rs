//! Compares policies with a catalog: names that nothing has, misspelt attributes, and conditions that are never true. Those that fail for every request
//! are found by a trial, since types do not show them.

use std::collections::BTreeSet;

use gatewright_core::{Snapshot, ToolEntry, UnavailableApp, nearest_name};

use crate::{
    CedarPolicies, PolicyProblem,
    bounds::with_stack,
    cedar::{
        EntityUID, Expr, ExprKind, Literal, PolicySet, PrincipalOrResourceConstraint, ValidationMode,
        Validator, ValidatorSchema,
    },
    comparisons::{comparison, contradiction},
    engine::certain_failure,
    load::{Grant, Rule, explained, line_of, offset},
    reads::is_arguments,
    schema::{Arguments, Budget, schemas},
    values::NAMES,
};

/// The apps, tools, resources and prompts that policies may name.
pub struct Catalog<'c> {
    /// Tools, resources and prompts of all apps.
    pub items: &'c Snapshot,
    /// Apps that are not there: their names are not checked.
    pub unavailable: Vec<UnavailableApp>,
}

impl std::fmt::Debug for Catalog<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("tools", &self.items.tools.len()).finish_non_exhaustive()
    }
}

impl<'c> Catalog<'c> {
    /// The catalog of a registry. What apps offer to single callers is not part of it.
    pub fn new(items: &'c Snapshot) -> Self {
        let unavailable =
            items.apps.iter().filter_map(|app| UnavailableApp::of(&app.id, app.app.health())).collect();
        Self { items, unavailable }
    }

    /// Returns `true` if names of `app` cannot be checked.
    fn is_open(&self, app: &str) -> bool {
        let is_personal = |id: &str| self.items.app(id).is_some_and(|app| app.app.per_caller().is_some());
        self.unavailable.iter().any(|known| *known.id == *app) || is_personal(app)
    }

    fn app_ids(&self) -> impl Iterator<Item = &str> {
        self.items.apps.iter().map(|app| &*app.id)
    }
}

impl CedarPolicies {
    /// Every problem in the policies that shows without a request. Without a `catalog`, names of apps, tools and prompts and conditions
    /// on arguments are not checked.
    pub fn check(&self, catalog: Option<&Catalog<'_>>) -> Vec<PolicyProblem> {
        with_stack(|| self.problems(catalog)).unwrap_or_else(|| {
            let why = "there is no thread to check the policies";
            self.rules.first().map(|rule| self.problem(rule, 0, why.to_owned())).into_iter().collect()
        })
    }

    fn problems(&self, catalog: Option<&Catalog<'_>>) -> Vec<PolicyProblem> {
        let mut found = Vec::new();
        if let Some(first) = self.rules.first()
            && self.rules.iter().all(|rule| rule.grant == Grant::Forbid)
        {
            let problem = "no policy permits anything, so every request is denied; to permit what scopes allow, add \
                           `permit (principal, action, resource);`";
            found.push(self.problem(first, 0, problem.to_owned()));
        }
        let budget = Budget::default();
        for rule in &self.rules {
            let misnamed = catalog.map(|catalog| self.misnamed(rule, catalog)).unwrap_or_default();
            // What names nothing has no arguments to check.
            if misnamed.is_empty() {
                let ill_typed = self.ill_typed(rule, catalog, &budget);
                if ill_typed.is_empty() {
                    if let Some(why) = certain_failure(rule) {
                        let problem = format!(
                            "cannot be evaluated, so every request that it is about is refused: {why}"
                        );
                        found.push(self.problem(rule, 0, problem));
                    }
                    if let Some((at, problem)) = contradiction(&rule.condition) {
                        found.push(self.problem(rule, at, problem));
                    }
                }
                found.extend(ill_typed);
            }
            found.extend(misnamed);
        }
        found
    }

    /// A problem of `rule`, at an offset of its file or, with 0, where the policy begins.
    fn problem(&self, rule: &Rule, offset: usize, problem: String) -> PolicyProblem {
        let file = &self.files[rule.file];
        let line = if offset == 0 { rule.line } else { line_of(&file.text, offset) };
        PolicyProblem { file: file.name.clone(), line, problem }
    }

    fn misnamed(&self, rule: &Rule, catalog: &Catalog<'_>) -> Vec<PolicyProblem> {
        let mut found = Vec::new();
        let mut known = BTreeSet::new();
        for part in rule.condition.subexpressions() {
            let (problems, loc) = match part.expr_kind() {
                ExprKind::Lit(Literal::EntityUID(named)) => {
                    (misnaming(named, catalog).into_iter().collect(), part.source_loc().or(named.loc()))
                }
                _ => (misnamed_texts(part, catalog), part.source_loc()),
            };
            for problem in problems {
                if known.insert(problem.clone()) {
                    found.push(self.problem(rule, loc.map_or(0, |loc| loc.start()), problem));
                }
            }
        }
        found
    }

    fn ill_typed(&self, rule: &Rule, catalog: Option<&Catalog<'_>>, budget: &Budget) -> Vec<PolicyProblem> {
        let looks_at_arguments = rule.condition.subexpressions().any(is_arguments);
        let arguments = match catalog {
            Some(catalog) if looks_at_arguments => {
                let tools: Vec<&ToolEntry> = catalog
                    .items
                    .tools
                    .iter()
                    .map(|tool| &**tool)
                    .filter(|tool| is_about(rule, tool))
                    .collect();
                let is_open = catalog.items.apps.iter().any(|app| catalog.is_open(&app.id));
                if tools.is_empty() || (is_open && !is_about_one(rule)) {
                    return Vec::new();
                }
                let Some(arguments) = Arguments::of(tools.into_iter(), budget) else { return Vec::new() };
                Some(arguments)
            }
            None if looks_at_arguments => return Vec::new(),
            _ => None,
        };
        let mut first = None;
        for schema in schemas(arguments.as_ref()) {
            let problems = self.violations(rule, schema);
            if problems.is_empty() {
                return problems;
            }
            first.get_or_insert(problems);
        }
        first.unwrap_or_default()
    }

    fn violations(&self, rule: &Rule, schema: ValidatorSchema) -> Vec<PolicyProblem> {
        let policies = PolicySet::singleton(rule.policy.clone());
        let result = Validator::new(schema).validate(&policies, ValidationMode::Strict);
        let errors = result.validation_errors().map(|error| (offset(error), explained(error)));
        let warnings = result.validation_warnings().map(|warning| (offset(warning), explained(warning)));
        let mut found: Vec<(usize, String)> =
            errors.chain(warnings).map(|(at, text)| (at, of_policy(&text))).collect();
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|(at, text)| self.problem(rule, at, text)).collect()
    }
}

/// A message of Cedar without the id that Cedar gave the policy.
fn of_policy(text: &str) -> String {
    match text.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, ")) {
        Some((_, rest)) => rest.to_owned(),
        None => text.to_owned(),
    }
}

/// The scope of `rule` names this tool, its app, or neither.
fn is_about(rule: &Rule, tool: &ToolEntry) -> bool {
    match rule.policy.resource_constraint().as_inner().get_euid() {
        None => true,
        Some(named) if *named.entity_type() == NAMES.tool => named.eid().as_ref() as &str == &*tool.name,
        Some(named) => named.eid().as_ref() as &str == &*tool.app_id,
    }
}

fn is_about_one(rule: &Rule) -> bool {
    matches!(rule.policy.resource_constraint().as_inner(), PrincipalOrResourceConstraint::Eq(_))
}

/// The problems of a comparison of `resource.name` or `resource.app` with names that nothing has.
fn misnamed_texts(part: &Expr, catalog: &Catalog<'_>) -> Vec<String> {
    let Some(comparison) = comparison(part) else { return Vec::new() };
    match &*comparison.attribute {
        "resource.name" => comparison.texts().filter_map(|name| misnamed_object(name, catalog)).collect(),
        "resource.app" => comparison.texts().filter_map(|name| misnamed_app(name, catalog)).collect(),
        _ => Vec::new(),
    }
}

fn misnamed_object(name: &str, catalog: &Catalog<'_>) -> Option<String> {
    let app = name.split_once(':').map_or("", |(app, _)| app);
    let tools = catalog.items.tools.iter().map(|tool| tool.name.to_string());
    let prompts = catalog.items.prompts.iter().map(|prompt| format!("{}:{}", prompt.owner.id, prompt.local));
    let known: Vec<String> = tools.chain(prompts).collect();
    if known.iter().any(|known| known == name) || catalog.is_open(app) {
        return None;
    }
    Some(unknown("tool or prompt", name, known.iter().map(String::as_str).collect()))
}

fn misnamed_app(name: &str, catalog: &Catalog<'_>) -> Option<String> {
    match catalog.items.app(name) {
        Some(_) => None,
        None => Some(unknown("app", name, catalog.app_ids().collect())),
    }
}

fn unknown(kind: &str, name: &str, known: Vec<&str>) -> String {
    let near = nearest_name(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("there is no {kind} `{name}`{near}")
}

/// The problem of a name that nothing has.
fn misnaming(named: &EntityUID, catalog: &Catalog<'_>) -> Option<String> {
    let (kind, id): (_, &str) = (named.entity_type(), named.eid().as_ref());
    let app = id.split_once(':').map_or("", |(app, _)| app);
    let (what, known): (_, Vec<&str>) = if *kind == NAMES.tool {
        if catalog.items.tools.iter().any(|tool| *tool.name == *id) || catalog.is_open(app) {
            return None;
        }
        ("tool", catalog.items.tools.iter().map(|tool| &*tool.name).collect())
    } else if *kind == NAMES.app {
        return misnamed_app(id, catalog);
    } else if *kind == NAMES.prompt {
        let mut prompts = catalog.items.prompts.iter();
        let is_known = |prompt: &gatewright_core::Owned<gatewright_core::rmcp::model::Prompt>| {
            *prompt.owner.id == *app && id.get(app.len() + 1..) == Some(&prompt.local)
        };
        if prompts.any(is_known) || catalog.is_open(app) {
            return None;
        }
        ("prompt", Vec::new())
    } else {
        return None;
    };
    Some(unknown(what, id, known))
}
