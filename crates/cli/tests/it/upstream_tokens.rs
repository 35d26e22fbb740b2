//! `apps.X.auth: { type: oauth }` with the real binary: whose token goes where, and how a user is asked.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    gate::{Answer, CALLBACK, Gate, Person, Site, config, parameter},
    notes::Notes,
    production::Redis,
};

fn with_notes(notes: &Notes, auth: Value) -> Value {
    let mut all = config(json!({}));
    all["apps"]["notes"] = notes.app();
    let mut bob = all["auth"]["local"]["users"][0].clone();
    bob["username"] = json!("bob");
    all["auth"]["local"]["users"].as_array_mut().unwrap().push(bob);
    for (name, value) in auth.as_object().unwrap() {
        all["auth"][name] = value.clone();
    }
    all
}

pub struct User {
    pub person: Person,
    pub token: String,
}

pub async fn sign_in(gate: &Gate, name: &'static str) -> User {
    let mut person = Person { name: Some(name), ..Person::default() };
    let callback = person.authorize(gate, &gate.ask("app", CALLBACK, "crm:read")).await;
    let tokens = gate.redeem("app", CALLBACK, &parameter(&callback, "code")).await.json();
    User { person, token: tokens["access_token"].as_str().unwrap().to_owned() }
}

/// A call by a client of 2026-07-28 with these capabilities; `more` goes into the parameters.
pub async fn call(
    gate: &Gate,
    token: &str,
    tool: &str,
    input: Value,
    capabilities: Value,
    more: Value,
) -> Answer {
    let mut params = json!({"name": tool, "arguments": input, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities}});
    for (name, value) in more.as_object().unwrap() {
        match (name.as_str(), value) {
            ("_meta", Value::Object(more)) => params["_meta"].as_object_mut().unwrap().extend(more.clone()),
            _ => params[name] = value.clone(),
        }
    }
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
        ("authorization", &bearer),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    gate.send(Method::POST, "/mcp", &headers, body).await
}

/// The address that a client without URL elicitation is told.
async fn address(gate: &Gate, token: &str) -> String {
    let answer = call(gate, token, "notes:authorize", json!({}), json!({}), json!({})).await.json();
    let told = &answer["result"]["_meta"];
    assert_eq!(told["code"], "AUTHORIZATION_REQUIRED", "{answer}");
    told["url"].as_str().unwrap().to_owned()
}

async fn connected(notes: &Notes, gate: &Gate, name: &'static str) -> User {
    let mut user = sign_in(gate, name).await;
    let address = address(gate, &user.token).await;
    notes.connect(gate, &mut user.person, &address, &format!("{name}-over-there")).await;
    user
}

async fn whoami(gate: &Gate, user: &User) -> Value {
    // The list of tools comes with the first connection.
    for _ in 0..50 {
        let answer = call(gate, &user.token, "notes:whoami", json!({}), json!({}), json!({})).await;
        let body = answer.json();
        if body["result"]["structuredContent"]["sub"].is_string() {
            return body["result"]["structuredContent"]["sub"].clone();
        }
        gate.call(Some(&user.token), "notes:authorize", json!({})).await;
    }
    panic!("the tool did not come");
}

