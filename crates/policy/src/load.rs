//! Reads policies from the texts of files.

use std::{collections::HashMap, fmt, path::Path, sync::Arc};

use miette::Diagnostic;

use crate::{
    bounds::{depth, excess, with_stack},
    cedar::{Effect, Expr, Policy, parse_policyset},
};

/// A file of policies.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    /// Its path, as problems name it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A problem in a file of policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// Path of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The problem, and what to do.
    pub problem: String,
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.problem)
    }
}

/// One policy.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Its `@id`, else its place.
    pub(crate) name: Arc<str>,
    /// File and line.
    pub(crate) file: usize,
    pub(crate) line: usize,
    pub(crate) grant: Grant,
    /// The condition, scope included.
    pub(crate) condition: Expr,
    /// Levels of the condition.
    pub(crate) depth: usize,
    pub(crate) policy: Policy,
}

/// The effect of a policy whose condition is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    Forbid,
    Permit,
    /// A permit with `@ask`.
    Ask {
        reason: Arc<str>,
        may_stand: bool,
        approvers: Option<Arc<str>>,
    },
}

/// Reads every policy of `files`.
///
/// # Errors
/// Every problem that is found without a catalog.
pub(crate) fn rules(files: &[PolicyFile]) -> Result<Vec<Rule>, Vec<PolicyProblem>> {
    with_stack(|| read(files)).unwrap_or_else(|| {
        let file = files.first().map(|file| file.name.clone()).unwrap_or_default();
        Err(vec![PolicyProblem {
            file,
            line: 1,
            problem: "there is no thread to read the policies".to_owned(),
        }])
    })
}

fn read(files: &[PolicyFile]) -> Result<Vec<Rule>, Vec<PolicyProblem>> {
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    for (at, file) in files.iter().enumerate() {
        match rules_of(at, file, &called(files, file)) {
            Ok(own) => rules.extend(own),
            Err(own) => problems.extend(own),
        }
    }
    let mut known: HashMap<&str, &Rule> = HashMap::new();
    for rule in &rules {
        if let Some(first) = known.insert(&rule.name, rule) {
            let place = format!("{}:{}", files[first.file].name, first.line);
            let problem =
                format!("`@id(\"{}\")` is also that of {place}; give each policy its own", rule.name);
            problems.push(PolicyProblem { file: files[rule.file].name.clone(), line: rule.line, problem });
        }
    }
    if problems.is_empty() { Ok(rules) } else { Err(problems) }
}

/// The name of a file in the names of its policies: without folders, which messages to callers leave out, unless another file is called the same.
fn called(files: &[PolicyFile], file: &PolicyFile) -> String {
    let base = |file: &PolicyFile| {
        Path::new(&file.name).file_name().and_then(|name| name.to_str()).unwrap_or(&file.name).to_owned()
    };
    let own = base(file);
    let same = files.iter().filter(|other| base(other) == own).count();
    if same > 1 { file.name.clone() } else { own }
}

