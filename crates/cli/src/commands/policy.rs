//! `gatewright policy`: decisions on requests that are not made.

use std::{
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use gatewright::{Principal, Running};
use gatewright_core::{
    Caller, Decision, Denied, Groups, PermittedTool, PolicyObject, PolicyRequest, Scopes, View, read_unique,
    rmcp::model::JsonObject,
};
use gatewright_policy::{CedarPolicies, Explanation};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    args::{PolicyArgs, PolicyCommand, PolicyExplainArgs, PolicyTestArgs, time},
    config::Config,
    exit::{self, BadConfig},
    logging,
    output::{self, errln, outln},
    wire::{gateway, policies},
};

/// Longest wait for upstream apps.
const SETTLE: Duration = Duration::from_secs(30);

/// Runs one command, and stops the apps that it started.
pub async fn run(args: PolicyArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        PolicyCommand::Explain(args) => explain(*args).await,
        PolicyCommand::Test(args) => test(args).await,
    }
}

/// One request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Case {
    name: Option<String>,
    subject: Option<String>,
    client: Option<String>,
    endpoint: Option<String>,
    /// Default all.
    scopes: Option<Vec<String>>,
    groups: Vec<String>,
    tool: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    arguments: JsonObject,
    script: bool,
    calls: u64,
    at: Option<String>,
    /// `permit`, `ask` or `forbid`.
    expect: Option<Expected>,
    /// The policy that decides.
    policy: Option<String>,
}

/// A decision by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Permit,
    Ask,
    Forbid,
}

impl Expected {
    fn as_str(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::Ask => "ask",
            Self::Forbid => "forbid",
        }
    }
}

/// A decision on a case.
struct Decided {
    outcome: Expected,
    policy: Option<Arc<str>>,
    /// Reason of an approval, or why it is forbidden.
    why: Option<String>,
    explanation: Option<Explanation>,
}

