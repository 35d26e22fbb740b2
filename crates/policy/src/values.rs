//! Requests as Cedar sees them: entities for caller and object, a record for the context.
//!
//! Arguments come from strangers. Only the members that policies look at are converted, and those within bounds.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, LazyLock},
    time::{Duration, UNIX_EPOCH},
};

use gatewright_core::{Effects, PolicyObject, PolicyRequest, Principal, Scopes, rmcp::model::JsonObject};
use serde_json::{Number, Value as Json};
use smol_str::SmolStr;

use crate::{
    cedar::{
        Entity, EntityType, EntityUIDEntry, Expr, Extensions, Name, PartialValue, RestrictedEvaluator,
        RestrictedExpr, Unknown, Value, entity_type, uid,
    },
    reads::Reads,
};

/// Most values of arguments that are converted for one decision.
const MOST_VALUES: usize = 2_000;
/// Most bytes of texts of arguments that are converted for one decision.
const MOST_BYTES: usize = 64 * 1024;
/// Deepest nesting of arguments that is converted.
const DEEPEST: usize = 32;
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Types and actions of the schema.
pub(crate) struct Names {
    pub(crate) user: EntityType,
    pub(crate) app: EntityType,
    pub(crate) tool: EntityType,
    pub(crate) resource: EntityType,
    pub(crate) prompt: EntityType,
    action: EntityType,
    decimal: Name,
    datetime: Name,
    duration: Name,
    offset: Name,
}

pub(crate) static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let function = |name| Name::from(entity_type(name));
    Names {
        user: entity_type("User"),
        app: entity_type("App"),
        tool: entity_type("Tool"),
        resource: entity_type("Resource"),
        prompt: entity_type("Prompt"),
        action: entity_type("Action"),
        decimal: function("decimal"),
        datetime: function("datetime"),
        duration: function("duration"),
        offset: function("offset"),
    }
});

/// The action of a request for `object`.
pub(crate) fn action(object: &PolicyObject<'_>) -> EntityUIDEntry {
    let name = match object {
        PolicyObject::Tool(_) => "call",
        PolicyObject::Resource(_) | PolicyObject::Template { .. } => "read",
        PolicyObject::Prompt { .. } => "get",
    };
    uid(&NAMES.action, name).into()
}

/// The caller under the name `id`.
pub(crate) fn user(id: &str, principal: &Principal, reads: &Reads) -> Entity {
    let mut attributes = vec![attribute("subject", Value::from(&*principal.subject))];
    if let Some(client) = &principal.client_id {
        attributes.push(attribute("client", Value::from(&**client)));
    }
    if let Some(endpoint) = &principal.endpoint {
        attributes.push(attribute("endpoint", Value::from(&**endpoint)));
    }
    if reads.scopes {
        let scopes = scopes(&principal.scopes, reads).map(|scope| Value::from(scope.clone()));
        attributes.push(attribute("scopes", Value::set(scopes, None)));
    }
    if reads.groups {
        let groups = principal.groups.names().map(Value::from);
        attributes.push(attribute("groups", Value::set(groups, None)));
    }
    entity(uid(&NAMES.user, id), attributes, HashSet::new())
}

/// The granted scopes, and those in policies that a grant with `*` covers.
fn scopes<'a>(scopes: &'a Scopes, reads: &'a Reads) -> impl Iterator<Item = SmolStr> + 'a {
    let granted = match scopes {
        Scopes::All => None,
        Scopes::Granted(granted) => Some(granted.iter().map(SmolStr::from)),
    };
    let covered = reads.texts.iter().filter(|text| scopes.allows(text)).cloned();
    granted.into_iter().flatten().chain(covered)
}

/// The object under the name `id`. The URI of one that several texts name is unknown.
pub(crate) fn object(id: &str, object: &PolicyObject<'_>) -> Entity {
    let unknown = || PartialValue::Residual(Expr::unknown(Unknown::new_untyped("uri")));
    let (kind, app, own) = match object {
        PolicyObject::Tool(tool) => {
            let Effects { read_only, destructive, idempotent, open_world } = tool.effects;
            let own = vec![
                attribute("name", Value::from(tool.name)),
                attribute("readOnly", Value::from(read_only)),
                attribute("destructive", Value::from(destructive)),
                attribute("idempotent", Value::from(idempotent)),
                attribute("openWorld", Value::from(open_world)),
            ];
            (&NAMES.tool, tool.app, own)
        }
        PolicyObject::Resource(resource) => {
            let uri = match resource.is_plain {
                true => PartialValue::Value(Value::from(resource.uri.to_lowercase().as_str())),
                false => unknown(),
            };
            (&NAMES.resource, resource.app, vec![(SmolStr::new_static("uri"), uri)])
        }
        PolicyObject::Template { app, .. } => {
            (&NAMES.resource, *app, vec![(SmolStr::new_static("uri"), unknown())])
        }
        PolicyObject::Prompt { app, name } => {
            let name = format!("{app}:{name}");
            (&NAMES.prompt, *app, vec![attribute("name", Value::from(name.as_str()))])
        }
    };
    let attributes = own.into_iter().chain([attribute("app", Value::from(app))]);
    entity(uid(kind, id), attributes, HashSet::from([uid(&NAMES.app, app)]))
}

