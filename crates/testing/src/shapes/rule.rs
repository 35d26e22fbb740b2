//! The rules that messages of a server are checked against.

use serde::{Deserialize, Serialize};

/// A rule for messages of a server. [`Strict::except`](super::Strict::except) turns single ones off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Rule {
    /// An answer is a JSON-RPC 2.0 response with a result or a whole error.
    JsonRpc,
    /// A message fits MCP's own schema of the negotiated revision.
    Schema,
    /// Content of tools, prompts and resources consists of the blocks that the revision has.
    Content,
    /// `inputSchema` is a valid JSON Schema of an object.
    InputSchema,
    /// `outputSchema` is a valid JSON Schema.
    OutputSchema,
    /// `structuredContent` is there and fits the `outputSchema` of its tool.
    StructuredContent,
    /// Images, audio and blobs are Base64 (RFC 4648 §4).
    Base64,
    /// URIs of resources are absolute (RFC 3986).
    Uris,
    /// A JSON answer over HTTP has the content type `application/json`, an event stream `text/event-stream`.
    ContentType,
    /// A server uses only capabilities that it declared, and asks only what the client can answer.
    Capabilities,
    /// Names of tools and prompts, and URIs of resources, are unique.
    Duplicates,
    /// Cursors lead to the end of a list.
    Cursors,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 12] = [
        Self::JsonRpc,
        Self::Schema,
        Self::Content,
        Self::InputSchema,
        Self::OutputSchema,
        Self::StructuredContent,
        Self::Base64,
        Self::Uris,
        Self::ContentType,
        Self::Capabilities,
        Self::Duplicates,
        Self::Cursors,
    ];

    /// The name in suites and reports, such as `input-schema`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "json-rpc",
            Self::Schema => "schema",
            Self::Content => "content",
            Self::InputSchema => "input-schema",
            Self::OutputSchema => "output-schema",
            Self::StructuredContent => "structured-content",
            Self::Base64 => "base64",
            Self::Uris => "uris",
            Self::ContentType => "content-type",
            Self::Capabilities => "capabilities",
            Self::Duplicates => "duplicates",
            Self::Cursors => "cursors",
        }
    }

    /// The effect on clients, as tried with the TypeScript SDK 1.32 and the Python SDK 1.30 and 2.3.
    pub(super) const fn effect(self) -> &'static str {
        match self {
            Self::JsonRpc => {
                "clients of the TypeScript and Python SDKs take this for no answer and wait until their timeout"
            }
            Self::Schema => {
                "a client of the TypeScript SDK rejects the whole answer (ZodError), one of the Python SDK mostly too (ValidationError)"
            }
            Self::Content => {
                "clients of the TypeScript SDK (ZodError) and the Python SDK (ValidationError) reject the whole result, so a model sees \
                 none of it"
            }
            Self::InputSchema => {
                "`listTools` of the TypeScript SDK fails (ZodError), mostly also that of the Python SDK from 2.0 on: no tool of the server can \
                 be used"
            }
            Self::OutputSchema => {
                "`listTools` of the TypeScript SDK fails: no tool of the server can be used; the Python SDK fails at the call"
            }
            Self::StructuredContent => {
                "`callTool` of the TypeScript SDK throws an McpError and that of the Python SDK a RuntimeError, in place of the result"
            }
            Self::Base64 => {
                "a client of the TypeScript SDK rejects the whole result (ZodError); with the Python SDK decoding fails later"
            }
            Self::Uris => {
                "a client of the Python SDK 1.x rejects the whole answer (ValidationError); the TypeScript SDK accepts it"
            }
            Self::ContentType => {
                "clients of the TypeScript SDK (StreamableHTTPError) and the Python SDK (McpError) fail with \"Unexpected content type\""
            }
            Self::Capabilities => {
                "hosts use only what is declared, so it is never seen; a client of either SDK answers requests it did not offer with an error"
            }
            Self::Duplicates => {
                "both SDKs accept it, and hosts show one of the two; APIs of models reject requests with two tools of a name"
            }
            Self::Cursors => "both SDKs accept it; a client that reads all pages never ends",
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Rule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|rule| rule.name() == name).ok_or_else(|| {
            gatewright_findings::unknown("rule", name, Self::ALL.iter().map(|rule| rule.name()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_suites() {
        for rule in Rule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
            assert_eq!(rule.name().parse::<Rule>().unwrap(), rule);
        }
        assert!("duplicate".parse::<Rule>().unwrap_err().contains("`duplicates`"));
    }
}
