//! Every error code a client can meet, with its cause and what to do.
//!
//! Codes and messages come from the error types themselves: values of them are made here and asked.

use std::{fmt::Write as _, time::Duration};

use gatewright_agentscript::{IllegalKind, Limits, Preset, WorkerError};
use gatewright_auth::{ERRORS, ErrorCode};
use gatewright_codecall::{MOST_ALLOWED_TOOLS, MOST_APP_IDS, MOST_TOOL_NAMES};
use gatewright_core::{InvokeError, rmcp::ErrorData};

use super::{cell, head};

/// Every error code.
pub fn errors() -> String {
    let mut text = head("Error codes", "errors");
    text.push_str(
        "\nCodes are stable: new ones come, none is renamed. A call that the gateway refuses or that misses its tool has \
         `isError: true`, the message as its text, and `code` in `_meta`, with `retryAfterSeconds` or `requiredScopes` where \
         there are some; it has no `structuredContent`, which would have to fit the tool's output schema. A meta-tool that \
         fails or is refused has `status` and `error`, with `code` and `message`, in `structuredContent`; a rate limit and missing scopes add \
         `retryAfterSeconds` and `requiredScopes` there, also to the `error` of a script that ends with such a call. Messages are \
         for people and may change.\n",
    );
    let _ = writeln!(
        text,
        "\nLists in the input of a meta-tool are bounded: {MOST_TOOL_NAMES} `toolNames`, {MOST_APP_IDS} `filter.appIds`, \
         {MOST_ALLOWED_TOOLS} `allowedTools`. More is `VALIDATION_ERROR`."
    );
    calls(&mut text);
    scripts(&mut text);
    workers(&mut text);
    upstreams(&mut text);
    protocol(&mut text);
    oauth(&mut text);
    text
}

fn calls(text: &mut String) {
    text.push_str(
        "\n## Calls of tools\n\nDirect `tools/call`, `codecall:invoke`, and `callTool` inside a script, where a script may catch \
         them. An uncaught one ends a script with `status: \"tool_error\"`.\n\n| code | message, for example | what to do |\n|---|---|---|\n",
    );
    let name = || "crm:users_get".to_owned();
    let errors = [
        (
            InvokeError::NotFound { name: "crm:user_get".to_owned(), nearest: Some(name()) },
            "Search for the tool; names are case-sensitive.",
        ),
        (
            InvokeError::MissingScopes { name: name(), missing: vec!["crm:read".to_owned()] },
            "Ask for a token with the scopes in `requiredScopes`.",
        ),
        (
            InvokeError::Denied { name: name(), why: "it is reached through code mode".to_owned() },
            "Follow the message: a visibility rule or `allowedTools` keeps the tool away.",
        ),
        (
            InvokeError::InvalidArguments { name: name(), problems: "/id: is required".to_owned() },
            "Correct the input; `codecall:describe` shows the schema.",
        ),
        (
            InvokeError::RateLimited { name: name(), retry_after: Duration::from_secs(12) },
            "Wait `retryAfterSeconds`, then try again.",
        ),
        (
            InvokeError::TimedOut { name: name(), after: Duration::from_secs(60) },
            "Ask for less, or raise `timeout` of the app.",
        ),
        (
            InvokeError::Cancelled { name: name() },
            "Nothing: the caller cancelled. A direct call ends with the JSON-RPC error -32800.",
        ),
        (
            InvokeError::App { name: name(), error: ErrorData::internal_error("no such user", None) },
            "Check the input; the tool's own code, when it names one, stands in place of this.",
        ),
    ];
    for (error, advice) in errors {
        let _ = writeln!(text, "| `{}` | {} | {advice} |", error.code(), cell(&error.to_string()));
    }
    text.push_str("| `SELF_REFERENCE_BLOCKED` | `codecall:invoke` or a script named a meta-tool | Call a tool of an app. A script cannot catch this one. |\n");
}

fn scripts(text: &mut String) {
    text.push_str(
        "\n## Ends of a script\n\n| `status` | code | meaning |\n|---|---|---|\n\
         | `syntax_error` | `SYNTAX_ERROR` | the text is not JavaScript; `location` says where |\n\
         | `illegal_access` | `VALIDATION_ERROR` | a rule of AgentScript is broken; `kind` names it (below) |\n\
         | `illegal_access` | `SELF_REFERENCE_BLOCKED` | a meta-tool was called |\n\
         | `runtime_error` | `EXECUTION_ERROR` | the script threw, or spent a limit: `name` says which |\n\
         | `runtime_error` | `RATE_LIMIT`, `VALIDATION_ERROR` | the call of `codecall:execute` itself was refused; nothing ran |\n\
         | `tool_error` | the tool's code | a call failed and nothing caught it |\n\
         | `timeout` | `TIMEOUT` | `vm.timeoutMs` is over; the message names the calls that were open |\n\n\
         Rules, as `kind` names them:\n\n| kind | what it refuses |\n|---|---|\n",
    );
    for (kind, about) in KINDS {
        let _ = writeln!(text, "| `{kind}` | {about} |");
    }
}

