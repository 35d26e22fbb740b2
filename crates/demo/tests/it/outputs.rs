use crate::support::{Demo, arguments};

#[test]
fn every_tool_answers_its_example_arguments_as_its_output_schema_says() {
    for (name, tool) in Demo::new().tools() {
        let input = arguments(&tool["inputSchema"]);
        let accepts = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
        assert!(accepts.is_valid(&input), "{name}: {input}");
        let answer = Demo::new().ok(&name, input);
        let promised = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        let wrong: Vec<String> = promised.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?} in {answer}");
    }
}

#[test]
fn two_data_sets_give_the_same_answers_and_share_nothing() {
    let (one, other) = (Demo::new(), Demo::new());
    for (name, tool) in one.tools() {
        let input = arguments(&tool["inputSchema"]);
        let first = one.ok(&name, input.clone());
        assert_eq!(first, other.ok(&name, input), "{name}");
    }
}

#[test]
fn every_page_of_every_list_is_as_its_output_schema_says() {
    let demo = Demo::new();
    for (name, tool) in demo.tools() {
        if name.ends_with("_list") {
            let row = tool.pointer("/outputSchema/properties/items/items").unwrap();
            let promised = jsonschema::validator_for(row).unwrap();
            let rows = demo.all(&name, serde_json::json!({}));
            assert!(rows.len() >= 8, "{name}");
            assert!(rows.iter().all(|row| promised.is_valid(row)), "{name}");
        }
    }
}