fn attribute(name: &'static str, value: Value) -> (SmolStr, PartialValue) {
    (SmolStr::new_static(name), PartialValue::Value(value))
}

fn entity(
    id: crate::cedar::EntityUID,
    attributes: impl IntoIterator<Item = (SmolStr, PartialValue)>,
    parents: HashSet<crate::cedar::EntityUID>,
) -> Entity {
    Entity::new_with_attr_partial_value(id, attributes, HashSet::new(), parents, [])
}

/// The context of a request, as far as policies look at it.
pub(crate) type Record = Arc<BTreeMap<SmolStr, Value>>;

/// Makes the context of a request.
///
/// # Errors
/// An argument has no value in Cedar, or the arguments are too large.
pub(crate) fn context(request: &PolicyRequest<'_>, reads: &Reads) -> Result<Record, String> {
    let mut record = BTreeMap::new();
    let mut add = |name: &'static str, value: &dyn Fn() -> Value| {
        if reads.sees(name) {
            record.insert(SmolStr::new_static(name), value());
        }
    };
    let since = request.time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    add("script", &|| Value::from(request.script));
    add("calls", &|| Value::from(i64::try_from(request.calls).unwrap_or(i64::MAX)));
    add("hour", &|| Value::from(i64::try_from(seconds / 3_600).unwrap_or_default()));
    add("weekday", &|| Value::from(WEEKDAYS[usize::try_from(days % 7).unwrap_or_default()]));
    if reads.sees("time") {
        record.insert(SmolStr::new_static("time"), time(since)?);
    }
    if reads.sees("arguments") {
        let schema = match request.object {
            PolicyObject::Tool(tool) => Some(tool.input_schema),
            _ => None,
        };
        let arguments = arguments(request.arguments, schema, reads)?;
        record.insert(SmolStr::new_static("arguments"), arguments);
    }
    Ok(Arc::new(record))
}

fn time(since: Duration) -> Result<Value, String> {
    let call = RestrictedExpr::call_extension_fn;
    let epoch = call(NAMES.datetime.clone(), vec![RestrictedExpr::val("1970-01-01")]);
    let passed = call(NAMES.duration.clone(), vec![RestrictedExpr::val(format!("{}ms", since.as_millis()))]);
    evaluated(&call(NAMES.offset.clone(), vec![epoch, passed]))
}

fn evaluated(expr: &RestrictedExpr) -> Result<Value, String> {
    let evaluator = RestrictedEvaluator::new(Extensions::all_available());
    evaluator.interpret(expr.as_borrowed()).map_err(|error| error.to_string())
}

/// The rest of the bounds.
struct Room {
    values: usize,
    bytes: usize,
}

fn arguments(
    arguments: Option<&JsonObject>,
    schema: Option<&JsonObject>,
    reads: &Reads,
) -> Result<Value, String> {
    let mut room = Room { values: MOST_VALUES, bytes: MOST_BYTES };
    let mut record: BTreeMap<SmolStr, Value> = BTreeMap::new();
    let properties = schema.and_then(|schema| schema.get("properties"));
    for (name, value) in arguments.into_iter().flatten() {
        if reads.arguments.as_ref().is_some_and(|known| !known.contains(name.as_str())) {
            continue;
        }
        let declared = properties.and_then(|properties| properties.get(name));
        let converted = convert(value, declared, DEEPEST, &mut room);
        if let Some(value) = converted.map_err(|why| format!("the argument `{}` {why}", clipped(name)))? {
            record.insert(name.into(), value);
        }
    }
    Ok(Value::record_arc(Arc::new(record), None))
}

/// A JSON value in Cedar; none for `null`, which Cedar does not have. `declared` is its schema.
fn convert(
    value: &Json,
    declared: Option<&Json>,
    depth: usize,
    room: &mut Room,
) -> Result<Option<Value>, String> {
    if depth == 0 {
        return Err(format!("is nested more than {DEEPEST} levels deep"));
    }
    room.values = room.values.checked_sub(1).ok_or_else(|| too_large(MOST_VALUES, "values"))?;
    Ok(Some(match value {
        Json::Null => return Ok(None),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => convert_number(number, declared)?,
        Json::String(text) => {
            take(room, text)?;
            Value::from(text.as_str())
        }
        Json::Array(items) => {
            let declared = declared.and_then(|declared| declared.get("items"));
            let items = items.iter().filter_map(|item| convert(item, declared, depth - 1, room).transpose());
            Value::set(items.collect::<Result<Vec<_>, _>>()?, None)
        }
        Json::Object(members) => {
            let properties = declared.and_then(|declared| declared.get("properties"));
            let mut record: BTreeMap<SmolStr, Value> = BTreeMap::new();
            for (name, member) in members {
                take(room, name)?;
                let declared = properties.and_then(|properties| properties.get(name));
                if let Some(value) = convert(member, declared, depth - 1, room)? {
                    record.insert(name.into(), value);
                }
            }
            Value::record_arc(Arc::new(record), None)
        }
    }))
}