const KINDS: [(IllegalKind, &str); 11] = [
    (IllegalKind::IllegalBuiltinAccess, "`eval`, `Function` and their kin"),
    (IllegalKind::IllegalModuleAccess, "`require`, `import`"),
    (IllegalKind::IllegalGlobalAccess, "`process`, `global`, `globalThis`, `window`, `this` at top level"),
    (
        IllegalKind::IllegalPrototypeAccess,
        "`__proto__`, `.constructor`, `.prototype` and computed forms of them",
    ),
    (IllegalKind::IllegalTimer, "`setTimeout` and its kin"),
    (IllegalKind::IllegalIdentifier, "reserved identifiers, such as those that begin with `__ag_`"),
    (IllegalKind::IllegalLoop, "a loop that the preset does not allow"),
    (
        IllegalKind::IllegalSyntax,
        "syntax that AgentScript leaves out, such as `with`, `debugger` or decorators",
    ),
    (IllegalKind::IllegalCharacter, "invisible and bidirectional control characters"),
    (IllegalKind::ScriptTooLarge, "a text longer than the limit"),
    (IllegalKind::SelfReferenceBlocked, "a call of a meta-tool"),
];

fn workers(text: &mut String) {
    text.push_str(
        "\n## The worker pool\n\n`status` is `runtime_error`, and `timeout` for `WORKER_TIMEOUT`; `name` is the class.\n\n\
         | code | class | message, for example | what to do |\n|---|---|---|---|\n",
    );
    let limits = Limits::preset(Preset::Secure);
    let errors = [
        (
            WorkerError::Timeout(Duration::from_millis(4_000)),
            "The script loops in native code: make it do less.",
        ),
        (WorkerError::MemoryExceeded(limits.memory_bytes), "Keep fewer results; filter in the tools."),
        (
            WorkerError::Crashed("signal 11".to_owned()),
            "Try once more; report it with the script if it comes again.",
        ),
        (WorkerError::Disposed, "The server is ending: try again."),
        (WorkerError::QueueFull(64), "Try again later; raise `codecall.worker.queue` or `maxWorkers`."),
        (
            WorkerError::QueueTimeout(Duration::from_secs(5)),
            "Try again later; raise `codecall.worker.maxWorkers`.",
        ),
        (WorkerError::Aborted, "Nothing: the caller cancelled."),
        (WorkerError::MessageFlood(limits.messages_per_second), "Make fewer calls and log less."),
        (WorkerError::MessageInvalid, "Report it with the script."),
        (WorkerError::MessageTooLarge(limits.message_bytes), "Pass less in one call."),
        (
            WorkerError::StartupFailed("fork failed".to_owned()),
            "See the server's log: limits of the system, or a missing sandbox.",
        ),
        (WorkerError::TooManyPendingCalls(limits.max_pending_calls), "Await calls before making more."),
    ];
    for (error, advice) in errors {
        let (class, code) = error.class_and_code();
        let _ = writeln!(text, "| `{code}` | `{class}` | {} | {advice} |", cell(&error.to_string()));
    }
}

fn upstreams(text: &mut String) {
    text.push_str(
        "\n## Apps behind a connection\n\nIn `data.code` of the protocol error of a direct call.\n\n| code | meaning |\n|---|---|\n",
    );
    for (code, about) in UPSTREAM {
        let _ = writeln!(text, "| `{code}` | {about} |");
    }
}

const UPSTREAM: [(&str, &str); 7] = [
    ("UPSTREAM_UNREACHABLE", "the request could not be sent; try again"),
    ("UPSTREAM_ENDED", "the server went away during the call; it is started again"),
    ("UPSTREAM_DOWN", "the server is not connected now; `/readyz` says why"),
    ("UPSTREAM_BAD_ANSWER", "the answer is no answer to this kind of request"),
    ("UPSTREAM_TOO_LARGE", "the answer is longer than `maxMessageBytes` of the app"),
    ("UPSTREAM_FAILED", "the call failed in another way; the message says how"),
    ("TIMEOUT", "no answer within `timeout` of the app"),
];

