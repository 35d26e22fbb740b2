//! JSON whose keys are in order, so that snapshots do not depend on how a server writes its objects.

/// Serializes a record as its wire form, keys sorted.
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
