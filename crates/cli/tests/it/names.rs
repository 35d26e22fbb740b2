//! Names in the configuration of things that do not exist.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    served::{LONG, Served},
    stub,
    support::gatewright,
};

const CRM: &str = "codecall: { worker: { workers: 1 } }\napps:\n  crm:\n    builtin: crm\n    tools:\n      ";

#[tokio::test]
async fn a_misspelt_tool_is_logged_once_with_the_nearest_name_and_counted_in_readyz_until_it_is_right() {
    let config = |tool: &str| format!("{CRM}{tool}: {{ scopes: [admin] }}\n");
    let mut served = Served::start(&config("users_list"), &[]);
    served.replace(&config("users_lst"));
    let line = served.says("apps.crm.tools.users_lst:");
    assert!(line.contains("WARN") && line.contains("did you mean `users_list`?"), "{line}");
    assert_eq!(served.readiness().await["config"]["unknownNames"], 1);
    served.replace(&config("users_list"));
    let settled = async { while served.readiness().await["config"]["unknownNames"] != 0 {} };
    tokio::time::timeout(LONG, settled).await.unwrap();
    let rest = served.terminate();
    assert!(!rest.iter().any(|line| line.contains("do not agree")), "{rest:#?}");
}

/// Exit code and findings or warnings of a check, as lines and paths with the problem.
pub fn check(text: &str, arguments: &[&str], kind: &str) -> (i32, Vec<(u64, String, String)>) {
    let folder = tempfile::tempdir().unwrap();
    check_in(folder.path(), text, arguments, kind)
}

/// As [`check`], in a folder that may have other files.
fn check_in(folder: &Path, text: &str, arguments: &[&str], kind: &str) -> (i32, Vec<(u64, String, String)>) {
    let file = folder.join("gatewright.yaml");
    std::fs::write(&file, text).unwrap();
    let output =
        Command::new(gatewright()).args(["check", "--json"]).args(arguments).arg(&file).output().unwrap();
    let body: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let found = body[kind].as_array().cloned().unwrap_or_default();
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let found =
        found.iter().map(|one| (one["line"].as_u64().unwrap_or(0), text(one, "path"), text(one, "problem")));
    (output.status.code().unwrap(), found.collect())
}

const ALL: &str = r#"apps:
  crm: { builtin: crm, tools: { users_lst: { disabled: true }, users_get: {} } }
  ev:
    builtin: everything
    prefix: false
    prompts: { test_simple_promt: { scopes: [x] } }
  gone: { command: does-not-exist-anywhere, tools: { anything: {} } }
rateLimits:
  - { tool: "crmm:*", limit: 1, window: 1m }
  - { tool: "crm:user_list", limit: 1, window: 1m }
  - { tool: "codecall:exeucte", limit: 1, window: 1m }
  - { tool: "test_simple_tex", limit: 1, window: 1m }
  - { tool: "crm:users_list", limit: 1, window: 1m }
  - { tool: "*", limit: 1, window: 1m }
codecall:
  modes:
    - { client: robbot, mode: direct }
    - { scope: "crm:reed", mode: direct }
    - { client: robot, mode: direct }
auth:
  mode: orchestrated
  scopes: { "crm:read": Read, "crm:write": Write, "crm:delete": Delete, x: X }
  anonymousScopes: ["crm:raed"]
  clients: [{ clientId: robot, redirectUris: ["http://127.0.0.1/callback"] }]
"#;

