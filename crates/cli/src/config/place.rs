//! Places in a file as JSON pointers (RFC 6901).

use gatewright_findings::escape;
use serde_path_to_error::{Path, Segment};

/// The path as a JSON pointer, as far as it is known.
pub(super) fn pointer(path: &Path) -> String {
    let parts = path.iter().map_while(|segment| match segment {
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Map { key } => Some(format!("/{}", escape(key))),
        Segment::Enum { .. } => Some(String::new()),
        Segment::Unknown => None,
    });
    parts.collect()
}
