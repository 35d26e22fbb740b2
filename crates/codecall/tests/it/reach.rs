//! Resources and prompts in scripts.

use serde_json::{Value, json};

use crate::desk::client;

#[tokio::test]
async fn a_script_reads_resources_and_gets_prompts() {
    let client = client(json!({"vm": {"callLog": "full"}}), "").await;
    let body = client
        .execute(
            "const note = await readResource('desk://notes');
             const prompt = await getPrompt('greet', { name: 'Ada' });
             const bare = await getPrompt('greet');
             const logo = (await readResource('desk://logo')).contents[0];
             return { text: note.contents[0].text, uri: note.contents[0].uri, greeting: prompt.messages[0].content.text,
                      bare: bare.messages[0].content.text, logo: [logo.mimeType, typeof logo.handle, logo.blob],
                      all: (await listResources()).map((one) => one.uri) };",
            None,
        )
        .await;
    let expected = json!({
        "text": "written down", "uri": "desk://notes", "greeting": "Hello Ada", "bare": "Hello you",
        "logo": ["image/png", "string", null], "all": ["desk://logo", "desk://notes"],
    });
    assert_eq!(body["result"], expected, "{body}");
    let names: Vec<&str> =
        body["calls"].as_array().unwrap().iter().map(|call| call["name"].as_str().unwrap()).collect();
    let logged = [
        "readResource desk://notes",
        "getPrompt greet",
        "getPrompt greet",
        "readResource desk://logo",
        "listResources",
    ];
    assert_eq!(names, logged);
}

#[tokio::test]
async fn a_script_reads_what_its_caller_may_read() {
    let read = "return (await readResource('desk://secret')).contents[0].text";
    let body = client(json!({}), "desk:secret").await.execute(read, None).await;
    assert_eq!(body["result"], "written down", "{body}");
    let client = client(json!({"vm": {"callLog": "full"}}), "").await;
    let body = client.execute(read, None).await;
    assert_eq!(
        (&body["status"], &body["error"]["code"], &body["error"]["requiredScopes"]),
        (&json!("tool_error"), &json!("ACCESS_DENIED"), &json!(["desk:secret"])),
        "{body}"
    );
    assert_eq!(body["calls"][0]["status"], "error");
    let caught = "const codes = [];
         for (const wrong of [() => readResource('desk://none'), () => readResource('other://x'), () => getPrompt('none')]) {
           try { await wrong() } catch (error) { codes.push(error.code) }
         }
         return codes;";
    let body = client.execute(caught, None).await;
    assert_eq!(body["result"], json!(["NOT_FOUND", "NOT_FOUND", "NOT_FOUND"]), "{body}");
}

#[tokio::test]
async fn reads_count_against_the_limit_of_calls() {
    let client = client(json!({"vm": {"maxToolCalls": 2}}), "").await;
    let three = "await readResource('desk://notes'); await listResources(); await callTool('desk:import');";
    let body = client.execute(three, None).await;
    assert_eq!(body["error"]["name"], "ToolCallLimitError", "{body}");
    assert_eq!(body["calls"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn with_an_allow_list_a_function_has_to_be_on_it() {
    let client = client(json!({}), "").await;
    let script = "await callTool('desk:import'); return (await readResource('desk://notes')).contents.length";
    let body = client.execute(script, Some(&["desk:import"])).await;
    assert_eq!(body["error"]["code"], "ACCESS_DENIED", "{body}");
    let body = client.execute(script, Some(&["desk:import", "readResource"])).await;
    assert_eq!(body["result"], 1, "{body}");
}

#[tokio::test]
async fn arguments_that_are_none_are_type_errors() {
    let client = client(json!({}), "").await;
    for (call, problem) in [
        ("readResource()", "the URI must be a non-empty string"),
        ("getPrompt('')", "the name must be a non-empty string"),
        ("getPrompt('greet', [1])", "the second argument must be an object"),
        ("getPrompt('greet', { a: readResource('desk://notes') })", "await it"),
    ] {
        let body = client.execute(&format!("return await {call}"), None).await;
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(body["error"]["name"] == "TypeError" && message.contains(problem), "{call}: {body}");
    }
}

#[tokio::test]
async fn progress_and_log_messages_of_calls_reach_the_client_that_asked() {
    let client = client(json!({}), "").await;
    let body = client
        .execute(
            "await callTool('desk:import'); return (await readResource('desk://notes')).contents.length",
            None,
        )
        .await;
    assert_eq!(body["status"], "ok", "{body}");
    let progress = client.notes.progress.lock().unwrap().clone();
    let messages: Vec<&str> = progress.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(
        messages,
        ["desk:import: 1 of 3", "desk:import: 2 of 3", "desk:import done", "readResource done"]
    );
    let values: Vec<f64> = progress.iter().map(|(value, _)| *value).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    assert_eq!(values[2..], [1.0, 2.0], "whole numbers are calls that are done");
    assert_eq!(*client.notes.logs.lock().unwrap(), [Value::from("row 3 is empty")]);
}
