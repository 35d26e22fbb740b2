//! Advice to operators on the codes that executions end with.

use gatewright_core::codes;

/// Codes of calls that rules of the gateway did not let pass.
pub(crate) const REFUSALS: [&str; 6] = [
    codes::ACCESS_DENIED,
    codes::APPROVAL_DENIED,
    codes::APPROVAL_REQUIRED,
    codes::AUTHORIZATION_REQUIRED,
    codes::RATE_LIMIT,
    codes::TOOL_CHANGED,
];

/// The cause of a status or code, and what an operator can do; none for those of servers and of scripts.
pub(crate) fn on(code: &str) -> Option<&'static str> {
    Some(match code {
        codes::TOOL_NOT_FOUND => {
            "No tool of this name is served to the caller. Compare the name with the list of tools; names are case-sensitive."
        }
        codes::TOOL_CHANGED => {
            "The server changed the definition of the tool after it was approved. Read the differences on the page Pins, then approve it with `gatewright pins approve`."
        }
        codes::ACCESS_DENIED => {
            "A scope, a policy or the mode of the caller does not reach the tool. The tool's page says what a caller needs."
        }
        codes::VALIDATION_ERROR => {
            "The arguments do not fit the input schema of the tool. The message names each bad place."
        }
        codes::TOOL_EXECUTION_ERROR => {
            "The server of the tool reported a failure. Its own log has the cause."
        }
        codes::APPROVAL_REQUIRED => {
            "A policy asks for an approval. Those that wait are on the page Approvals."
        }
        codes::APPROVAL_DENIED => "Somebody refused the approval that the call needs.",
        codes::RATE_LIMIT => {
            "The caller made more calls than `rateLimits` allows. Raise the limit, or have the client call less often."
        }
        codes::TIMEOUT | "timeout" => {
            "There was no answer in time: a call takes `apps.X.timeout` at most, a script `codecall.vm.timeoutMs`. Look for the slow call below."
        }
        codes::CANCELLED => "The client cancelled the request or went away.",
        codes::UPSTREAM_STARTING => {
            "The app was still making its first connection. Call again once it is up."
        }
        codes::UPSTREAM_DOWN => {
            "The app does not answer. The overview has its last error; it is tried again by itself."
        }
        codes::AUTHORIZATION_REQUIRED => {
            "The caller has to sign in at the server behind the app. The client shows the address."
        }
        codes::INPUT_EXPIRED => "The answers came after the call had given up. Have the client call again.",
        codes::INPUT_REQUIRED => "The tool asks its caller something, and this caller cannot be asked.",
        codes::SELF_REFERENCE_BLOCKED => {
            "Scripts cannot call the tools of code mode. Call the app's tool by its own name."
        }
        codes::OUTCOME_UNKNOWN => {
            "The gateway stopped during the call, and nobody knows if it had its effect. Look at the server before it is repeated."
        }
        "syntax_error" => "The script cannot be parsed. The marked line has the error.",
        "illegal_access" => {
            "The script uses something that AgentScript does not have. The marked line has it; docs/SCRIPTS.md lists the rules."
        }
        "runtime_error" => {
            "The script threw an error, or reached a limit that its message names. Run it in the pad to look at it."
        }
        "tool_error" => {
            "A tool call failed and the script did not catch it. The page of the run has its error."
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_advice() {
        for code in REFUSALS {
            assert!(on(code).is_some(), "{code}");
        }
        assert_eq!(on("E_OF_A_SERVER"), None);
    }
}
