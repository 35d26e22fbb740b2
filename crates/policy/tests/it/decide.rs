//! Decisions, and what lists are told of them.

use std::{sync::Arc, time::SystemTime};

use gatewright_core::{
    AppOptions, Caller, Decision, Forbidden, Groups, LocalApp, PermittedTool, PolicyEngine as _,
    PolicyObject, PolicyRequest, PolicyResource, Principal, Registry, Scopes, ToolNames,
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool},
        service::RequestContext,
    },
};
use gatewright_policy::{CedarPolicies, PolicyFile};
use serde_json::{Value, json};

/// Serves a list of tools.
#[derive(Clone)]
struct Tools(Vec<Tool>);

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.0.clone()))
    }
}

/// The tools of an app `bank`, and policies on them.
pub(crate) struct Bank {
    pub(crate) registry: Arc<Registry>,
    pub(crate) policies: CedarPolicies,
}

fn read(text: &str) -> CedarPolicies {
    CedarPolicies::read(vec![PolicyFile { name: "p.cedar".to_owned(), text: text.to_owned() }]).unwrap()
}

pub(crate) fn caller(subject: &str, client: Option<&str>, scopes: &str) -> Principal {
    Principal {
        subject: subject.into(),
        client_id: client.map(Into::into),
        scopes: Scopes::parse(scopes),
        ..Principal::local()
    }
}

impl Bank {
    pub(crate) async fn new(policies: &str) -> Self {
        let tool = |name: &str, hints: Value| {
            let properties = json!({
                "amount": {"type": "number"}, "count": {"type": "integer"}, "to": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}}, "at": {"type": "object"},
            });
            json!({"name": name, "annotations": hints, "inputSchema": {"type": "object", "properties": properties}})
        };
        let tools = json!([
            tool("balance", json!({"readOnlyHint": true})),
            tool("transfer", json!({"destructiveHint": false})),
            tool("close", json!({})),
        ]);
        let server = Tools(serde_json::from_value(tools).unwrap());
        let registry = Registry::new(ToolNames::Colon);
        registry.add("bank", Arc::new(LocalApp::start(server).await.unwrap()), AppOptions::default());
        Self { registry, policies: read(policies) }
    }

    fn tool(&self, name: &str) -> PermittedTool {
        self.registry.view(&Caller::new(Principal::local())).tool(&format!("bank:{name}")).unwrap()
    }

    pub(crate) fn decide(&self, principal: &Principal, tool: &str, arguments: Value) -> String {
        let tool = self.tool(tool);
        let request = PolicyRequest {
            principal,
            object: tool.policy_object(),
            arguments: arguments.as_object(),
            script: false,
            calls: 0,
            time: SystemTime::now(),
        };
        let decision = self.policies.decide(&request);
        // The second time it is looked up.
        assert_eq!(decision, self.policies.decide(&request));
        assert_eq!(decision, self.policies.explain(&request).decision);
        match decision {
            Decision::Permit => "permit".to_owned(),
            Decision::Ask { policy, may_stand, approvers, .. } => {
                let by = approvers.map(|scope| format!(" by {scope}")).unwrap_or_default();
                format!("ask {policy}{}{by}", if may_stand { "" } else { " always" })
            }
            Decision::Forbid(Forbidden::Policy(policy)) => format!("forbid {policy}"),
            Decision::Forbid(Forbidden::NotPermitted) => "not permitted".to_owned(),
            Decision::Forbid(Forbidden::Ended | Forbidden::Changed) => "not by policies".to_owned(),
            Decision::Forbid(Forbidden::Failed { policy, why }) => {
                format!("failed {}: {why}", policy.as_deref().unwrap_or_default())
            }
        }
    }

    fn listed(&self, principal: &Principal) -> Vec<&'static str> {
        let may = |name: &&str| self.policies.may_permit(principal, &self.tool(name).policy_object());
        ["balance", "transfer", "close"].into_iter().filter(may).collect()
    }
}