fn take(room: &mut Room, text: &str) -> Result<(), String> {
    room.bytes = room.bytes.checked_sub(text.len()).ok_or_else(|| too_large(MOST_BYTES, "bytes"))?;
    Ok(())
}

fn too_large(most: usize, what: &str) -> String {
    format!("is too large: policies look at {most} {what} at most")
}

/// A `Long` for whole numbers, a `decimal` for others and wherever the schema says `number`.
fn convert_number(number: &Number, declared: Option<&Json>) -> Result<Value, String> {
    let is_decimal = declared.is_some_and(|declared| declared["type"] == "number");
    if let Some(whole) = whole(number).filter(|_| !is_decimal) {
        return Ok(Value::from(whole));
    }
    let mut text = number.to_string();
    if !text.contains(['.', 'e', 'E']) {
        text.push_str(".0");
    }
    let call = RestrictedExpr::call_extension_fn(NAMES.decimal.clone(), [RestrictedExpr::val(text.as_str())]);
    evaluated(&call).map_err(|_| {
        format!("is {text}, which policies cannot compare: they know numbers up to 922337203685477 with four decimal places")
    })
}

/// The whole number, however it is written: JSON Schema takes `7.0` and `7e0` for integers (draft 2020-12, section 4.2.3).
fn whole(number: &Number) -> Option<i64> {
    let of_float = || {
        let value = number.as_f64()?;
        let is_whole = value.fract() == 0.0 && value.abs() < 9_223_372_036_854_775_808.0;
        #[expect(clippy::cast_possible_truncation, reason = "a whole number within the bounds of i64")]
        is_whole.then_some(value as i64)
    };
    // A number beyond i64 that has no fraction in its text is no Long.
    number.as_i64().or_else(|| if number.is_u64() { None } else { of_float() })
}

fn clipped(name: &str) -> &str {
    &name[..name.floor_char_boundary(100)]
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::json;

    use super::*;

    fn converted(value: &Json, declared: Option<&Json>) -> Result<Option<String>, String> {
        let mut room = Room { values: MOST_VALUES, bytes: MOST_BYTES };
        Ok(convert(value, declared, DEEPEST, &mut room)?.map(|value| value.to_string()))
    }

    #[test]
    fn json_values_have_one_form_in_cedar() {
        let number = json!({"type": "number"});
        for (value, declared, expected) in [
            (json!(7), None, "7"),
            (json!(7), Some(&number), "decimal(\"7.0\")"),
            (json!(7.0), None, "7"),
            (json!(7.77e2), Some(&json!({"type": "integer"})), "777"),
            (json!(-0.0), None, "0"),
            (json!([7, 7.0]), None, "[7]"),
            (json!(7.0), Some(&number), "decimal(\"7.0\")"),
            (json!(7.25), None, "decimal(\"7.25\")"),
            (json!(-0.5), Some(&number), "decimal(\"-0.5\")"),
            (json!("a"), None, "\"a\""),
            (json!([2, 1, 2]), None, "[1, 2]"),
            (json!({"a": {"b": true}}), None, "{a: {b: true}}"),
            (json!({"a": null}), None, "{}"),
            (json!([null, 1]), None, "[1]"),
        ] {
            assert_eq!(converted(&value, declared), Ok(Some(expected.to_owned())), "{value}");
        }
        assert_eq!(converted(&json!(null), None), Ok(None));
    }

    #[test]
    fn what_cedar_cannot_compare_is_an_error() {
        for value in [json!(0.123_45), json!(1e300), json!(u64::MAX)] {
            assert!(converted(&value, None).unwrap_err().contains("cannot compare"), "{value}");
        }
    }

    #[test]
    fn large_and_deep_arguments_are_an_error_before_they_are_converted() {
        let deep = (0..DEEPEST).fold(json!(1), |value, _| json!([value]));
        assert!(converted(&deep, None).unwrap_err().contains("levels deep"));
        assert!(converted(&json!(vec![1; MOST_VALUES]), None).unwrap_err().contains("2000 values"));
        assert!(converted(&json!("x".repeat(MOST_BYTES + 1)), None).unwrap_err().contains("65536 bytes"));
        let keys: serde_json::Map<_, _> =
            (0..100).map(|n| (format!("{n}{}", "k".repeat(1_000)), json!(1))).collect();
        assert!(converted(&Json::Object(keys), None).unwrap_err().contains("65536 bytes"));
    }

    #[test]
    fn time_is_in_utc() {
        let friday: SystemTime = UNIX_EPOCH + Duration::from_secs(1_785_508_200);
        let request = PolicyRequest {
            principal: &Principal::local(),
            object: PolicyObject::Prompt { app: "a", name: "b" },
            arguments: None,
            script: false,
            calls: 2,
            time: friday,
        };
        let reads = Reads { context: None, ..Reads::default() };
        let text = Value::record_arc(context(&request, &reads).unwrap(), None).to_string();
        for part in ["hour: 14", "weekday: \"Fri\"", "calls: 2", "script: false", "1785508200000ms"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