async fn explain(args: PolicyExplainArgs) -> anyhow::Result<ExitCode> {
    let arguments = serde_json::from_str(&args.arguments)
        .map_err(|error| BadConfig(format!("--arguments must be a JSON object: {error}")))?;
    let case = Case {
        subject: Some(args.subject),
        client: args.client,
        endpoint: args.endpoint,
        scopes: Some(args.scopes).filter(|scopes| !scopes.is_empty()),
        groups: args.groups,
        tool: args.object.tool,
        resource: args.object.resource,
        prompt: args.object.prompt,
        arguments,
        script: args.script,
        calls: args.calls,
        ..Case::default()
    };
    let (config, running) = start(&args.config).await?;
    let decided = decide(&case, args.at, &config, &running).await;
    running.stop().await;
    let decided = decided?;
    if args.json {
        output::pretty_json(&as_json(&decided))?;
    } else {
        print(&decided)?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn start(path: &Path) -> anyhow::Result<(Config, Running)> {
    let arguments = crate::args::ConfigArgs { config: Some(path.to_owned()), mcp_config: None };
    let config = Config::of(&arguments)?;
    logging::without_client_library();
    let running = gateway::start(&config).await?;
    gateway::settle(&running, SETTLE).await;
    Ok((config, running))
}

async fn decide(
    case: &Case,
    at: Option<SystemTime>,
    config: &Config,
    running: &Running,
) -> anyhow::Result<Decided> {
    let scopes = case.scopes.as_ref().map_or(Scopes::All, |scopes| Scopes::parse(&scopes.join(" ")));
    let groups = Groups::new(case.groups.iter().map(String::as_str)).ok_or_else(|| {
        BadConfig(format!(
            "a caller has at most {} groups, with names of 1 to {} bytes",
            Groups::MOST,
            Groups::LONGEST
        ))
    })?;
    let subject = case.subject.as_deref().unwrap_or("anonymous").into();
    let principal = Principal {
        subject,
        client_id: case.client.as_deref().map(Into::into),
        scopes,
        groups,
        endpoint: case.endpoint.as_deref().map(Into::into),
    };
    let caller = Caller::new(principal);
    let view = running.gateway().registry().ready_view(&caller).await;
    let mut arguments = case.arguments.clone();
    let found = match (&case.tool, &case.resource, &case.prompt) {
        (Some(name), None, None) => view.tool(name).map(|tool| {
            tool.fill_defaults(&mut arguments);
            Found::Tool(tool)
        }),
        (None, Some(uri), None) => {
            view.resource(uri).map(|mut items| Found::Resource(Box::new(items.swap_remove(0))))
        }
        (None, None, Some(name)) => view.prompt(name).map(|prompt| Found::Prompt(Box::new(prompt))),
        _ => return Err(BadConfig("name one of `tool`, `resource` and `prompt`".to_owned()).into()),
    };
    let found = match found {
        Ok(found) => found,
        Err(Denied::Scopes(missing)) => {
            let why = format!("the caller lacks the scope {}; policies are not asked", missing.join(" "));
            return Ok(Decided {
                outcome: Expected::Forbid,
                policy: None,
                why: Some(why),
                explanation: None,
            });
        }
        Err(Denied::Unknown | Denied::Policies | Denied::Ended) => return Err(unknown(case, &view).into()),
    };
    if let Found::Tool(tool) = &found
        && let Some(problem) = tool.input_problems(&Value::Object(arguments.clone()), 1).first()
    {
        return Err(BadConfig(format!(
            "the arguments do not fit the tool: {}: {}",
            problem.path, problem.message
        ))
        .into());
    }
    let request = PolicyRequest {
        principal: caller.principal(),
        object: found.object(),
        arguments: Some(&arguments),
        script: case.script,
        calls: case.calls,
        time: at.unwrap_or_else(SystemTime::now),
    };
    let policies = policies::of(config).unwrap_or_default();
    let explain = |engine: &Arc<CedarPolicies>| engine.explain(&request);
    let explanation = config.policy_files.engine.as_ref().map(explain);
    Ok(match policies.decide(&request) {
        Decision::Permit => {
            let permit =
                explanation.as_ref().and_then(|it| it.matched.iter().find(|one| one.effect == "permit"));
            let policy = permit.map(|one| one.policy.clone());
            Decided { outcome: Expected::Permit, policy, why: None, explanation }
        }
        Decision::Ask { policy, reason, .. } => Decided {
            outcome: Expected::Ask,
            policy: Some(policy),
            why: Some(reason.to_string()),
            explanation,
        },
        Decision::Forbid(why) => Decided {
            outcome: Expected::Forbid,
            policy: why.policy().cloned(),
            why: Some(why.to_string()),
            explanation,
        },
    })
}

/// The object of a request.
enum Found {
    Tool(PermittedTool),
    Resource(Box<gatewright_core::Permitted<gatewright_core::ResourceItem>>),
    Prompt(Box<gatewright_core::Permitted<gatewright_core::PromptItem>>),
}

impl Found {
    fn object(&self) -> PolicyObject<'_> {
        match self {
            Self::Tool(tool) => tool.policy_object(),
            Self::Resource(resource) => resource.object(),
            Self::Prompt(prompt) => prompt.object(),
        }
    }
}

fn unknown(case: &Case, view: &View) -> BadConfig {
    let (kind, name) = match (&case.tool, &case.resource, &case.prompt) {
        (Some(name), ..) => ("tool", name),
        (_, Some(uri), _) => ("resource", uri),
        (_, _, name) => ("prompt", name.as_ref().unwrap_or(const { &String::new() })),
    };
    let near = case.tool.as_ref().and_then(|name| view.nearest(name, |_| true));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    BadConfig(format!("there is no {kind} `{name}` for this caller{near}"))
}

fn print(decided: &Decided) -> anyhow::Result<()> {
    let by = decided.policy.as_ref().map(|policy| format!(" by {policy}")).unwrap_or_default();
    let why = decided.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    outln!("{}{by}{why}", decided.outcome.as_str())?;
    let Some(explanation) = &decided.explanation else { return Ok(()) };
    for one in &explanation.matched {
        outln!("  {} {} ({})", one.effect, one.policy, one.place)?;
    }
    for (one, why) in &explanation.failed {
        outln!("  failed {} ({}): {why}", one.policy, one.place)?;
    }
    if explanation.matched.is_empty() && explanation.failed.is_empty() {
        outln!("  no policy applies")?;
    }
    Ok(())
}

fn as_json(decided: &Decided) -> Value {
    let explanation = decided.explanation.as_ref();
    let matched = explanation.map(|it| it.matched.as_slice()).unwrap_or_default();
    let failed = explanation.map(|it| it.failed.as_slice()).unwrap_or_default();
    json!({
        "decision": decided.outcome.as_str(),
        "policy": decided.policy.as_deref(),
        "reason": decided.why,
        "matched": matched.iter().map(|one| json!({"policy": &*one.policy, "place": one.place, "effect": one.effect})).collect::<Vec<_>>(),
        "failed": failed.iter().map(|(one, why)| json!({"policy": &*one.policy, "place": one.place, "why": why})).collect::<Vec<_>>(),
    })
}

/// Cases of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    cases: Vec<Case>,
}