fn oauth(text: &mut String) {
    text.push_str(
        "\n## Logins and tokens\n\n`error` of answers below `/oauth`, of the `WWW-Authenticate` header of the MCP endpoint, and of the address that a browser \
         is sent back to; `error_description` says more.\n\n| code | meaning | what to do |\n|---|---|---|\n",
    );
    for ErrorCode { code, meaning, advice } in ERRORS {
        let _ = writeln!(text, "| `{code}` | {meaning} | {advice} |");
    }
    text.push_str(
        "\nA tool of an app with `auth.type: oauth` that the user did not connect yet answers with `AUTHORIZATION_REQUIRED` and `url`, where the client \
         takes no URL elicitation (2025-11-25: error -32042): open the address in a browser, then call again.\n",
    );
}

fn protocol(text: &mut String) {
    text.push_str(
        "\n## JSON-RPC\n\n| code | meaning |\n|---|---|\n\
         | -32700 | the body is not JSON |\n\
         | -32600 | not a JSON-RPC request; or the caller lacks the scopes in `data.requiredScopes` (over HTTP: 403 and a challenge) |\n\
         | -32601 | unknown method |\n\
         | -32602 | invalid parameters; an unknown tool; from 2026-07-28 on also an unknown resource |\n\
         | -32603 | internal error, and errors of apps |\n\
         | -32001 | nobody is authenticated (HTTP 401), or the token lacks scopes (HTTP 403); `WWW-Authenticate` and `data` say more |\n\
         | -32002 | resource not found, up to 2025-11-25 |\n\
         | -32800 | the request was cancelled; sent where somebody still waits: an HTTP POST inside a session |\n\
         | -32000 | refused by the transport: Host, Origin, size, load, a session that is not known (HTTP 404); the HTTP status says which |\n",
    );
}

#[cfg(test)]
mod tests {
    use gatewright_agentscript::{Rejection, ScriptPolicy, ScriptSource, VALIDATE_STACK};

    use super::*;

    fn refused(script: String) -> Option<IllegalKind> {
        let check = move || {
            let policy = ScriptPolicy::new(Preset::LockedDown).reserved_tool_prefixes(["codecall:"]);
            match ScriptSource::new(&script).validate(&policy, &Limits::preset(Preset::LockedDown)) {
                Err(Rejection::Illegal { kind, .. }) => Some(kind),
                Err(other) => panic!("{script}: {other}"),
                Ok(_) => None,
            }
        };
        std::thread::Builder::new().stack_size(VALIDATE_STACK).spawn(check).unwrap().join().unwrap()
    }

    #[test]
    fn what_the_table_says_that_a_rule_refuses_is_refused_by_it() {
        use IllegalKind::{
            IllegalBuiltinAccess, IllegalCharacter, IllegalGlobalAccess, IllegalIdentifier, IllegalLoop,
            IllegalModuleAccess, IllegalPrototypeAccess, IllegalSyntax, IllegalTimer, ScriptTooLarge,
            SelfReferenceBlocked,
        };
        let scripts = [
            (IllegalBuiltinAccess, "return eval('1')"),
            (IllegalBuiltinAccess, "return new Function('1')"),
            (IllegalModuleAccess, "return require('fs')"),
            (IllegalModuleAccess, "return await import('fs')"),
            (IllegalGlobalAccess, "return process"),
            (IllegalGlobalAccess, "return globalThis"),
            (IllegalGlobalAccess, "return window"),
            (IllegalGlobalAccess, "return this"),
            (IllegalPrototypeAccess, "return ({}).__proto__"),
            (IllegalPrototypeAccess, "return ({}).constructor"),
            (IllegalPrototypeAccess, "return ({})['proto' + 'type']"),
            (IllegalTimer, "setTimeout(() => {}, 1)"),
            (IllegalIdentifier, "const __ag_x = 1; return __ag_x"),
            (IllegalLoop, "let n = 0; while (n < 3) n++; return n"),
            (IllegalSyntax, "debugger"),
            (IllegalCharacter, "return 'a\u{200b}b'"),
            (SelfReferenceBlocked, "return await callTool('codecall:search', {})"),
        ];
        for (kind, script) in scripts {
            assert_eq!(refused(script.to_owned()), Some(kind), "{script}");
        }
        assert_eq!(refused(format!("return '{}'", "x".repeat(20_000))), Some(ScriptTooLarge));
        assert!(
            KINDS
                .iter()
                .all(|(kind, _)| *kind == ScriptTooLarge || scripts.iter().any(|(one, _)| one == kind))
        );
        for allowed in [
            "function* g() { yield 1; } return [...g()]",
            "label: for (const n of [1]) { break label; } return 1",
        ] {
            assert_eq!(refused(allowed.to_owned()), None, "{allowed}");
        }
    }
}
