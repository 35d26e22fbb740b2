//! Policies: the ten of docs/POLICIES.md, what clients see of them, and the commands about them.

use std::{fs, path::PathBuf, process::Command};

use gatewright::{Builder, LocalApp};
use gatewright_core::Policies;
use gatewright_demo::Everything;
use gatewright_policy::{CedarPolicies, PolicyFile};
use gatewright_testing::{expect, test_use};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Demo, Gateways, gatewright};

test_use! {}

const APPS: &str = "codecall: { enabled: false }\napps:\n  crm: { builtin: crm }\n  billing: { builtin: billing }\n  support: { builtin: support }\n  \
                    everything: { builtin: everything }\n";

/// A folder with a configuration of the sample apps and these policies.
struct Setup(TempDir);

impl Setup {
    fn new(policies: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("gatewright.yaml"), format!("{APPS}policies: [rules.cedar]\n")).unwrap();
        fs::write(folder.path().join("rules.cedar"), policies).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit code and standard output of a command on the configuration.
    fn run(&self, args: &[&str]) -> (i32, String) {
        let (command, rest) = args.split_at(if args[0] == "check" { 1 } else { 2 });
        let output = Command::new(gatewright())
            .args(command)
            .arg("--config")
            .arg(self.path("gatewright.yaml"))
            .args(rest)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), format!("{text}{}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// The policies of docs/POLICIES.md.
fn documented() -> String {
    let text = include_str!("../../../../docs/POLICIES.md");
    let blocks = text.split("```cedar\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_documented_policies_decide_as_they_say() {
    let policies = documented();
    let setup = Setup::new(&policies);
    let (code, text) = setup.run(&["check"]);
    assert_eq!(code, 0, "{text}");

    let set_price = |cents: u64| json!({"tool": "billing:products_set_price", "arguments": {"id": "prd_0005", "priceCents": cents}});
    let delete = json!({"tool": "crm:users_delete", "arguments": {"id": "usr_0002"}});
    let update = |more: Value| {
        let mut arguments = json!({"id": "usr_0002"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"tool": "crm:users_update", "arguments": arguments})
    };
    let send = json!({"tool": "billing:invoices_send", "arguments": {"id": "inv_0001"}});
    let biller = json!({"subject": "bo", "groups": ["billing", "all staff"]});
    let (friday, night, sunday) = ("2026-07-31T14:30:00Z", "2026-07-31T22:30:00Z", "2026-08-02T14:30:00Z");
    let cases = [
        (set_price(100_000), biller.clone(), "permit", "base"),
        (set_price(100_001), biller.clone(), "ask", "large-prices"),
        (delete.clone(), json!({"scopes": ["crm:delete"]}), "forbid", "deletes-by-admins"),
        (delete.clone(), json!({"scopes": ["crm:delete", "crm:admin"]}), "permit", "base"),
        (delete, json!({"scopes": ["crm:*"]}), "permit", "base"),
        (json!({"tool": "crm:users_list"}), json!({"client": "reader"}), "permit", "base"),
        (update(json!({"name": "A"})), json!({"client": "reader"}), "forbid", "reader-client"),
        (update(json!({"name": "A"})), json!({"client": "writer"}), "permit", "base"),
        (json!({"tool": "billing:products_list"}), json!({"subject": "ann"}), "forbid", "billing-team"),
        (json!({"tool": "billing:products_list"}), json!({"groups": ["sales"]}), "forbid", "billing-team"),
        (json!({"tool": "billing:products_list"}), biller.clone(), "permit", "base"),
        (send.clone(), json!({"groups": ["billing"], "at": friday}), "permit", "base"),
        (send.clone(), json!({"groups": ["billing"], "at": night}), "forbid", "office-hours"),
        (send.clone(), json!({"groups": ["billing"], "at": sunday}), "forbid", "office-hours"),
        (update(json!({"email": "b@northwind.example"})), json!({}), "permit", "base"),
        (update(json!({"email": "b@elsewhere.example"})), json!({}), "forbid", "own-domain"),
        (update(json!({"role": "admin"})), json!({}), "ask", "new-admins"),
        (update(json!({"role": "viewer"})), json!({}), "permit", "base"),
        (update(json!({"name": "A"})), json!({"script": true, "calls": 19}), "permit", "base"),
        (update(json!({"name": "A"})), json!({"script": true, "calls": 20}), "ask", "long-scripts"),
        (json!({"tool": "crm:users_list"}), json!({"script": true, "calls": 99}), "permit", "base"),
        (send, json!({"groups": ["billing"], "at": friday, "script": true}), "forbid", "no-world-in-scripts"),
        (
            json!({"resource": "test://watched-resource"}),
            json!({"subject": "ann"}),
            "forbid",
            "watched-resources",
        ),
        (json!({"resource": "test://watched-resource"}), json!({"subject": "auditor"}), "permit", "base"),
        (json!({"resource": "test://static-text"}), json!({"subject": "ann"}), "permit", "base"),
    ];
    let mut decided: Vec<&str> = cases.iter().map(|(.., policy)| *policy).collect();
    decided.sort_unstable();
    decided.dedup();
    assert_eq!(decided.len(), 11, "each of the ten and the base decides once at least: {decided:?}");
    assert_eq!(policies.matches("@id(").count(), 11);
    let cases: Vec<Value> = cases
        .into_iter()
        .map(|(mut case, caller, expect, policy)| {
            let all = case.as_object_mut().unwrap();
            all.extend(caller.as_object().unwrap().clone());
            all.extend(json!({"expect": expect, "policy": policy}).as_object().unwrap().clone());
            case
        })
        .collect();
    let file = setup.path("cases.json");
    fs::write(&file, json!({"cases": cases}).to_string()).unwrap();
    let (code, text) = setup.run(&["policy", "test", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("25 cases passed"), "{text}");
}

#[test]
fn a_case_that_differs_fails_the_test_command_and_is_named() {
    let setup = Setup::new("@id(\"base\") permit (principal, action, resource);");
    let cases = "cases:\n  - { name: closed, tool: crm:users_list, expect: forbid }\n  - { tool: crm:users_lst, expect: permit }\n";
    let file = setup.path("cases.yaml");
    fs::write(&file, cases).unwrap();
    let (code, text) = setup.run(&["policy", "test", file.to_str().unwrap()]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("closed: expected forbid, decided permit by base"), "{text}");
    assert!(
        text.contains(
            "case 2: there is no tool `crm:users_lst` for this caller; did you mean `crm:users_list`?"
        ),
        "{text}"
    );
    assert!(text.contains("2 of 2 cases failed"), "{text}");
}

#[test]
fn explain_names_the_decision_and_every_policy_that_applies() {
    let setup = Setup::new(&documented());
    let arguments = r#"{"id": "prd_0005", "priceCents": 250000}"#;
    let explain = |more: &[&str]| {
        let tool = ["policy", "explain", "--tool", "billing:products_set_price", "--arguments", arguments];
        setup.run(&[&tool[..], more].concat())
    };
    let (code, text) = explain(&["--group", "sales", "--group", "billing"]);
    assert_eq!(code, 0, "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ask by large-prices: Price over 1,000.00");
    assert!(lines[1].starts_with("  permit base (rules.cedar:1)"), "{text}");
    assert!(lines[2].starts_with("  ask large-prices (rules.cedar:"), "{text}");

    let (_, text) = explain(&["--group", "sales", "--json"]);
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    assert_eq!((&body["decision"], &body["policy"]), (&json!("forbid"), &json!("billing-team")));

    let (_, text) = explain(&["--subject", "bo@billing.example", "--scope", "crm:read"]);
    assert!(
        text.starts_with("forbid: the caller lacks the scope billing:write; policies are not asked"),
        "{text}"
    );
    let (code, text) = explain(&["--group", ""]);
    assert!(code == 2 && text.contains("at most 200 groups, with names of 1 to 256 bytes"), "{text}");
    let (code, text) = setup.run(&["policy", "explain", "--tool", "crm:users_get", "--arguments", "{}"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("the arguments do not fit the tool"), "{text}");
}

#[test]
fn a_rehearsal_lists_what_policy_files_and_short_forms_decide_and_fails_where_they_forbid() {
    let setup = Setup::new(
        "@id(\"base\") permit (principal, action, resource);
         @id(\"no-deletes\") forbid (principal, action, resource == Tool::\"crm:users_delete\");
         @id(\"large-prices\") @ask(\"Price over 1,000.00\") @approvers(\"billing:approve\")
         permit (principal, action == Action::\"call\", resource == Tool::\"billing:products_set_price\")
         when { context.arguments.priceCents > 100000 };",
    );
    let config = fs::read_to_string(setup.path("gatewright.yaml")).unwrap();
    let config = config.replace("codecall: { enabled: false }", "approvals: { writes: ask }");
    fs::write(setup.path("gatewright.yaml"), config).unwrap();
    let script = "
        await callTool('billing:products_get', { id: 'prd_0005' });
        await callTool('billing:products_set_price', { id: 'prd_0005', priceCents: 250000 });
        await callTool('billing:products_set_price', { id: 'prd_0005', priceCents: 5 });
        try { await callTool('crm:users_delete', { id: 'usr_0002' }) } catch (error) { return error.code }
    ";
    fs::write(setup.path("plan.js"), script).unwrap();
    let plan = setup.path("plan.js");
    let (_, text) = setup.run(&["tools", "run", "--dry-run", plan.to_str().unwrap()]);
    let body: Value = serde_json::Deserializer::from_str(&text).into_iter().next().unwrap().unwrap();
    assert_eq!((&body["status"], &body["result"]), (&json!("ok"), &json!("ACCESS_DENIED")), "{text}");
    let calls = body["dryRun"]["calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["made"], calls[0].get("policy")), (4, &json!(true), None), "{text}");
    assert_eq!(
        calls[1]["policy"],
        json!({"decision": "ask", "id": "large-prices", "reason": "Price over 1,000.00",
            "approver": "somebody else with the scope `billing:approve`"})
    );
    assert_eq!(
        calls[2]["policy"],
        json!({"decision": "ask", "id": "approvals.writes", "reason": "the tool may change something",
            "approver": "the caller"})
    );
    assert_eq!((&calls[2]["arguments"]["priceCents"], &calls[2]["made"]), (&json!(5), &json!(false)));
    assert_eq!(
        calls[3]["policy"],
        json!({"decision": "forbid", "id": "no-deletes", "reason": "the policy `no-deletes` forbids it"})
    );
}

#[test]
fn check_names_what_policies_get_wrong_with_file_line_and_advice() {
    let mut missed = Vec::new();
    for (policy, place, parts) in [
        (
            "permit (principal, action, resource == Tool::\"crm:users_delte\");",
            1,
            &["there is no tool `crm:users_delte`; did you mean `crm:users_delete`?"][..],
        ),
        (
            "permit (principal, action, resource in App::\"suport\");",
            1,
            &["there is no app `suport`; did you mean `support`?"],
        ),
        (
            "permit (principal, action, resource)\nwhen { principal.subjekt == \"ann\" };",
            2,
            &["subjekt", "subject"],
        ),
        (
            "permit (principal, action, resource)\nwhen { principal.group.contains(\"ops\") };",
            2,
            &["group", "groups"],
        ),
        (
            "permit (principal, action == Action::\"call\", resource is Tool)\nwhen { resource.name == \"crm:users_delte\" };",
            2,
            &["there is no tool or prompt `crm:users_delte`; did you mean `crm:users_delete`?"],
        ),
        (
            "permit (principal, action == Action::\"call\", resource is Tool)\nunless {\n[\"crm:users_delete\", \"users_list\"].contains(resource.name) };",
            3,
            &["there is no tool or prompt `users_list`"],
        ),
        (
            "permit (principal, action == Action::\"call\", resource)\nwhen { resource.app == \"suport\" };",
            2,
            &["there is no app `suport`; did you mean `support`?"],
        ),
        (
            "permit (principal, action == Action::\"call\", resource is Tool)\nwhen { resource.name == \"crm:users_delete\" &&\nresource.name == \"crm:users_update\" };",
            3,
            &[
                "never matches: `resource.name` has to be `\"crm:users_delete\"`, and cannot be `\"crm:users_update\"` as well",
            ],
        ),
        ("permit (principal, action == Action::\"cal\", resource);", 1, &["Action::\"cal\"", "call"]),
        (
            "permit (principal, action == Action::\"call\", resource == Tool::\"billing:products_set_price\")\nwhen {\n  context.arguments.pricecents > 1 };",
            3,
            &["pricecents", "priceCents"],
        ),
        (
            "permit (principal, action == Action::\"call\", resource == Tool::\"crm:users_update\")\nwhen { context.arguments.role == \"admin\" };",
            2,
            &["role", "optional"],
        ),
        (
            "permit (principal, action == Action::\"call\", resource == Tool::\"billing:products_set_price\")\nwhen { context.arguments.priceCents > \"a\" };",
            2,
            &["Long", "String"],
        ),
        ("permit (principal, action == Action::\"read\", resource is Tool);", 1, &["applicable action"]),
        ("permit (principal, action, resource is Tool) when { resource is Prompt };", 1, &["impossible"]),
        (
            "forbid (principal, action, resource);",
            1,
            &["no policy permits anything", "permit (principal, action, resource);"],
        ),
        ("permit (principal, action, resource)\nwhen { x };", 2, &["x"]),
        ("@ask(\"Why\") forbid (principal, action, resource);", 1, &["what is forbidden cannot be approved"]),
        ("@ask permit (principal, action, resource);", 1, &["needs a reason"]),
        (
            "@id(\"a\") permit (principal, action, resource);\n@id(\"a\") permit (principal, action, resource);",
            2,
            &["is also that of rules.cedar:1"],
        ),
        ("permit (principal == ?principal, action, resource);", 1, &["slots"]),
        (
            "permit (principal, action, resource);\nforbid (principal, action == Action::\"call\", resource)\nwhen { 9223372036854775807 + 1 > 0 };",
            2,
            &["cannot be evaluated", "every request", "overflow"],
        ),
    ] {
        let (code, text) = Setup::new(policy).run(&["check", "--json"]);
        let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{policy}: {text}"));
        assert_eq!(code, 2, "{policy}: {text}");
        let findings = body["findings"].as_array().unwrap();
        let is_it = |finding: &Value| {
            let problem = finding["problem"].as_str().unwrap();
            let is_there =
                finding["line"] == place && finding["file"].as_str().unwrap().ends_with("/rules.cedar");
            is_there && parts.iter().all(|part| problem.contains(part))
        };
        if !findings.iter().any(is_it) {
            missed.push(format!("{policy}: {place} {parts:?}: {findings:#?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn conditions_on_arguments_of_several_tools_need_a_guard_and_then_fit() {
    let unguarded = "permit (principal, action, resource);\nforbid (principal, action == Action::\"call\", resource in App::\"crm\")\nwhen { context.arguments.email == \"a\" };";
    let (code, text) = Setup::new(unguarded).run(&["check"]);
    assert!(code == 2 && text.contains("rules.cedar:3: ") && text.contains("optional"), "{text}");
    let guarded = unguarded
        .replace("context.arguments.email ==", "context.arguments has email && context.arguments.email ==");
    let (code, text) = Setup::new(&guarded).run(&["check"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn without_the_apps_only_what_needs_no_catalog_is_checked() {
    let misnamed = "permit (principal, action, resource == Tool::\"crm:users_delte\");";
    assert_eq!(Setup::new(misnamed).run(&["check", "--offline"]).0, 0);
    let (code, text) = Setup::new("permit (principal, action, resource) when { principal.nam == \"a\" };")
        .run(&["check", "--offline"]);
    assert!(code == 2 && text.contains("rules.cedar:1: "), "{text}");
}

#[test]
fn files_that_are_not_there_are_problems_with_their_place() {
    let setup = Setup::new("permit (principal, action, resource);");
    let check = |policies: &str| {
        fs::write(setup.path("gatewright.yaml"), format!("{APPS}policies: {policies}\n")).unwrap();
        let (code, text) = setup.run(&["check", "--json"]);
        let body: Value = serde_json::from_str(&text).unwrap();
        (code, body["findings"][0]["path"].clone(), body["findings"][0]["problem"].clone())
    };
    assert_eq!(check("[\"*.cedar\"]").0, 0);
    let (code, path, problem) = check("[\"rules.cedar\", \"more.cedar\"]");
    assert!(
        code == 2 && path == "policies.1" && problem.as_str().unwrap().contains("more.cedar cannot be read"),
        "{path} {problem}"
    );
    assert_eq!(check("[\"team-*.cedar\"]").2, "matches no file");
    assert!(check("[\"*/rules.cedar\"]").2.as_str().unwrap().contains("file's name only"));
}

/// The sample apps and one with resources and prompts, every tool listed, under these policies.
async fn under(gateways: &Gateways, policies: &str) -> Demo {
    let everything = LocalApp::start(Everything::new()).await.unwrap();
    let builder: Builder =
        crate::support::sample_apps().await.app("everything", std::sync::Arc::new(everything));
    let demo = gateways.start(builder, json!({"mode": "metadata_driven"})).await;
    let file = PolicyFile { name: "rules.cedar".to_owned(), text: policies.to_owned() };
    let engine = CedarPolicies::read(vec![file]).unwrap();
    let policies = Policies { engine: Some(std::sync::Arc::new(engine)), ..Policies::default() };
    demo.running.gateway().registry().set_policies(Some(policies));
    demo
}

const NO_DELETES: &str = "@id(\"base\") permit (principal, action, resource);
@id(\"no-deletes\") forbid (principal, action == Action::\"call\", resource is Tool) when { resource.destructive };
@id(\"new-admins\") @ask(\"Makes somebody an administrator\")
permit (principal, action == Action::\"call\", resource == Tool::\"crm:users_update\")
when { context.arguments has role && context.arguments.role == \"admin\" };
@id(\"two-calls\") forbid (principal, action == Action::\"call\", resource) when { context.calls >= 2 };
@id(\"closed\") forbid (principal, action == Action::\"read\", resource is Resource) when { resource.uri like \"test://watched*\" };
@id(\"no-prompts\") forbid (principal, action == Action::\"get\", resource);";

#[gatewright_testing::test]
async fn lists_search_and_describe_show_what_can_be_permitted_only(gateways: Gateways) {
    let demo = under(&gateways, NO_DELETES).await;
    let names: Vec<String> = demo.listed().await.iter().map(|tool| tool.name.to_string()).collect();
    assert!(names.iter().any(|name| name == "crm:users_update"), "what is asked for can be permitted");
    assert!(!names.iter().any(|name| name == "crm:users_delete"), "{names:?}");
    let found = demo.meta("search", json!({"query": "delete a user", "topK": 20})).await;
    let hits: Vec<&str> =
        found["tools"].as_array().unwrap().iter().map(|hit| hit["name"].as_str().unwrap()).collect();
    assert!(!hits.is_empty() && !hits.contains(&"crm:users_delete"), "{hits:?}");
    let described = demo.meta("describe", json!({"toolNames": ["crm:users_delete", "crm:users_get"]})).await;
    assert_eq!(described["notFound"], json!(["crm:users_delete"]));
    let got = demo.run("try { await getTool('crm:users_delete') } catch (error) { return error.code }").await;
    assert_eq!(got["result"], "TOOL_NOT_FOUND", "{got}");
    let resources = demo.result("return (await listResources()).map(resource => resource.uri)").await;
    let uris: Vec<&str> = resources.as_array().unwrap().iter().map(|uri| uri.as_str().unwrap()).collect();
    assert!(uris.contains(&"test://static-text") && !uris.contains(&"test://watched-resource"), "{uris:?}");
}

#[gatewright_testing::test]
async fn direct_calls_invoke_and_scripts_are_decided_alike(gateways: Gateways) {
    let demo = under(&gateways, NO_DELETES).await;
    let delete = json!({"id": "usr_0002"});
    let direct = demo.call("crm:users_delete", delete.clone()).await;
    expect(&direct).to_be_error();
    assert_eq!(direct.text(), "tool `crm:users_delete` is not available: the policy `no-deletes` forbids it");
    let invoked = demo.meta("invoke", json!({"tool": "crm:users_delete", "input": delete})).await;
    assert_eq!(invoked["error"]["code"], "ACCESS_DENIED");
    assert!(invoked["error"]["message"].as_str().unwrap().contains("`no-deletes`"), "{invoked}");
    let caught = demo
        .result("try { await callTool('crm:users_delete', { id: 'usr_0002' }) } catch (error) { return [error.code, error.message] }")
        .await;
    assert_eq!(caught[0], "ACCESS_DENIED");
    assert!(caught[1].as_str().unwrap().contains("`no-deletes`"), "{caught}");

    let update = json!({"id": "usr_0002", "role": "admin"});
    // The client is asked, and declines.
    let direct = demo.call("crm:users_update", update.clone()).await;
    assert_eq!(direct.text(), "the call of `crm:users_update` was not approved");
    let invoked = demo.meta("invoke", json!({"tool": "crm:users_update", "input": update})).await;
    assert_eq!(invoked["error"]["code"], "APPROVAL_DENIED");
    let uncaught =
        demo.run("return await callTool('crm:users_update', { id: 'usr_0002', role: 'admin' })").await;
    assert_eq!(
        (&uncaught["status"], &uncaught["error"]["code"]),
        (&json!("tool_error"), &json!("APPROVAL_DENIED"))
    );
    expect(&demo.call("crm:users_update", json!({"id": "usr_0002", "role": "viewer"})).await)
        .to_be_successful();
    let kept = demo.result("return (await callTool('crm:users_get', { id: 'usr_0002' })).role").await;
    assert_eq!(kept, "viewer", "no refused call had an effect");
}

#[gatewright_testing::test]
async fn the_calls_of_one_script_are_counted_and_those_of_another_are_not(gateways: Gateways) {
    let demo = under(&gateways, NO_DELETES).await;
    let script = "const codes = [];
        for (const id of ['usr_0001', 'usr_0002', 'usr_0003']) {
          try { await callTool('crm:users_get', { id }); codes.push('ok') } catch (error) { codes.push(error.code) }
        }
        return codes";
    for _ in 0..2 {
        assert_eq!(demo.result(script).await, json!(["ok", "ok", "ACCESS_DENIED"]));
    }
}

#[gatewright_testing::test]
async fn resources_and_prompts_are_decided_on_in_scripts(gateways: Gateways) {
    let demo = under(&gateways, NO_DELETES).await;
    let script = "const outcome = async work => { try { await work(); return 'ok' } catch (error) { return error.code + ': ' + error.message } };
        return [
          await outcome(() => readResource('test://static-text')),
          await outcome(() => readResource('test://watched-resource')),
          await outcome(() => readResource('test://template/..%2Fwatched/data')),
          await outcome(() => getPrompt('test_simple_prompt', {})),
        ]";
    let found = demo.result(script).await;
    assert_eq!(found[0], "ok", "{found}");
    assert!(
        found[1]
            .as_str()
            .unwrap()
            .starts_with("ACCESS_DENIED: this is not available: the policy `closed` forbids it"),
        "{found}"
    );
    assert!(found[2].as_str().unwrap().contains("its URI can be written in several ways"), "{found}");
    assert!(found[3].as_str().unwrap().contains("the policy `no-prompts` forbids it"), "{found}");
}

#[gatewright_testing::test]
async fn a_policy_that_fails_denies_and_says_so(gateways: Gateways) {
    let rules = "permit (principal, action, resource);
@id(\"broken\") forbid (principal, action == Action::\"call\", resource == Tool::\"crm:users_list\") when { context.arguments.nothing == 1 };";
    let demo = under(&gateways, rules).await;
    let refused = demo.call("crm:users_list", json!({})).await;
    expect(&refused).to_be_error();
    assert!(
        refused.text().contains("the policy `broken` cannot be evaluated for it: "),
        "{}",
        refused.text()
    );
    assert!(refused.text().contains("nothing"), "{}", refused.text());
    expect(&demo.call("crm:users_get", json!({"id": "usr_0001"})).await).to_be_successful();
}