async fn test(args: PolicyTestArgs) -> anyhow::Result<ExitCode> {
    let mut cases = Vec::new();
    for path in &args.files {
        cases.extend(read(path)?.cases.into_iter().enumerate().map(|(at, case)| (path, at + 1, case)));
    }
    let (config, running) = start(&args.config).await?;
    let mut failed = 0;
    for (path, number, case) in &cases {
        let name = case.name.clone().unwrap_or_else(|| format!("case {number}"));
        if let Err(problem) = verify(case, &config, &running).await {
            failed += 1;
            outln!("{}: {name}: {problem:#}", path.display())?;
        }
    }
    running.stop().await;
    match failed {
        0 => outln!("{} cases passed", cases.len())?,
        _ => errln!("{failed} of {} cases failed", cases.len()),
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn read(path: &Path) -> anyhow::Result<Cases> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| BadConfig(format!("{} cannot be read: {error}", path.display())))?;
    let cases: Cases = match path.extension().is_some_and(|extension| extension == "json") {
        true => read_unique(text.as_bytes())
            .and_then(|_| serde_json::from_str(&text))
            .map_err(|error| BadConfig(format!("{}: {error}", path.display())))?,
        false => serde_saphyr::from_str(&text)
            .map_err(|error| BadConfig(format!("{}: {}", path.display(), error.without_snippet())))?,
    };
    match cases.cases.is_empty() {
        true => Err(BadConfig(format!("{} has no cases", path.display())).into()),
        false => Ok(cases),
    }
}

async fn verify(case: &Case, config: &Config, running: &Running) -> anyhow::Result<()> {
    let at = case.at.as_deref().map(time).transpose().map_err(BadConfig).context("at")?;
    let Some(expected) = case.expect else {
        return Err(BadConfig("`expect` is needed: permit, ask or forbid".to_owned()).into());
    };
    let decided = decide(case, at, config, running).await?;
    let policy = decided.policy.as_deref();
    let is_right =
        decided.outcome == expected && case.policy.as_deref().is_none_or(|wanted| policy == Some(wanted));
    if is_right {
        return Ok(());
    }
    let by = |policy: Option<&str>| policy.map(|policy| format!(" by {policy}")).unwrap_or_default();
    let why = decided.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    anyhow::bail!(
        "expected {}{}, decided {}{}{why}",
        expected.as_str(),
        by(case.policy.as_deref()),
        decided.outcome.as_str(),
        by(policy)
    )
}
