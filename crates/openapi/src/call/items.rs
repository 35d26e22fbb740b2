//! The items of an answer that is a list, or has one.

use serde_json::Value;

/// Members of an answer that are its items, if they are an array.
const ITEM_KEYS: [&str; 14] = [
    "items",
    "data",
    "results",
    "records",
    "values",
    "entries",
    "value",
    "list",
    "rows",
    "elements",
    "nodes",
    "objects",
    "content",
    "resources",
];
/// Members that say that there is no answer, if they are a list and the items are null.
const ERRORS: [&str; 2] = ["errors", "error"];
/// Members that may hold the items together with the cursor.
const WRAPPERS: [&str; 6] = ["data", "result", "response", "payload", "body", "_embedded"];

/// Takes the items out of an answer, and the name of the member that they were: empty if the answer is the list. None if there is no list, or several of which
/// none is known to be it, or, in an answer behind one with items of this `name`, an unknown one of another name, as of errors.
pub(super) fn take_items(answer: &mut Value, name: Option<&str>) -> Option<(String, Vec<Value>)> {
    let members = match answer {
        Value::Array(items) => return Some((String::new(), std::mem::take(items))),
        Value::Object(members) => members,
        _ => return None,
    };
    let known = |is_it: fn(&Value) -> bool| {
        ITEM_KEYS.iter().find(|key| members.get(**key).is_some_and(is_it)).map(|key| (*key).to_owned())
    };
    let is_null = known(Value::is_null).is_some();
    let is_error = |key: &str| is_null && ERRORS.contains(&key);
    let arrays: Vec<(&String, &Vec<Value>)> = members
        .iter()
        .filter_map(|(key, value)| Some((key, value.as_array()?)))
        .filter(|(key, items)| !items.is_empty() || members.len() == 1 || !ERRORS.contains(&key.as_str()))
        .collect();
    let of_objects: Vec<&String> =
        arrays.iter().filter(|(_, items)| items.iter().any(Value::is_object)).map(|(key, _)| *key).collect();
    let same = name
        .filter(|name| members.get(*name).is_some_and(|items| items.is_array() || items.is_null()))
        .map(str::to_owned);
    let key = same.or_else(|| known(Value::is_array)).or_else(|| {
        match (arrays.as_slice(), of_objects.as_slice()) {
            ([(only, _)], _) | (_, [only]) if name.is_none() && !is_error(only) => Some((*only).clone()),
            ([], _) => known(Value::is_null),
            _ => None,
        }
    });
    if let Some(key) = key {
        return match members.get_mut(&key).map(Value::take) {
            Some(Value::Array(items)) => Some((key, items)),
            _ => Some((key, Vec::new())),
        };
    }
    let wrapper = WRAPPERS.iter().find(|key| members.get(**key).is_some_and(Value::is_object))?;
    let inner = members.get_mut(*wrapper)?;
    let items = take_items(inner, name)?;
    // The cursor is beside the items, or outside.
    if let Value::Object(inner) = inner.take() {
        for (name, value) in inner {
            members.entry(name).or_insert(value);
        }
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_the_list_of_an_answer() {
        let items = |mut answer: Value| take_items(&mut answer, None).map(|(_, items)| Value::from(items));
        assert_eq!(items(json!([1])), Some(json!([1])));
        assert_eq!(items(json!({"data": [1], "included": [{}]})), Some(json!([1])));
        assert_eq!(items(json!({"workflow_runs": [{}], "total_count": 1})), Some(json!([{}])));
        assert_eq!(items(json!({"warnings": ["w"], "users": [{}]})), Some(json!([{}])));
        assert_eq!(items(json!({"_embedded": {"orders": [1]}})), Some(json!([1])));
        assert_eq!(items(json!({"items": null})), Some(json!([])));
        assert_eq!(items(json!({"errors": [], "data": null})), Some(json!([])));
        assert_eq!(items(json!({"errors": []})), Some(json!([])));
        assert_eq!(items(json!({"data": {"users": [{}]}, "errors": []})), Some(json!([{}])));
        for none in [
            json!({"errors": [{}], "data": null}),
            json!({"a": [1], "b": [2]}),
            json!({"id": 1}),
            json!("x"),
            json!({"data": {"id": 1}}),
        ] {
            assert_eq!(items(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn items_of_a_later_page_have_the_name_of_those_of_the_first_or_a_usual_one() {
        let items = |mut answer: Value, name: &str| take_items(&mut answer, Some(name)).map(|(name, _)| name);
        assert_eq!(items(json!({"messages": [1]}), "messages").as_deref(), Some("messages"));
        assert_eq!(
            items(json!({"errors": [], "messages": [1], "results": []}), "messages").as_deref(),
            Some("messages")
        );
        assert_eq!(items(json!({"messages": null}), "messages").as_deref(), Some("messages"));
        assert_eq!(items(json!({"results": [1]}), "messages").as_deref(), Some("results"));
        assert_eq!(items(json!({"errors": [{}]}), "messages"), None);
        assert_eq!(items(json!({"response": {"users": [1]}}), "users").as_deref(), Some("users"));
    }
}
