//! Plans are checked before their first call, through the whole gateway.

use gatewright_testing::test_use;
use serde_json::{Value, json};

use crate::support::Demo;

test_use! {}

async fn users(demo: &Demo) -> Value {
    demo.result("const { items } = await callTool('crm:users_list', { limit: 100 }); return items.length")
        .await
}

#[gatewright_testing::test]
async fn a_plan_with_a_misspelt_parameter_changes_nothing(demo: Demo) {
    let before = users(&demo).await;
    let script = "
        const ada = await callTool('crm:users_create', { accountId: 'acc_0001', name: 'Ada Test', email: 'ada.test@example.com' });
        return await callTool('crm:users_list', { limitt: 3, limit: 'three' });";
    let body = demo.run(script).await;
    assert_eq!(
        (&body["status"], &body["error"]["source"]),
        (&json!("tool_error"), &json!("tool")),
        "{body:#}"
    );
    assert_eq!(
        (&body["error"]["code"], &body["error"]["toolName"]),
        (&json!("VALIDATION_ERROR"), &json!("crm:users_list"))
    );
    assert_eq!(body["error"]["location"]["line"], 3, "{body:#}");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains("`limit`") && message.contains("no tool was called"), "{message}");
    assert_eq!(body.get("calls"), None, "{body:#}");
    assert_eq!(users(&demo).await, before);
}

#[gatewright_testing::test]
async fn a_plan_with_an_unknown_tool_changes_nothing_and_names_the_nearest(demo: Demo) {
    let body = demo.run("await callTool('crm:users_list', {});\nawait callTool('crm:user_list', {});").await;
    assert_eq!(
        (&body["status"], &body["error"]["code"]),
        (&json!("tool_error"), &json!("TOOL_NOT_FOUND")),
        "{body:#}"
    );
    assert_eq!(body["error"]["location"], json!({"line": 2, "column": 16}));
    assert!(
        body["error"]["message"].as_str().unwrap().contains("did you mean `crm:users_list`?"),
        "{body:#}"
    );
    assert_eq!(body.get("calls"), None);
}

#[gatewright_testing::test]
async fn an_allowlist_denies_as_it_does_at_run_time(demo: Demo) {
    let script = "await callTool('crm:users_get', { id: 'none' }); await callTool('crm:users_list', {})";
    let body = demo.meta("execute", json!({"script": script, "allowedTools": ["crm:users_get"]})).await;
    assert_eq!(body["error"]["code"], "NOT_FOUND", "the first call ran: {body:#}");
}

#[gatewright_testing::test]
async fn a_read_of_what_a_result_does_not_have_is_a_warning_in_the_answer(demo: Demo) {
    let body =
        demo.run("const users = await callTool('crm:users_list', {});\nreturn users.itmes ?? []").await;
    assert_eq!(body["status"], "ok", "{body:#}");
    assert_eq!(
        body["warnings"],
        json!([{
            "message": "the result of `crm:users_list` has no `itmes`; did you mean `items`?",
            "location": {"line": 2, "column": 14},
        }])
    );
    let fine = demo
        .run("const users = await callTool('crm:users_list', {});\nreturn users.items.map((user) => user.id)")
        .await;
    assert_eq!((&fine["status"], fine.get("warnings")), (&json!("ok"), None), "{fine:#}");
}

#[gatewright_testing::test]
async fn a_forgotten_return_is_a_warning_in_the_answer(demo: Demo) {
    let users = "const users = await callTool('crm:users_list', {});";
    let body = demo.run(&format!("{users}\nconst names = users.items.map((user) => user.name);")).await;
    assert_eq!((&body["status"], &body["result"]), (&json!("ok"), &Value::Null), "{body:#}");
    let message = "the script returned nothing; end it with `return names`";
    assert_eq!(body["warnings"], json!([{"message": message, "location": {"line": 2, "column": 7}}]));
    // The value of the last statement is the result.
    let body = demo.run(&format!("{users}\nusers.items")).await;
    assert!(body["result"].as_array().is_some_and(|users| !users.is_empty()), "{body:#}");
    assert_eq!(body.get("warnings"), None, "{body:#}");
    // An error is not about it.
    let body = demo.run(&format!("{users}\nconst names = users.items.map(nameOf);")).await;
    assert_eq!((&body["status"], body.get("warnings")), (&json!("runtime_error"), None), "{body:#}");
}

#[gatewright_testing::test]
async fn the_plan_in_the_readme_is_neither_refused_nor_warned_of(demo: Demo) {
    let readme = include_str!("../../../../README.md");
    let scripts: Vec<&str> =
        readme.split("```js\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!scripts.is_empty());
    for script in scripts {
        let body = demo.run(script).await;
        assert_eq!((&body["status"], body.get("warnings")), (&json!("ok"), None), "{body:#}");
    }
}
