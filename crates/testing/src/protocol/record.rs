//! Shared by all records: serialization with sorted keys, and the error of a conversion.

/// A record has no such part, or its part cannot be converted to the requested type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(pub(crate) String);

/// Serializes a record as its wire form with sorted keys, so that snapshots do not depend on the server's key order.
macro_rules! serialize_as_raw {
    ($($record:ty),+) => {$(
        impl serde::Serialize for $record {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut sorted = self.raw.clone();
                sorted.sort_all_objects();
                sorted.serialize(serializer)
            }
        }
    )+};
}
pub(crate) use serialize_as_raw;
