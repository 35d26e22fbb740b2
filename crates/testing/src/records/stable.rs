//! JSON whose keys are in order, so that snapshots do not depend on how a server writes its objects.

use serde_json::{Map, Value};

/// The same value with the keys of every object sorted.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            Value::Object(
                keys.into_iter().map(|key| (key.clone(), sorted(&fields[key]))).collect::<Map<_, _>>(),
            )
        }
        plain => plain.clone(),
    }
}

/// Serializes a record as its wire form, keys sorted.
macro_rules! serialize_as_raw {
    ($($record:ty),+) => {$(
        impl serde::Serialize for $record {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::records::sorted(&self.raw).serialize(serializer)
            }
        }
    )+};
}
pub(crate) use serialize_as_raw;
