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
/// Members that may hold the items together with the cursor.
const WRAPPERS: [&str; 6] = ["data", "result", "response", "payload", "body", "_embedded"];

/// Takes the items out of an answer. None if there is no list, or several of which none is known to be it.
pub(super) fn take_items(answer: &mut Value) -> Option<Vec<Value>> {
    let members = match answer {
        Value::Array(items) => return Some(std::mem::take(items)),
        Value::Object(members) => members,
        _ => return None,
    };
    let arrays: Vec<(&String, &Vec<Value>)> =
        members.iter().filter_map(|(key, value)| Some((key, value.as_array()?))).collect();
    let known = |is_it: fn(&Value) -> bool| {
        ITEM_KEYS.iter().find(|key| members.get(**key).is_some_and(is_it)).map(|key| (*key).to_owned())
    };
    let of_objects: Vec<&String> =
        arrays.iter().filter(|(_, items)| items.iter().any(Value::is_object)).map(|(key, _)| *key).collect();
    let key = known(Value::is_array).or_else(|| match (arrays.as_slice(), of_objects.as_slice()) {
        ([(only, _)], _) | (_, [only]) => Some((*only).clone()),
        ([], _) => known(Value::is_null),
        _ => None,
    });
    if let Some(key) = key {
        return match members.get_mut(&key).map(Value::take) {
            Some(Value::Array(items)) => Some(items),
            _ => Some(Vec::new()),
        };
    }
    let wrapper = WRAPPERS.iter().find(|key| members.get(**key).is_some_and(Value::is_object))?;
    let inner = members.get_mut(*wrapper)?;
    let items = take_items(inner)?;
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
        let items = |mut answer: Value| take_items(&mut answer).map(Value::from);
        assert_eq!(items(json!([1])), Some(json!([1])));
        assert_eq!(items(json!({"data": [1], "included": [{}]})), Some(json!([1])));
        assert_eq!(items(json!({"workflow_runs": [{}], "total_count": 1})), Some(json!([{}])));
        assert_eq!(items(json!({"warnings": ["w"], "users": [{}]})), Some(json!([{}])));
        assert_eq!(items(json!({"_embedded": {"orders": [1]}})), Some(json!([1])));
        assert_eq!(items(json!({"items": null})), Some(json!([])));
        for none in [json!({"a": [1], "b": [2]}), json!({"id": 1}), json!("x"), json!({"data": {"id": 1}})] {
            assert_eq!(items(none.clone()), None, "{none}");
        }
    }
}
