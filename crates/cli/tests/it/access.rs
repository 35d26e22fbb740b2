//! Scopes of every method over HTTP, and what users of a server with accounts see of each other, with the real binary.

use std::process::Command;

use gatewright_core::METHODS;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    gate::{Answer, CALLBACK, Gate, Person, Site, config, parameter},
    notes::Notes,
    served::LONG,
    support::gatewright,
};

const SCOPE: &str = "crm:read";

async fn send(gate: &Gate, token: &str, method: &str, mut params: Value) -> Answer {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
    let bearer = format!("Bearer {token}");
    // No token is sent in place of an empty one.
    let name = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str().map(str::to_owned));
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    headers.extend((!token.is_empty()).then_some(("authorization", bearer.as_str())));
    headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    gate.send(Method::POST, "/mcp", &headers, body).await
}

/// Parameters for each method that names an object; empty for the others. A new method needs a row.
fn asked(method: &str) -> Option<Value> {
    let uri = json!({"uri": "test://static-text"});
    match method {
        "initialize" | "ping" | "logging/setLevel" | "server/discover" | "resources/unsubscribe" => None,
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => None,
        // An id exists only once a task does: see the core's own table.
        "tasks/get" | "tasks/update" | "tasks/cancel" => None,
        "tools/call" => Some(json!({"name": "all:test_simple_text", "arguments": {}})),
        "prompts/get" => Some(json!({"name": "test_simple_prompt"})),
        "resources/read" | "resources/subscribe" => Some(uri),
        "completion/complete" => {
            let reference = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
            Some(json!({"ref": reference, "argument": {"name": "arg1", "value": ""}}))
        }
        "subscriptions/listen" => {
            Some(json!({"notifications": {"resourceSubscriptions": ["test://static-text"]}}))
        }
        other => panic!("the method {other} has no row"),
    }
}

#[tokio::test]
async fn every_method_that_names_an_object_answers_403_with_the_scopes_it_takes() {
    let mut all = config(json!({}));
    all["apps"] = json!({"all": {"builtin": "everything", "scopes": [SCOPE]}});
    let site = Site::start(&all);
    let gate = site.gate();
    let may = gate.machine_token("robot", SCOPE).await;
    let may_not = gate.machine_token("other", "billing:read").await;
    for (method, params) in METHODS.into_iter().filter_map(|method| Some((method, asked(method)?))) {
        let refused = send(&gate, &may_not, method, params.clone()).await;
        assert_eq!(refused.status, 403, "{method}: {}", refused.body);
        let challenge = refused.header("www-authenticate");
        assert!(
            challenge.contains("insufficient_scope") && challenge.contains(SCOPE),
            "{method}: {challenge}"
        );
        // A stream stays open; the older era has a session for its own. Both are in the core's table.
        if !matches!(method, "subscriptions/listen" | "resources/subscribe") {
            let answer = send(&gate, &may, method, params).await;
            assert_eq!(answer.status, 200, "{method}: {}", answer.body);
            assert!(answer.json()["error"].is_null(), "{method}: {}", answer.body);
        }
    }
    for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let count = async |token: &str| {
            let answer = send(&gate, token, list, json!({})).await.json();
            let lists = answer["result"].as_object().unwrap().values();
            lists
                .filter_map(Value::as_array)
                .flatten()
                .filter(|item| !item["name"].as_str().unwrap_or_default().starts_with("codecall:"))
                .count()
        };
        assert!(count(&may).await > 0, "{list}");
        assert_eq!(count(&may_not).await, 0, "{list}");
    }
}

#[tokio::test]
async fn a_task_answers_to_its_owner_and_its_scopes_only() {
    let mut all = config(json!({}));
    all["apps"] = json!({"all": {"builtin": "everything", "scopes": [SCOPE]}});
    let site = Site::start(&all);
    let gate = site.gate();
    let owner = gate.machine_token("robot", SCOPE).await;
    let slow = json!({"name": "all:slow_compute", "arguments": {"seconds": 60, "label": "x"}});
    let made = send(&gate, &owner, "tools/call", slow).await.json();
    let Some(task) = made["result"]["taskId"].as_str() else { panic!("{made}") };
    let thief = gate.machine_token("other", SCOPE).await;
    let narrower = gate.machine_token("robot", "billing:read").await;
    for method in ["tasks/get", "tasks/cancel"] {
        let stolen = send(&gate, &thief, method, json!({"taskId": task})).await.json();
        let made_up = send(&gate, &thief, method, json!({"taskId": "made-up"})).await.json();
        assert_eq!(stolen["error"]["code"], made_up["error"]["code"], "{method}: {stolen}");
        assert!(stolen["error"]["message"].as_str().unwrap().starts_with("unknown task"), "{stolen}");
        let refused = send(&gate, &narrower, method, json!({"taskId": task})).await;
        assert_eq!(refused.status, 403, "{method}: {}", refused.body);
    }
    let own = send(&gate, &owner, "tasks/get", json!({"taskId": task})).await.json();
    assert_eq!(own["result"]["taskId"], json!(task), "{own}");
}

