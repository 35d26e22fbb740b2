//! `codecall:invoke` (contract §B).

use gatewright_testing::test_use;
use serde_json::json;

use crate::support::Demo;

test_use! {}

#[gatewright_testing::test]
async fn a_result_comes_back_as_status_ok_and_the_tools_value(demo: Demo) {
    let body = demo.meta("invoke", json!({"tool": "crm:users_list", "input": {"limit": 2}})).await;
    assert_eq!(body["status"], "ok");
    assert!(body["result"].is_object());
    assert_eq!(body.as_object().unwrap().len(), 2);
}

#[gatewright_testing::test]
async fn each_way_to_fail_has_its_code_and_message(demo: Demo) {
    for (tool, input, code) in [
        ("crm:nope", json!({}), "TOOL_NOT_FOUND"),
        ("crm:users_get", json!({"id": "no-such-user"}), "NOT_FOUND"),
        ("crm:users_get", json!({}), "VALIDATION_ERROR"),
        ("codecall:execute", json!({"script": "return 1"}), "SELF_REFERENCE_BLOCKED"),
        ("codecall_search", json!({"query": "x"}), "SELF_REFERENCE_BLOCKED"),
    ] {
        let body = demo.meta("invoke", json!({"tool": tool, "input": input})).await;
        assert_eq!(body["status"], "error", "{tool}");
        assert_eq!(body["error"]["code"], code, "{tool}: {body}");
        assert!(!body["error"]["message"].as_str().unwrap().is_empty());
    }
}

#[gatewright_testing::test]
async fn a_misspelt_name_gets_the_nearest_one(demo: Demo) {
    let body = demo.meta("invoke", json!({"tool": "crm:user_list", "input": {}})).await;
    assert!(body["error"]["message"].as_str().unwrap().contains("`crm:users_list`"), "{body}");
}

#[gatewright_testing::test]
async fn results_are_never_cached(demo: Demo) {
    let count = || async {
        let body = demo.meta("invoke", json!({"tool": "crm:users_list", "input": {"limit": 100}})).await;
        body["result"]["total"].as_u64().unwrap()
    };
    let before = count().await;
    let account = demo.meta("invoke", json!({"tool": "crm:accounts_list", "input": {"limit": 1}})).await;
    let account = account["result"]["items"][0]["id"].clone();
    let user = json!({"name": "Zoe Park", "email": "zoe.park@example.net", "accountId": account});
    let created = demo.meta("invoke", json!({"tool": "crm:users_create", "input": user})).await;
    assert_eq!(created["status"], "ok", "{created}");
    assert_eq!(count().await, before + 1);
}