fn rules_of(at: usize, file: &PolicyFile, called: &str) -> Result<Vec<Rule>, Vec<PolicyProblem>> {
    let problem = |offset: usize, problem: String| PolicyProblem {
        file: file.name.clone(),
        line: line_of(&file.text, offset),
        problem,
    };
    if let Some((at, why)) = excess(&file.text) {
        return Err(vec![problem(at, why)]);
    }
    let policies = match parse_policyset(&file.text) {
        Ok(policies) => policies,
        Err(errors) => {
            return Err(errors.iter().map(|error| problem(offset(error), explained(error))).collect());
        }
    };
    let mut problems: Vec<PolicyProblem> = policies
        .templates()
        .map(|template| {
            let start = template.loc().map_or(0, |loc| loc.start());
            problem(
                start,
                "policies with slots such as `?principal` are not supported; name the principal".to_owned(),
            )
        })
        .collect();
    let mut rules = Vec::new();
    for policy in policies.static_policies() {
        let start = policy.loc().map_or(0, |loc| loc.start());
        let line = line_of(&file.text, start);
        let annotation = |name: &str| {
            policy
                .annotations()
                .find(|(key, _)| AsRef::<str>::as_ref(*key) == name)
                .map(|(_, value)| value.val.as_str())
        };
        let condition = policy.condition();
        let grant =
            grant(policy.effect(), annotation("ask"), annotation("approval"), annotation("approvers"));
        match grant.and_then(|grant| Ok((grant, depth(&condition)?))) {
            Ok((grant, depth)) => {
                let own = annotation("id").filter(|id| !id.is_empty());
                let name = own.map_or_else(|| unnamed(&file.text, called, start), str::to_owned);
                let (name, policy) = (name.into(), policy.clone());
                rules.push((start, Rule { name, file: at, line, grant, condition, depth, policy }));
            }
            Err(why) => problems.push(problem(start, why)),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    rules.sort_by_key(|(start, _)| *start);
    Ok(rules.into_iter().map(|(_, rule)| rule).collect())
}

/// The place of a policy without `@id`: its line, and its column where it is not the first thing there.
fn unnamed(text: &str, file: &str, start: usize) -> String {
    let line = line_of(text, start);
    let before = text.get(..start).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
    match before.trim().is_empty() {
        true => format!("{file}:{line}"),
        false => format!("{file}:{line}:{}", before.chars().count() + 1),
    }
}

fn grant(
    effect: Effect,
    ask: Option<&str>,
    approval: Option<&str>,
    approvers: Option<&str>,
) -> Result<Grant, String> {
    let approvers: Option<Arc<str>> = match (approvers, ask) {
        (Some(_), None) => return Err("`@approvers` belongs beside `@ask(\"reason\")`".to_owned()),
        (Some(scope), _) if scope.is_empty() || scope.contains([' ', '*']) => {
            return Err("`@approvers` names one scope, without `*`, as in `@approvers(\"refunds:approve\")`"
                .to_owned());
        }
        (scope, _) => scope.map(Into::into),
    };
    let may_stand = match (approval, ask) {
        (None, _) => true,
        (Some(_), None) => return Err("`@approval` belongs beside `@ask(\"reason\")`".to_owned()),
        (Some("ask"), _) => true,
        (Some("always"), _) => false,
        (Some(other), _) => return Err(format!("`@approval(\"{other}\")` must be \"ask\" or \"always\"")),
    };
    match (effect, ask) {
        (Effect::Permit, None) => Ok(Grant::Permit),
        (Effect::Permit, Some("")) => {
            Err("`@ask` needs a reason that the approver reads, such as `@ask(\"Refund over 1,000\")`"
                .to_owned())
        }
        (Effect::Permit, Some(reason)) => Ok(Grant::Ask { reason: reason.into(), may_stand, approvers }),
        (Effect::Forbid, None) => Ok(Grant::Forbid),
        (Effect::Forbid, Some(_)) => {
            Err("`@ask` belongs on a `permit`: what is forbidden cannot be approved".to_owned())
        }
    }
}

/// The offset of a message in its file.
pub(crate) fn offset(error: &dyn Diagnostic) -> usize {
    error.labels().and_then(|mut labels| labels.next()).map_or(0, |label| label.offset())
}

/// A message with its advice, on one line.
pub(crate) fn explained(error: &(impl Diagnostic + fmt::Display)) -> String {
    let label = error.labels().and_then(|mut labels| labels.next()?.label().map(str::to_owned));
    let parts = [Some(error.to_string()), label, error.help().map(|help| help.to_string())];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ").replace('\n', " ")
}

/// The line of an offset, from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_without_an_id_are_called_by_file_and_line_without_folders() {
        let file = |name: &str| PolicyFile {
            name: name.to_owned(),
            text: "\npermit (principal, action, resource);".to_owned(),
        };
        let names = |files: &[&str]| -> Vec<String> {
            let files: Vec<PolicyFile> = files.iter().map(|name| file(name)).collect();
            rules(&files).unwrap().iter().map(|rule| rule.name.to_string()).collect()
        };
        assert_eq!(names(&["/etc/gatewright/a.cedar", "b.cedar"]), ["a.cedar:2", "b.cedar:2"]);
        assert_eq!(names(&["x/a.cedar", "y/a.cedar"]), ["x/a.cedar:2", "y/a.cedar:2"]);
    }
}