#[tokio::test]
async fn the_strictest_policy_counts_and_without_one_nothing_passes() {
    let ada = caller("ada", None, "");
    let bank = Bank::new("").await;
    assert_eq!(bank.decide(&ada, "balance", json!({})), "not permitted");
    assert!(bank.listed(&ada).is_empty());

    let bank = Bank::new(
        "@id(\"base\") permit (principal, action, resource);
         @id(\"ask\") @ask(\"Why\") permit (principal, action, resource) when { context.arguments has to };
         @id(\"each\") @ask(\"Why\") @approval(\"always\") permit (principal, action, resource) when { context.arguments has count };
         @id(\"no\") forbid (principal, action, resource) when { context.arguments has tags };",
    )
    .await;
    assert_eq!(bank.decide(&ada, "transfer", json!({})), "permit");
    assert_eq!(bank.decide(&ada, "transfer", json!({"to": "a"})), "ask ask");
    assert_eq!(bank.decide(&ada, "transfer", json!({"to": "a", "count": 1})), "ask ask, each always");
    assert_eq!(bank.decide(&ada, "transfer", json!({"to": "a", "count": 1, "tags": []})), "forbid no");
}

#[tokio::test]
async fn every_policy_that_asks_is_asked_for_whatever_their_order() {
    let ada = caller("ada", None, "");
    let small = "@id(\"small\") @ask(\"Over 10\") @approvers(\"manager\") permit (principal, action, resource) when { context.arguments.count > 10 };";
    let large = "@id(\"large\") @ask(\"Over 1,000\") @approvers(\"director\") permit (principal, action, resource) when { context.arguments.count > 1000 };";
    let own = "@id(\"own\") @ask(\"Over 5,000\") permit (principal, action, resource) when { context.arguments.count > 5000 };";
    for order in [[small, large, own], [own, large, small]] {
        let bank = Bank::new(&order.join("\n")).await;
        let ask = |count: i64| bank.decide(&ada, "transfer", json!({"to": "a", "count": count}));
        assert_eq!(ask(50), "ask small by manager");
        assert_eq!(ask(1_001), "ask large, small by director manager");
        assert_eq!(ask(5_001), "ask large, own, small by director manager");
    }
}

#[tokio::test]
async fn lists_leave_out_what_can_never_be_permitted_in_whatever_order_conditions_are_written() {
    for rule in [
        "permit (principal, action, resource) when { principal.subject == \"ada\" };",
        "permit (principal, action, resource) when { context.arguments.amount.lessThan(decimal(\"5.0\")) && principal.subject == \"ada\" };",
        "permit (principal, action, resource) when { if context.script then principal.subject == \"ada\" else false };",
        "permit (principal == User::\"ada\", action, resource) when { context.script || context.calls < 3 };",
        "permit (principal, action, resource); forbid (principal, action, resource) unless { principal.subject == \"ada\" };",
        "permit (principal, action, resource) unless { principal.subject != \"ada\" };",
    ] {
        let bank = Bank::new(rule).await;
        assert_eq!(bank.listed(&caller("ada", None, "")).len(), 3, "{rule}");
        assert!(bank.listed(&caller("bob", None, "")).is_empty(), "{rule}");
    }
}

#[tokio::test]
async fn tools_are_told_apart_by_name_and_by_what_they_may_do() {
    let ada = caller("ada", None, "");
    for (rule, listed) in [
        ("permit (principal, action, resource is Tool) when { resource.readOnly };", &["balance"][..]),
        (
            "permit (principal, action, resource is Tool) when { !resource.destructive };",
            &["balance", "transfer"],
        ),
        ("permit (principal, action, resource == Tool::\"bank:close\");", &["close"]),
        (
            "permit (principal, action, resource is Tool) when { resource.name like \"bank:*s*\" };",
            &["transfer", "close"],
        ),
        (
            "permit (principal, action, resource) when { [Tool::\"bank:balance\", Tool::\"bank:close\"].contains(resource) };",
            &["balance", "close"],
        ),
        ("permit (principal, action, resource in App::\"bank\");", &["balance", "transfer", "close"]),
        ("permit (principal, action, resource in App::\"other\");", &[]),
        ("permit (principal, action == Action::\"read\", resource);", &[]),
    ] {
        assert_eq!(Bank::new(rule).await.listed(&ada), listed, "{rule}");
    }
}

#[tokio::test]
async fn callers_are_told_apart_by_all_that_policies_look_at() {
    let bank = Bank::new(
        "permit (principal, action, resource) when { principal.scopes.contains(\"bank:write\") };
         permit (principal, action, resource == Tool::\"bank:balance\") when { principal has client && principal.client == \"desk\" };
         permit (principal == User::\"root\", action, resource);",
    )
    .await;
    for (caller, listed) in [
        (caller("ada", None, "bank:write"), 3),
        (caller("ada", None, "bank:*"), 3),
        (caller("ada", None, "*"), 3),
        (Principal { scopes: Scopes::All, ..caller("ada", None, "") }, 3),
        (caller("ada", None, "bank:writer bank"), 0),
        (caller("ada", Some("desk"), ""), 1),
        (caller("ada", Some(""), ""), 0),
        (caller("root", Some("other"), ""), 3),
    ] {
        assert_eq!(bank.listed(&caller).len(), listed, "{caller:?}");
    }
}

fn member(groups: &[&str]) -> Principal {
    Principal { groups: Groups::new(groups.iter().copied()).unwrap(), ..caller("ada", None, "") }
}

#[tokio::test]
async fn groups_decide_and_lists_show_each_caller_what_its_own_groups_permit() {
    let bank = Bank::new(
        "@id(\"all\") permit (principal, action, resource == Tool::\"bank:balance\");
         @id(\"tellers\") permit (principal, action, resource == Tool::\"bank:transfer\") when { principal.groups.contains(\"tellers\") };
         @id(\"bosses\") permit (principal, action, resource == Tool::\"bank:close\")
         when { principal.groups.containsAny([\"bosses\", \"owners of it\"]) && context.calls == 0 };
         @id(\"guests\") forbid (principal, action, resource) when { principal.groups.contains(\"guests\") };",
    )
    .await;
    let all = ["balance", "transfer", "close"];
    // Twice, as the second time is looked up.
    for _ in 0..2 {
        for (groups, listed) in [
            (&[] as &[&str], &all[..1]),
            (&["tellers"], &all[..2]),
            (&["tellers", "bosses"], &all[..]),
            (&["owners of it", "tellers"], &all[..]),
            // Nothing but whole names counts.
            (&["tellers bosses", "owners", "of", "it", "Tellers"], &all[..1]),
            (&["tellers", "guests"], &all[..0]),
        ] {
            assert_eq!(bank.listed(&member(groups)), listed, "{groups:?}");
        }
    }
    assert_eq!(bank.decide(&member(&["tellers"]), "transfer", json!({})), "permit");
    assert_eq!(bank.decide(&member(&[]), "transfer", json!({})), "not permitted");
    assert_eq!(bank.decide(&member(&["bosses"]), "close", json!({})), "permit");
    assert_eq!(bank.decide(&member(&["tellers", "guests"]), "transfer", json!({})), "forbid guests");
}

#[tokio::test]
async fn no_scope_puts_a_caller_in_a_group_and_no_group_stands_for_a_scope() {
    let bank = Bank::new(
        "permit (principal, action, resource == Tool::\"bank:balance\") when { principal.groups.contains(\"ops\") };
         permit (principal, action, resource == Tool::\"bank:close\") when { principal.scopes.contains(\"ops\") };",
    )
    .await;
    assert_eq!(bank.listed(&Principal::local()), ["close"]);
    assert_eq!(bank.listed(&caller("ada", None, "*")), ["close"]);
    assert_eq!(bank.listed(&caller("ada", None, "ops")), ["close"]);
    assert_eq!(bank.listed(&member(&["ops"])), ["balance"]);
    assert!(bank.listed(&member(&["*"])).is_empty());
}

#[tokio::test]
async fn callers_whose_attributes_run_into_each_other_when_joined_are_told_apart() {
    let bank = Bank::new(
        "permit (principal, action, resource) when { principal.scopes.contains(\"a\") };
         permit (principal, action, resource) when { principal has client && principal.client == \"c\" && principal.groups.contains(\"g\") };",
    )
    .await;
    let joined = |scope: &str| Scopes::Granted([scope.to_owned()].into());
    let of_groups =
        |client: &str, groups: &[&str]| Principal { client_id: Some(client.into()), ..member(groups) };
    for (principal, may) in [
        (caller("ada", None, "a b"), true),
        (Principal { scopes: joined("a b"), ..caller("ada", None, "") }, false),
        (Principal { scopes: joined("b a "), ..caller("ada", None, "") }, false),
        (of_groups("c", &["g", "h"]), true),
        (of_groups("c", &["g h"]), false),
        (of_groups("c1:g", &[]), false),
        (of_groups("cm1:g", &[]), false),
        (of_groups("c\0g", &[]), false),
    ] {
        assert_eq!(bank.listed(&principal).len(), if may { 3 } else { 0 }, "{principal:?}");
    }
}

#[test]
fn the_schema_knows_groups_as_a_set_of_strings() {
    for (condition, is_right) in [
        ("principal.groups.contains(\"ops\")", true),
        ("principal.groups.containsAll([\"ops\", \"dev\"])", true),
        ("principal.group.contains(\"ops\")", false),
        ("principal.groups == \"ops\"", false),
        ("principal.groups.contains(7)", false),
    ] {
        let policies = read(&format!("permit (principal, action, resource) when {{ {condition} }};"));
        let found = policies.check(None);
        assert_eq!(found.is_empty(), is_right, "{condition}: {found:?}");
    }
}

#[tokio::test]
async fn a_failing_policy_denies_and_a_hostile_argument_is_no_way_around_it() {
    let ada = caller("ada", None, "");
    let bank = Bank::new(
        "permit (principal, action, resource);
         @id(\"big\") forbid (principal, action == Action::\"call\", resource == Tool::\"bank:transfer\")
         when { context.arguments.amount.greaterThan(decimal(\"1000.0\")) };",
    )
    .await;
    for (arguments, expected) in [
        (json!({"amount": 1000}), "permit"),
        (json!({"amount": 1000.0001}), "forbid big"),
        (json!({"amount": 1001}), "forbid big"),
        (json!({}), "failed big: "),
        (json!({"amount": null}), "failed big: "),
        (json!({"amount": "1"}), "failed big: "),
        (json!({"amount": [1]}), "failed big: "),
        (json!({"amount": 1e300}), "failed big: the argument `amount` is "),
        (json!({"amount": 0.123_456}), "failed big: the argument `amount` is "),
        (json!({"amount": 5, "at": (0..100).fold(json!(1), |inner, _| json!([inner]))}), "permit"),
        (json!({"amount": 5, "tags": vec!["x".repeat(100); 10_000]}), "permit"),
    ] {
        let found = bank.decide(&ada, "transfer", arguments.clone());
        assert!(found.starts_with(expected), "{found}");
        assert!(found.len() < 500, "failures are short");
        assert_eq!(bank.decide(&ada, "balance", arguments), "permit", "a policy on another tool");
    }
    let bank = Bank::new("permit (principal, action, resource); forbid (principal, action, resource) when { principal.client == \"x\" };").await;
    assert!(bank.decide(&ada, "balance", json!({})).starts_with("failed p.cedar:1:39: "));
    assert!(bank.listed(&ada).is_empty());
    assert_eq!(bank.decide(&caller("ada", Some("y"), ""), "balance", json!({})), "permit");
}

#[tokio::test]
async fn arguments_that_policies_read_are_bounded() {
    let ada = caller("ada", None, "");
    let bank =
        Bank::new("permit (principal, action, resource) when { context.arguments.tags.contains(\"a\") };")
            .await;
    assert_eq!(bank.decide(&ada, "close", json!({"tags": ["b", "a"]})), "permit");
    for tags in [json!(vec!["a"; 3_000]), json!(["a", "x".repeat(70_000)])] {
        let found = bank.decide(&ada, "close", json!({"tags": tags}));
        assert!(found.starts_with("failed p.cedar:1: the argument `tags` is too large"), "{found}");
    }
}

#[test]
fn a_uri_that_can_be_written_in_several_ways_is_denied_where_it_matters() {
    let ada = caller("ada", None, "");
    let decide = |policies: &str, uri: &str, is_plain: bool| {
        let object = PolicyObject::Resource(PolicyResource { app: "files", uri, is_plain });
        let policies = read(policies);
        let request = PolicyRequest {
            principal: &ada,
            object,
            arguments: None,
            script: false,
            calls: 0,
            time: SystemTime::now(),
        };
        let decision = policies.decide(&request);
        let is_permitted = matches!(decision, Decision::Permit);
        assert_eq!(policies.may_permit(&ada, &request.object), is_permitted, "completions and subscriptions");
        match decision {
            Decision::Permit => "permit",
            Decision::Forbid(Forbidden::Failed { why, .. }) if why.contains("several ways") => "unclear",
            Decision::Forbid(_) => "forbid",
            Decision::Ask { .. } => "ask",
        }
    };
    let by_pattern = "permit (principal, action, resource); forbid (principal, action, resource is Resource) when { resource.uri like \"file:///secret/*\" };";
    let by_name = "permit (principal, action, resource); forbid (principal, action, resource == Resource::\"file:///secret/a\");";
    let by_app = "permit (principal, action, resource in App::\"files\");";
    assert_eq!(decide(by_pattern, "file:///public/a", true), "permit");
    assert_eq!(decide(by_pattern, "file:///Secret/a", true), "forbid", "letter case does not count");
    assert_eq!(decide(by_pattern, "file:///public/../secret/a", false), "unclear");
    assert_eq!(decide(by_name, "file:///secret/a", true), "forbid");
    assert_eq!(decide(by_name, "file:///secret/b", true), "permit");
    assert_eq!(decide(by_name, "file:///x/../secret/a", false), "unclear");
    assert_eq!(decide(by_app, "file:///x/../secret/a", false), "permit");
}

#[test]
fn templates_are_listed_while_some_uri_of_theirs_can_be_read() {
    let ada = caller("ada", None, "");
    let listed = |policies: &str| {
        read(policies).may_permit(&ada, &PolicyObject::Template { app: "files", template: "file:///{path}" })
    };
    assert!(listed(
        "permit (principal, action, resource is Resource) when { resource.uri like \"file:///a*\" };"
    ));
    assert!(listed("permit (principal, action, resource == Resource::\"file:///a\");"));
    assert!(!listed("permit (principal, action, resource in App::\"other\");"));
    assert!(!listed("permit (principal, action == Action::\"call\", resource);"));
}

#[tokio::test]
async fn one_approval_is_by_others_and_of_each_time_where_one_of_several_policies_says_so() {
    let bank = Bank::new(
        "@id(\"own\") @ask(\"Why\") permit (principal, action, resource);
         @id(\"each\") @ask(\"Why\") @approval(\"always\") permit (principal, action, resource) when { context.arguments has count };
         @id(\"boss\") @ask(\"Why\") @approvers(\"bank:approve\") permit (principal, action, resource) when { context.arguments has to };",
    )
    .await;
    let ada = caller("ada", None, "");
    for (arguments, expected) in [
        (json!({}), "ask own"),
        (json!({"count": 1}), "ask each, own always"),
        (json!({"to": "bob"}), "ask boss, own by bank:approve"),
        (json!({"to": "bob", "count": 1}), "ask boss, each, own always by bank:approve"),
    ] {
        assert_eq!(bank.decide(&ada, "close", arguments.clone()), expected, "{arguments}");
    }
}

#[test]
fn approvers_are_one_scope_beside_an_ask() {
    let problem = |text: &str| {
        let file = PolicyFile { name: "p.cedar".to_owned(), text: text.to_owned() };
        CedarPolicies::read(vec![file]).unwrap_err()[0].to_string()
    };
    let lone = problem("@approvers(\"a\") permit (principal, action, resource);");
    assert!(lone.contains("`@approvers` belongs beside `@ask"), "{lone}");
    for scope in ["", "a b", "a:*"] {
        let text = format!("@ask(\"Why\") @approvers(\"{scope}\") permit (principal, action, resource);");
        assert!(problem(&text).contains("names one scope"), "{scope}");
    }
}

#[tokio::test]
async fn a_condition_that_fails_for_every_request_is_found_without_one() {
    for (condition, fails) in [
        ("9223372036854775807 + 1 > 0", true),
        ("context.hour > 3 && 9223372036854775807 * 2 > 0", false),
        ("-9223372036854775807 - 2 < 0 || context.hour > 3", true),
        ("principal.subject == \"ann\"", false),
        ("User::\"ann\".subject == \"ann\"", false),
        ("true || 9223372036854775807 + 1 > 0", false),
    ] {
        let policies = read(&format!("permit (principal, action, resource) when {{ {condition} }};"));
        let problems = policies.check(None);
        let is_found = problems.iter().any(|one| one.problem.contains("cannot be evaluated"));
        assert_eq!(is_found, fails, "{condition}: {problems:?}");
        if fails {
            let bank =
                Bank::new(&format!("permit (principal, action, resource) when {{ {condition} }};")).await;
            let decided = bank.decide(&caller("ada", None, ""), "close", json!({}));
            assert!(decided.contains("overflow"), "{condition}: {decided}");
        }
    }
}