#[test]
fn a_live_check_finds_every_key_that_names_something_that_is_not_there_and_apps_that_are_down() {
    let (code, found) = check(ALL, &["--live"], "findings");
    let expected = [
        (2, "apps.crm.tools.users_lst", "`users_list`"),
        (6, "apps.ev.prompts.test_simple_promt", "`test_simple_prompt`"),
        (7, "apps.gone", "does-not-exist-anywhere"),
        (9, "rateLimits.0.tool", "`crm`"),
        (10, "rateLimits.1.tool", "`users_list`"),
        (11, "rateLimits.2.tool", "`execute`"),
        (12, "rateLimits.3.tool", "`test_simple_text`"),
        (17, "codecall.modes.0.client", "`robot`"),
        (18, "codecall.modes.1.scope", "`crm:read`"),
        (23, "auth.anonymousScopes.0", "`crm:read`"),
    ];
    let places: Vec<(u64, &str)> = found.iter().map(|(line, path, _)| (*line, path.as_str())).collect();
    assert_eq!((code, places), (2, expected.map(|(line, path, _)| (line, path)).to_vec()), "{found:#?}");
    for ((_, _, problem), (_, _, near)) in found.iter().zip(expected) {
        assert!(problem.contains(near), "{problem}");
    }
}

#[test]
fn a_check_that_starts_no_process_warns_of_names_that_built_in_apps_and_the_rest_of_the_file_do_not_have() {
    let (code, warnings) = check(ALL, &[], "warnings");
    let paths: Vec<&str> = warnings.iter().map(|(_, path, _)| path.as_str()).collect();
    let expected = [
        "apps.crm.tools.users_lst",
        "apps.ev.prompts.test_simple_promt",
        "rateLimits.0.tool",
        "rateLimits.1.tool",
        "rateLimits.2.tool",
        "rateLimits.3.tool",
        "codecall.modes.0.client",
        "codecall.modes.1.scope",
        "auth.anonymousScopes.0",
    ];
    assert_eq!((code, paths), (0, expected.to_vec()), "{warnings:#?}");
}

#[test]
fn scopes_that_the_server_does_not_know_are_found_where_tools_and_approvals_need_them() {
    let text = "apps:\n  crm: { builtin: crm }\napprovals: { approvers: aprover }\nauth:\n  mode: orchestrated\n  \
                scopes: { 'crm:read': Read, 'crm:delete': Delete, approver: Approve }\n";
    let (code, found) = check(text, &["--live"], "findings");
    let found: Vec<_> = found.iter().map(|(_, path, problem)| (path.as_str(), problem.as_str())).collect();
    assert_eq!((code, found.len()), (2, 2), "{found:#?}");
    let of = |place: &str| found.iter().find(|(path, _)| *path == place).unwrap().1;
    assert!(of("approvals.approvers").contains("did you mean `approver`?"));
    let tools = of("apps.crm");
    assert!(tools.contains("`accounts_create`, need the scope `crm:write`"), "{tools}");
}

#[test]
fn scopes_clients_and_endpoints_that_conditions_of_policies_misspell_are_found_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let policies = r#"permit (principal, action, resource)
when { principal.scopes.contains("crm:reed") };
@ask("Sure?") @approvers("aprover") permit (principal, action, resource)
when { ["crm:read", "crm:wirte"].containsAny(principal.scopes) };
permit (principal, action, resource)
when { principal has client && principal.client == "robbot" };
permit (principal, action, resource)
when { principal has endpoint && ["sales", "sails"].contains(principal.endpoint) };
permit (principal, action, resource)
when { principal has endpoint && principal.endpoint == "main" };
permit (principal, action, resource)
when { principal.scopes.contains("crm:read") && principal has client && principal.client == "https://else.example/client" };
"#;
    std::fs::write(folder.path().join("rules.cedar"), policies).unwrap();
    let text = "apps:\n  crm: { builtin: crm }\nendpoints: { sales: { apps: [crm] } }\npolicies: [rules.cedar]\nauth:\n  mode: orchestrated\n  \
                scopes: { 'crm:read': Read, 'crm:write': Write, approver: Approve }\n  \
                clients: [{ clientId: robot, redirectUris: ['http://127.0.0.1/callback'] }]\n";
    let (code, found) = check_in(folder.path(), text, &["--offline"], "warnings");
    let found: Vec<_> = found.iter().map(|(_, path, problem)| (path.as_str(), problem.as_str())).collect();
    let expected = [
        ("rules.cedar:2: `crm:reed` ", "did you mean `crm:read`?"),
        ("rules.cedar:3: `aprover` ", "did you mean `approver`?"),
        ("rules.cedar:4: `crm:wirte` ", "did you mean `crm:write`?"),
        ("rules.cedar:6: there is no client `robbot`", "did you mean `robot`?"),
        ("rules.cedar:8: there is no endpoint `sails`", "did you mean `sales`?"),
        ("rules.cedar:10: ", "write `!(principal has endpoint)`"),
    ];
    assert_eq!((code, found.len()), (0, expected.len()), "{found:#?}");
    for ((path, problem), (place, advice)) in found.iter().zip(expected) {
        assert!(*path == "policies" && problem.starts_with(place) && problem.ends_with(advice), "{problem}");
    }
}