#[tokio::test]
async fn a_client_of_2026_07_28_is_asked_with_input_required_and_goes_on_with_its_answer() {
    let notes = Notes::start().await;
    let site = Site::start(&with_notes(&notes, json!({})));
    let gate = site.gate();
    let mut ada = sign_in(&gate, "ada").await;
    let early = call(&gate, &ada.token, "notes:whoami", json!({}), json!({}), json!({})).await.body;
    assert!(early.contains("AUTHORIZATION_REQUIRED") && early.contains("call `notes:authorize`"), "{early}");
    let takes_urls = json!({"elicitation": {"url": {}}});
    let asked = call(&gate, &ada.token, "notes:authorize", json!({}), takes_urls.clone(), json!({})).await;
    assert_eq!(asked.status, 200, "{}", asked.body);
    let result = asked.json()["result"].clone();
    assert_eq!(result["resultType"], "input_required", "{result}");
    let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(
        (&question["method"], &question["params"]["mode"]),
        (&json!("elicitation/create"), &json!("url")),
        "{question}"
    );
    let url = question["params"]["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("{}/oauth/connect?id=", gate.public)), "{url}");
    notes.connect(&gate, &mut ada.person, url, "ada-over-there").await;
    let mut more = json!({"inputResponses": {key: {"action": "accept"}}});
    if let Some(state) = result.get("requestState") {
        more["requestState"] = state.clone();
    }
    let done = call(&gate, &ada.token, "notes:authorize", json!({}), takes_urls, more).await.json();
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert!(
        done["result"]["content"][0]["text"].as_str().unwrap().contains("is authorized and has 1 tool"),
        "{done}"
    );
    assert!(!notes.requests().contains(key.as_str()), "the answer to our question is not the server's");
    assert_eq!(whoami(&gate, &ada).await, "ada-over-there");
}

#[tokio::test]
async fn each_user_acts_over_there_as_themselves_also_from_scripts_and_at_once() {
    let notes = Notes::start().await;
    let site = Site::start(&with_notes(&notes, json!({})));
    let gate = site.gate();
    let (ada, bob) = (connected(&notes, &gate, "ada").await, connected(&notes, &gate, "bob").await);
    assert_eq!(
        (whoami(&gate, &ada).await, whoami(&gate, &bob).await),
        (json!("ada-over-there"), json!("bob-over-there"))
    );
    let script = "const all = []; for (let i = 0; i < 4; i++) all.push((await callTool('notes:whoami', {})).sub); return all";
    let run = |user: &User| {
        let token = user.token.clone();
        let gate = &gate;
        async move {
            gate.call(Some(&token), "codecall:execute", json!({"script": script})).await["result"].clone()
        }
    };
    let all = futures::future::join_all((0..6).map(|n| run(if n % 2 == 0 { &ada } else { &bob }))).await;
    for (n, result) in all.iter().enumerate() {
        let who = if n % 2 == 0 { "ada-over-there" } else { "bob-over-there" };
        assert_eq!(*result, json!([who, who, who, who]));
    }
    // A client that acts for itself is no user, and gets nobody's token: it does not know what users have there.
    let robot = gate.machine_token("robot", "crm:read").await;
    let body = call(&gate, &robot, "notes:whoami", json!({}), json!({}), json!({})).await.body;
    assert!(!body.contains("over-there") && body.contains("does not exist"), "{body}");
    let body = call(&gate, &robot, "notes:authorize", json!({}), json!({}), json!({})).await.body;
    assert!(!body.contains("over-there") && body.contains("user who signed in"), "{body}");
}

#[tokio::test]
async fn the_callers_own_token_never_reaches_the_other_server() {
    let notes = Notes::start().await;
    let site = Site::start(&with_notes(&notes, json!({})));
    let gate = site.gate();
    let ada = connected(&notes, &gate, "ada").await;
    whoami(&gate, &ada).await;
    let script = "return (await callTool('notes:whoami', {})).sub";
    let ran = gate.call(Some(&ada.token), "codecall:execute", json!({"script": script})).await;
    assert_eq!(ran["result"], "ada-over-there", "{ran}");
    let seen = notes.requests();
    assert!(seen.contains("tools/call") && seen.contains("authorization"), "something was sent");
    let signature = ada.token.rsplit_once('.').unwrap().1;
    assert!(!seen.contains(&ada.token) && !seen.contains(signature));
    for token in notes.tokens() {
        assert_ne!(token, ada.token);
    }
    // Nor does what identifies the caller here.
    assert!(!seen.contains("user:ada"));
}

#[tokio::test]
async fn two_processes_whose_token_is_refused_at_once_refresh_it_once() {
    let notes = Notes::start().await;
    let redis = Redis::start();
    let storage = json!({"type": "redis", "config": {"host": "127.0.0.1", "port": redis.port, "password": "of-the-store", "tls": true, "caFile": redis.ca(), "keyPrefix": "notes:"}});
    let key =
        std::process::Command::new(crate::support::gatewright()).args(["key", "generate"]).output().unwrap();
    let shared = json!({"tokenStorage": storage, "encryptionKey": "0123456789abcdef0123456789abcdef",
        "local": with_notes(&notes, json!({}))["auth"]["local"]});
    let mut all = with_notes(&notes, shared);
    all["auth"]["local"]["signKey"] = json!(String::from_utf8(key.stdout).unwrap());
    all["http"]["publicUrl"] = json!("https://gate.example");
    all["http"]["trustedProxies"] = json!(["127.0.0.1"]);
    let (first, second) = (Site::start(&all), Site::start(&all));
    let gate = Gate::new("https://gate.example", vec![first.base.clone(), second.base.clone()]);
    let only = |site: &Site| Gate::new("https://gate.example", vec![site.base.clone()]);
    let (one, two) = (only(&first), only(&second));
    let ada = connected(&notes, &gate, "ada").await;
    assert_eq!(
        (whoami(&one, &ada).await, whoami(&two, &ada).await),
        (json!("ada-over-there"), json!("ada-over-there"))
    );
    let before = notes.grants();
    for round in 1..=3 {
        notes.revoke();
        let all = (0..8).map(|n| {
            let (gate, ada) = (if n % 2 == 0 { &one } else { &two }, &ada);
            async move { whoami(gate, ada).await }
        });
        let all = futures::future::join_all(all).await;
        assert!(all.iter().all(|who| who == "ada-over-there"), "{all:?}");
        assert_eq!(
            notes.grants() - before,
            round,
            "one refresh for both; the server takes each refresh token once"
        );
    }
    // The server over there forgets the user: who calls next is asked again.
    notes.revoke();
    notes.provider.clear_stored_tokens();
    let told = call(&one, &ada.token, "notes:whoami", json!({}), json!({}), json!({})).await.json();
    assert_eq!(told["result"]["_meta"]["code"], "AUTHORIZATION_REQUIRED", "{told}");
    address(&two, &ada.token).await;
}

/// The address in a message of a plan that waits for a sign-in.
fn told_address(body: &Value) -> String {
    assert_eq!(body["error"]["code"], "INPUT_REQUIRED", "{body}");
    let message = body["error"]["message"].as_str().unwrap();
    let (_, after) = message.split_once("to open ").unwrap_or_else(|| panic!("{message}"));
    after.split_once(' ').unwrap().0.to_owned()
}

#[tokio::test]
async fn a_plan_waits_until_its_user_has_signed_in_whatever_the_client_can_be_asked() {
    let notes = Notes::start().await;
    let site = Site::start(&with_notes(&notes, json!({})));
    let gate = site.gate();
    let mut ada = sign_in(&gate, "ada").await;
    let token = ada.token.clone();
    let execute = async |input: Value| {
        let answer = call(&gate, &token, "codecall:execute", input, json!({}), json!({})).await.json();
        answer["result"]["structuredContent"].clone()
    };
    let script = json!({"script": "return (await callTool('notes:whoami', {})).sub"});
    // The app is not connected yet; later, the server over there has forgotten the user.
    for sub in ["ada-over-there", "ada-once-more"] {
        let waits = execute(script.clone()).await;
        let resume = json!({"resume": waits["executionId"]});
        told_address(&waits);
        let address = told_address(&execute(resume.clone()).await);
        notes.connect(&gate, &mut ada.person, &address, sub).await;
        assert_eq!(execute(resume).await["result"], sub);
        notes.revoke();
        notes.provider.clear_stored_tokens();
    }
}

#[tokio::test]
async fn a_plan_of_a_client_that_opens_addresses_asks_for_the_sign_in_and_goes_on_with_the_answer() {
    let notes = Notes::start().await;
    let site = Site::start(&with_notes(&notes, json!({})));
    let gate = site.gate();
    let mut ada = sign_in(&gate, "ada").await;
    let input = json!({"script": "return (await callTool('notes:whoami', {})).sub"});
    let takes_urls = json!({"elicitation": {"url": {}}});
    let asked = call(&gate, &ada.token, "codecall:execute", input.clone(), takes_urls.clone(), json!({}))
        .await
        .json();
    let result = asked["result"].clone();
    assert_eq!(result["resultType"], "input_required", "{asked}");
    let (key, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let url = question["params"]["url"].as_str().unwrap();
    notes.connect(&gate, &mut ada.person, url, "ada-over-there").await;
    let more = json!({"inputResponses": {key: {"action": "accept"}}, "requestState": result["requestState"]});
    let done = call(&gate, &ada.token, "codecall:execute", input, takes_urls, more).await.json();
    assert_eq!(done["result"]["structuredContent"]["result"], "ada-over-there", "{done}");
}