struct User {
    person: Person,
    token: String,
}

async fn sign_in(gate: &Gate, name: &'static str) -> User {
    let mut person = Person { name: Some(name), ..Person::default() };
    let callback = person.authorize(gate, &gate.ask("app", CALLBACK, SCOPE)).await;
    let tokens = gate.redeem("app", CALLBACK, &parameter(&callback, "code")).await.json();
    User { person, token: tokens["access_token"].as_str().unwrap().to_owned() }
}

/// Everything a caller is shown of the app: lists, search, descriptions, errors with hints.
async fn shown(gate: &Gate, token: &str) -> String {
    let mut all = String::new();
    for list in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        all += &send(gate, token, list, json!({})).await.body;
    }
    let script = "const seen = []; for (const name of ['notes:diary_of_ada', 'notes:diary_of_bob']) { try { const tool = await getTool(name); \
                  seen.push(tool ? JSON.stringify(tool) : 'none') } catch (error) { seen.push('none') } } return seen";
    for (tool, input) in [
        ("codecall:search", json!({"query": "diary of somebody", "topK": 20})),
        ("codecall:describe", json!({"toolNames": ["notes:diary_of_ada", "notes:diary_of_bob"]})),
        ("codecall:execute", json!({"script": script})),
        ("notes:diary_of_nobody", json!({})),
        ("notes:diary_of_ad", json!({})),
    ] {
        let body = send(gate, token, "tools/call", json!({"name": tool, "arguments": input})).await.body;
        // The names that were asked for are repeated; what only the owner can know is the description.
        all += &body.replace("`notes:diary_of_ad`", "");
    }
    all
}

#[tokio::test]
async fn users_of_a_server_with_accounts_see_names_uris_and_descriptions_of_their_own_only() {
    let notes = Notes::start().await;
    let mut all = config(json!({"allowDefaultPublic": true, "anonymousScopes": [SCOPE]}));
    all["apps"]["notes"] = notes.app();
    let mut bob = all["auth"]["local"]["users"][0].clone();
    bob["username"] = json!("bob");
    all["auth"]["local"]["users"].as_array_mut().unwrap().push(bob);
    let site = Site::start(&all);
    let gate = site.gate();
    let (mut ada, mut bob) = (sign_in(&gate, "ada").await, sign_in(&gate, "bob").await);
    for (user, sub) in [(&mut ada, "diarist-ada"), (&mut bob, "diarist-bob")] {
        let params = json!({"name": "notes:authorize", "arguments": {}});
        let told = send(&gate, &user.token, "tools/call", params).await.json();
        let url = told["result"]["_meta"]["url"].as_str().unwrap_or_else(|| panic!("{told}"));
        notes.connect(&gate, &mut user.person, url, sub).await;
    }
    // The index follows in the background.
    let found = async |user: &User| {
        let body = gate
            .call(Some(&user.token), "codecall:search", json!({"query": "diary of somebody", "topK": 20}))
            .await;
        body.to_string().contains("diary_of_")
    };
    for user in [&ada, &bob] {
        while !found(user).await {
            tokio::task::yield_now().await;
        }
    }
    let (of_ada, of_bob) = (shown(&gate, &ada.token).await, shown(&gate, &bob.token).await);
    for (text, own, other) in [(&of_ada, "ada", "bob"), (&of_bob, "bob", "ada")] {
        for mine in ["written by X only", "diary_of_X", "notes://X/page", "prompt_of_X", "notes://X/{day}"] {
            let mine = mine.replace('X', own);
            assert!(text.contains(&mine), "{own} misses {mine}: {text}");
        }
        for theirs in ["written by X only", "notes://X/", "prompt_of_X"] {
            let theirs = theirs.replace('X', other);
            assert!(!text.contains(&theirs), "{own} sees {theirs}: {text}");
        }
    }
    let robot = gate.machine_token("robot", SCOPE).await;
    let of_robot = shown(&gate, &robot).await;
    assert!(!of_robot.contains("written by") && !of_robot.contains("notes://"), "{of_robot}");
    assert!(of_robot.contains("notes:authorize"), "it is offered to connect: {of_robot}");
    // Callers without a token are let in, and are no user.
    let of_anonymous = shown(&gate, "").await;
    assert!(of_anonymous.contains("crm:users_list"), "{of_anonymous}");
    for of_somebody in ["written by", "notes://", "prompt_of_", "whoami"] {
        assert!(!of_anonymous.contains(of_somebody), "{of_somebody}: {of_anonymous}");
    }
    for (method, params) in [
        ("resources/read", json!({"uri": "notes://ada/page"})),
        ("prompts/get", json!({"name": "prompt_of_ada"})),
        ("tools/call", json!({"name": "notes:diary_of_ada", "arguments": {}})),
        ("tools/call", json!({"name": "notes:whoami", "arguments": {}})),
    ] {
        let refused = send(&gate, "", method, params).await;
        let is_error = refused.status != 200
            || !refused.json()["error"].is_null()
            || refused.json()["result"]["isError"] == true;
        assert!(is_error && !refused.body.contains("written by"), "{method}: {}", refused.body);
    }
    // Names that cannot be read are as good as names that do not exist.
    let read = async |user: &User, uri: &str| {
        send(&gate, &user.token, "resources/read", json!({"uri": uri})).await.json()
    };
    assert!(read(&ada, "notes://ada/page").await["error"].is_null());
    let indexed = async |user: &User| {
        gate.call(Some(&user.token), "codecall:search", json!({"query": "diary"})).await["totalIndexed"]
            .clone()
    };
    assert_eq!(indexed(&ada).await, indexed(&bob).await);
}