#[test]
fn tools_of_apps_without_a_prefix_are_compared_once_all_of_them_are_known() {
    let config = |app: &str| {
        format!(
            "apps:\n  ev: {{ builtin: everything, prefix: false }}\n{app}rateLimits:\n  - {{ tool: test_simple_tex, limit: 1, window: 1m }}\n"
        )
    };
    let (code, found) = check(&config(""), &["--live"], "findings");
    assert_eq!((code, found.len()), (2, 1));
    assert!(found[0].2.contains("`test_simple_text`"), "{found:?}");
    let (_, found) = check(
        &config("  gone: { command: does-not-exist-anywhere, prefix: false }\n"),
        &["--live"],
        "findings",
    );
    assert_eq!(found.iter().map(|one| one.1.as_str()).collect::<Vec<_>>(), ["apps.gone"]);
}

#[test]
fn a_pattern_that_matches_no_resource_and_can_match_none_of_a_template_is_found() {
    let text = "apps:\n  support:\n    builtin: support\n    resources:\n      'support://tikets/*': { scopes: [x] }\n      \
                'support://tickets/42': { scopes: [x] }\n      'support://handbook/*': { scopes: [x] }\n      '*': { scopes: [x] }\n";
    let (code, found) = check(text, &["--live"], "findings");
    assert_eq!(
        (code, found.len(), found[0].1.as_str()),
        (2, 1, "apps.support.resources.support://tikets/*"),
        "{found:?}"
    );
    assert!(found[0].2.contains("did you mean `support://tickets/{id}`"), "{found:?}");
}

#[tokio::test]
async fn many_items_that_clients_do_not_get_are_one_line_of_the_log_and_a_live_check_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    let hidden = |at: usize| stub::plain(&format!("t{at}\u{200b}"));
    let words = |at: usize| {
        let mut tool = stub::plain(&format!("w{at}"));
        tool["description"] = format!("Plain.<!-- {at} -->").into();
        tool
    };
    stub::set(folder.path(), &(0..40).flat_map(|at| [hidden(at), words(at)]).collect::<Vec<_>>());
    let text =
        json!({"codecall": {"enabled": false}, "apps": {"stub": stub::app(folder.path())}}).to_string();
    let mut served = Served::start(&text, &[]);
    let line = served.says("items that clients do not get as they are");
    assert!(line.contains("40 items") && line.contains("`gatewright check --live` lists them"), "{line}");
    let line = served.says("do not agree");
    assert!(line.contains("`w0` hide text") && line.contains("and 39 more"), "{line}");
    assert_eq!(served.readiness().await["config"]["unknownNames"], 40);
    let rest = served.terminate();
    assert!(!rest.iter().any(|line| line.contains("WARN")), "{rest:#?}");
    let (_, warnings) = check(&text, &["--live"], "warnings");
    assert_eq!(warnings.len(), 40, "{warnings:#?}");
    assert!(
        warnings.iter().all(|(_, path, problem)| path == "apps.stub" && problem.ends_with("it is left out"))
    );
    let (_, findings) = check(&text, &["--live"], "findings");
    assert_eq!(findings.len(), 40, "{findings:#?}");
}
