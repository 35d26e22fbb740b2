//! Times for which approvals stand.

use serde::{Deserialize, Serialize};

use crate::RequestObject;

/// Time for which an approval stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalDuration {
    /// For one request.
    #[default]
    Once,
    /// For all requests for the object by the same script.
    Run,
    /// For all requests for the object by the same caller in the next hour.
    Hour,
}

/// Ends of labels.
const IN_SCRIPT: &str = " in this script";
const FOR_HOUR: &str = " for an hour";

/// A word for a request for `object`.
pub(super) fn call(object: &RequestObject) -> &'static str {
    match object {
        RequestObject::Tool(_) => "call",
        RequestObject::Resource(_) | RequestObject::Prompt(_) => "request",
    }
}

impl ApprovalDuration {
    const ALL: [Self; 3] = [Self::Once, Self::Run, Self::Hour];

    /// Those to choose from for a request, of a script or not, that `may_stand` for longer or not.
    pub(super) fn offered(may_stand: bool, in_run: bool) -> &'static [Self] {
        match (may_stand, in_run) {
            (false, _) => &[Self::Once],
            (true, false) => &[Self::Once, Self::Hour],
            (true, true) => &Self::ALL,
        }
    }

    /// The value that [`ApprovalDuration::name`] gives this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|duration| duration.name() == name)
    }

    /// The value that [`ApprovalDuration::label`] gives this label, whatever the object.
    pub(super) fn labelled(label: &str) -> Self {
        match label {
            label if label.ends_with(IN_SCRIPT) => Self::Run,
            label if label.ends_with(FOR_HOUR) => Self::Hour,
            _ => Self::Once,
        }
    }

    /// The words of forms for it, in a question about `object`.
    pub fn label(self, object: &RequestObject) -> String {
        match self {
            Self::Once => format!("this {}", call(object)),
            Self::Run => format!("this {}{IN_SCRIPT}", object.kind()),
            Self::Hour => format!("this {}{FOR_HOUR}", object.kind()),
        }
    }

    /// A name for forms and lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Run => "run",
            Self::Hour => "hour",
        }
    }
}