#[test]
fn check_production_names_apps_of_which_nothing_takes_a_scope() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gatewright.json");
    let check = |app: Value| {
        let mut all = config(json!({}));
        all["apps"] = json!({"files": app});
        std::fs::write(&file, all.to_string()).unwrap();
        let output = Command::new(gatewright())
            .args(["check", "--production", "--config"])
            .arg(&file)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(check(json!({"command": "files"})).contains("apps.files: any token can use the whole app"));
    for scoped in [
        json!({"command": "files", "scopes": ["f"]}),
        json!({"command": "files", "resources": {"file:///*": {"scopes": ["f"]}}}),
        json!({"command": "files", "prompts": {"p": {"scopes": ["f"]}}}),
    ] {
        assert!(check(scoped.clone()).contains("is not one of `auth.scopes`"), "nobody can have the scope");
        assert!(!check(scoped).contains("any token can use the whole app"));
    }
}

/// A server over stdio whose one tool tells the id of its process.
const TELLS_ITS_PROCESS: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if number is None:
        continue
    results = {
        "initialize": {"protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
                       "serverInfo": {"name": "process", "version": "1"}},
        "tools/list": {"tools": [{"name": "process", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": str(os.getpid())}]},
        "ping": {},
    }
    answer = {"jsonrpc": "2.0", "id": number}
    if method in results:
        answer["result"] = results[method]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
"#;

#[tokio::test]
async fn each_principal_has_a_process_where_the_configuration_says_so_and_all_share_one_elsewhere() {
    let mut all = config(json!({}));
    let app = json!({"command": "python3", "args": ["-c", TELLS_ITS_PROCESS], "scopes": [SCOPE]});
    all["apps"] = json!({"shared": app.clone(), "own": app});
    all["apps"]["own"]["sessions"] = json!("per_principal");
    let site = Site::launch("yaml", &all.to_string(), &[], &[]);
    let gate = site.gate();
    let (robot, other) = (gate.machine_token("robot", SCOPE).await, gate.machine_token("other", SCOPE).await);
    let ready = async {
        while gate.get("/readyz").await.json()["status"] != "ready" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, ready).await.unwrap();
    let process = async |token: &str, app: &str| {
        let params = json!({"name": format!("{app}:process"), "arguments": {}});
        let answer = send(&gate, token, "tools/call", params).await.json();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        text.parse::<u32>().unwrap_or_else(|_| panic!("{answer}"))
    };
    let (first, second) = (process(&robot, "own").await, process(&other, "own").await);
    assert_ne!(first, second);
    let again = gate.machine_token("robot", SCOPE).await;
    assert_eq!((process(&again, "own").await, process(&other, "own").await), (first, second));
    let shared = process(&robot, "shared").await;
    assert_eq!(process(&other, "shared").await, shared);
    assert!(shared != first && shared != second);
}
