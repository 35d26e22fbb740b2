//! Every usage example of every demo tool runs, and so does the plan in README.md.

use gatewright_testing::test_use;
use serde_json::json;

use crate::support::{Demo, Gateways};

test_use! {}

/// Codes with which the sample data may honestly refuse an example: a limit is reached on purpose by some tools.
const HONEST: [&str; 1] = ["RATE_LIMIT"];

#[gatewright_testing::test]
async fn each_example_of_each_demo_tool_executes(listing: Demo, gateways: Gateways) {
    let names: Vec<_> = listing
        .running
        .gateway()
        .registry()
        .operator_snapshot()
        .tools
        .iter()
        .map(|t| t.name.clone())
        .collect();
    assert!(names.len() >= 30);
    let mut failed = Vec::new();
    for name in names {
        let described = listing.meta("describe", json!({"toolNames": [name]})).await;
        for example in described["tools"][0]["usageExamples"].as_array().unwrap() {
            // Each on fresh data: an example may delete what the next one reads.
            let demo = gateways.fleeting().await;
            let body = demo.run(example["code"].as_str().unwrap()).await;
            let refused = body["error"]["code"].as_str().is_some_and(|code| HONEST.contains(&code));
            if body["status"] != "ok" && !refused {
                failed.push(format!(
                    "{name}: {}\n{}\n{body}",
                    example["description"],
                    example["code"].as_str().unwrap()
                ));
            }
            if body["result"]["failed"].is_string() {
                failed.push(format!("{name}: guarded example fails: {body}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[gatewright_testing::test]
async fn the_plan_of_the_readme_returns_what_the_readme_shows(gateways: Gateways) {
    let readme = include_str!("../../../../README.md");
    let plan = readme.split_once("```js\n").unwrap().1.split_once("```").unwrap().0;
    let body = gateways.fleeting().await.run(plan).await;
    let lines = body["result"].as_array().unwrap_or_else(|| panic!("{body}"));
    assert_eq!(lines.len(), 4, "{body}");
    for line in lines {
        assert!(readme.contains(&format!("\n    {line}")), "README.md does not show {line}");
    }
}
