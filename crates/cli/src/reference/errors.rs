//! Every error code that a client can receive, with its cause and advice.
//!
//! Codes and messages come from example values of the error types.

use std::{fmt::Write as _, time::Duration};

use gatewright_agentscript::{IllegalKind, Limits, Preset, WorkerError};
use gatewright_auth::{ERRORS, ErrorCode};
use gatewright_codecall::{MOST_ALLOWED_TOOLS, MOST_APP_IDS, MOST_TOOL_NAMES};
use gatewright_core::{
    ApprovalRequest, CannotAsk, Forbidden, InvokeError, RequestDigest, RequestObject, Unasked, Unavailable,
    UnavailableApp, rmcp::ErrorData,
};
use gatewright_executions::ExecutionError;

use super::{cell, head};

/// Every error code.
pub fn errors() -> String {
    let mut text = head("Error codes", "errors");
    text.push_str(
        "\nCodes are stable: new ones may be added, none is renamed. Messages are for people and may change.\n\n\
         A direct `tools/call` that the gateway rejects has `isError: true`, the message as its text, and `code` in `_meta`, with \
         `retryAfterSeconds` or `requiredScopes` where they apply. It has no `structuredContent`, which would have to match the \
         output schema of the tool. Three kinds of failure are JSON-RPC errors instead: an unknown tool (-32602) and a cancelled \
         call (-32800), with `code` in `data`, and the app's own JSON-RPC errors, which are passed on. A meta-tool that fails or \
         is rejected has `status` and `error`, with `code` and `message`, in `structuredContent`. A rate limit and missing scopes \
         add `retryAfterSeconds` and `requiredScopes` to `error`, also in the result of a script that ends with such a call.\n",
    );
    let _ = writeln!(
        text,
        "\nLists in the input of a meta-tool are bounded: {MOST_TOOL_NAMES} `toolNames`, {MOST_APP_IDS} `filter.appIds`, \
         {MOST_ALLOWED_TOOLS} `allowedTools`. A longer one is a `VALIDATION_ERROR`."
    );
    calls(&mut text);
    scripts(&mut text);
    workers(&mut text);
    executions(&mut text);
    upstreams(&mut text);
    openapi(&mut text);
    protocol(&mut text);
    oauth(&mut text);
    text
}

fn calls(text: &mut String) {
    text.push_str(
        "\n## Calls of tools\n\nFor direct `tools/call`, `codecall:invoke`, and `callTool` in a script, which can catch them. An \
         uncaught error ends the script with `status: \"tool_error\"`.\n\n| code | example of a message | what to do |\n|---|---|---|\n",
    );
    let name = || "crm:users_get".to_owned();
    let errors = [
        (
            InvokeError::NotFound { name: "crm:user_get".to_owned(), nearest: Some(name()) },
            "Search for the tool; names are case-sensitive.",
        ),
        (
            InvokeError::Unavailable {
                name: name(),
                app: UnavailableApp { id: "crm".into(), why: Unavailable::Starting },
            },
            "Try again in a moment.",
        ),
        (
            InvokeError::Unavailable {
                name: name(),
                app: UnavailableApp {
                    id: "crm".into(),
                    why: Unavailable::Down("connection refused".to_owned()),
                },
            },
            "Try again later; the log and the console have details of the reason.",
        ),
        (
            InvokeError::Unavailable {
                name: name(),
                app: UnavailableApp {
                    id: "crm".into(),
                    why: Unavailable::Busy(
                        "has `maxSessions` connections in use; try again when one has ended".to_owned(),
                    ),
                },
            },
            "Follow the message; `maxSessions` of the app limits its connections, of which one caller has half at most.",
        ),
        (
            InvokeError::Changed { name: name() },
            "Nothing, for callers. An operator reads `gatewright pins diff` and approves the change with `gatewright pins approve` ([Teams](../TEAMS.md#pinned-tools)).",
        ),
        (
            InvokeError::MissingScopes { name: name(), missing: vec!["crm:read".to_owned()] },
            "Ask for a token with the scopes in `requiredScopes`.",
        ),
        (
            InvokeError::Denied { name: name(), why: "it is reached through code mode".to_owned() },
            "Follow the message: a visibility rule or `allowedTools` excludes the tool.",
        ),
        (
            InvokeError::Forbidden { name: name(), why: Forbidden::Policy("no-deletes".into()) },
            "A policy of the operator stops the call ([Policies](../POLICIES.md)); `policy` in `_meta` names it.",
        ),
        (
            InvokeError::ApprovalRequired {
                object: RequestObject::Tool(name()),
                policy: "large-refunds".into(),
                reason: "Refund over 1,000".into(),
                may_stand: true,
                digest: RequestDigest::from_bytes([0; 32]),
                request: Ok(Box::new(ApprovalRequest {
                    id: "apr_…".to_owned(),
                    page: Some("https://mcp.example.com/oauth/account/approvals".to_owned()),
                    approvers: None,
                    asks: None,
                    expires_ms: 0,
                })),
            },
            "Somebody has to approve the call with exactly these arguments; `approval` in `_meta` has its `id` and the `url` of the page. Then make the call again, or go on with the script (`resume`).",
        ),
        (
            InvokeError::ApprovalDenied { object: RequestObject::Tool(name()), by: None },
            "Do not make the call; a script can catch this and go on without it.",
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
            InvokeError::InputRequired {
                name: name(),
                unasked: Unasked::new("\"Which user?\" (id)", CannotAsk::Capability("elicitation")).into(),
            },
            "Call the tool from a client that can answer, or with arguments that answer the question already. What the tool did before it asked is done.",
        ),
        (
            InvokeError::InputExpired { name: name() },
            "Look at what the tool did before it asked, then call it without `requestState`. A question waits for `questionTimeout` of the app.",
        ),
        (InvokeError::Cancelled { name: name() }, "Nothing: the caller cancelled."),
        (
            InvokeError::App { name: name(), error: ErrorData::internal_error("no such user", None) },
            "Check the input. If the tool returns a code of its own, that code replaces this one.",
        ),
    ];
    for (error, advice) in errors {
        let _ = writeln!(text, "| `{}` | {} | {advice} |", error.code(), cell(&error.to_string()));
    }
    text.push_str("| `SELF_REFERENCE_BLOCKED` | a script cannot call `codecall:search`; call the tools of apps | Call a tool of an app. A script cannot catch this error. |\n");
    text.push_str("| `OUTCOME_UNKNOWN` | the gateway stopped while `crm:users_create` was under way, and it is not known whether it had its effect | Look what happened before you call it again. A script can catch this error. |\n");
    text.push_str("| `PLAN_TOO_DEEP` | `tidy` is a plan in a plan in a plan in a plan; at most 3 may wait for each other | Call the tools of apps from the plan. |\n");
    text.push_str("| `INVALID_OUTPUT` | plan `plans:tidy`: its result does not fit its output schema: /total: is not a number | Correct the saved plan or its `output`. |\n");
}

fn scripts(text: &mut String) {
    text.push_str(
        "\n## Results of a script\n\n| `status` | code | meaning |\n|---|---|---|\n\
         | `syntax_error` | `SYNTAX_ERROR` | the script is not valid JavaScript; `location` has the place |\n\
         | `illegal_access` | `VALIDATION_ERROR` | the script violates a rule of AgentScript; `kind` names it (below) |\n\
         | `illegal_access` | `SELF_REFERENCE_BLOCKED` | the script called a meta-tool, or a plan called itself |\n\
         | `runtime_error` | `EXECUTION_ERROR` | the script threw an error or exceeded a limit; `name` is the class of the error |\n\
         | `runtime_error` | `RATE_LIMIT`, `VALIDATION_ERROR` | the call of `codecall:execute` itself was rejected; nothing ran |\n\
         | `runtime_error` | `REPLAY_DIVERGED` | the run did something else than its journal says, and was stopped before any new call |\n\
         | `running` | | the run goes on in the background; `executionId` names it |\n\
         | `tool_error` | `INPUT_REQUIRED` | the plan waits for an answer that this client cannot be asked for; `executionId` names it, and `url` the page where its user answers |\n\
         | `tool_error` | the code of the call | a call failed and the script did not catch the error; or the check of the plan found that it would fail, and nothing was called; `location` has the place |\n\
         | `timeout` | `TIMEOUT` | the script ran longer than `codecall.vm.timeoutMs`; the message names the open calls |\n\n\
         Values of `kind`:\n\n| kind | rejected code |\n|---|---|\n",
    );
    for (kind, about) in KINDS {
        let _ = writeln!(text, "| `{kind}` | {about} |");
    }
}

const KINDS: [(IllegalKind, &str); 11] = [
    (IllegalKind::IllegalBuiltinAccess, "`eval`, `Function` and similar"),
    (IllegalKind::IllegalModuleAccess, "`require`, `import`"),
    (IllegalKind::IllegalGlobalAccess, "`process`, `global`, `globalThis`, `window`, `this` at top level"),
    (
        IllegalKind::IllegalPrototypeAccess,
        "`__proto__`, `.constructor`, `.prototype` and computed forms of them",
    ),
    (IllegalKind::IllegalTimer, "`setTimeout` and similar"),
    (IllegalKind::IllegalIdentifier, "reserved identifiers, such as those that begin with `__ag_`"),
    (IllegalKind::IllegalLoop, "a loop that the preset does not allow"),
    (
        IllegalKind::IllegalSyntax,
        "syntax that AgentScript does not support, such as `with`, `debugger` or decorators",
    ),
    (IllegalKind::IllegalCharacter, "invisible and bidirectional control characters"),
    (IllegalKind::ScriptTooLarge, "a script longer than the limit"),
    (IllegalKind::SelfReferenceBlocked, "a call of a meta-tool, or of a plan from within itself"),
];

fn workers(text: &mut String) {
    text.push_str(
        "\n## The worker pool\n\n`status` is `runtime_error`, or `timeout` for `WORKER_TIMEOUT`; `name` is the class.\n\n\
         | code | class | example of a message | what to do |\n|---|---|---|---|\n",
    );
    let limits = Limits::preset(Preset::Secure);
    let errors = [
        (
            WorkerError::Timeout(Duration::from_millis(4_000)),
            "The script loops in native code, such as a regular expression: simplify it.",
        ),
        (WorkerError::MemoryExceeded(limits.memory_bytes), "Keep fewer results; filter in the tools."),
        (
            WorkerError::Crashed("signal 11".to_owned()),
            "Try again; report it with the script if it happens again.",
        ),
        (WorkerError::Disposed, "The server is stopping: try again."),
        (
            WorkerError::QueueFull(64),
            "Try again later; raise `codecall.worker.queue` or `maxWorkers`. Where memory is short, give the gateway more.",
        ),
        (
            WorkerError::QueueTimeout(Duration::from_secs(5)),
            "Try again later; raise `codecall.worker.maxWorkers`.",
        ),
        (WorkerError::Aborted, "Nothing: the caller cancelled."),
        (
            WorkerError::MessageFlood(limits.messages_per_second),
            "Keep what `getTool` returns in a variable, and make fewer calls.",
        ),
        (WorkerError::MessageInvalid, "Report it with the script."),
        (WorkerError::MessageTooLarge(limits.message_bytes), "Pass less in one call."),
        (
            WorkerError::StartupFailed("fork failed".to_owned()),
            "See the log of the server: a limit of the system, or a missing sandbox.",
        ),
        (WorkerError::TooManyPendingCalls(limits.max_pending_calls), "Await calls before making more."),
    ];
    for (error, advice) in errors {
        let (class, code) = error.class_and_code();
        let _ = writeln!(text, "| `{code}` | `{class}` | {} | {advice} |", cell(&error.to_string()));
    }
}

fn executions(text: &mut String) {
    text.push_str(
        "\n## Executions\n\nFor runs that wait, go on, or run in the background.\n\n| code | message | what to do |\n|---|---|---|\n",
    );
    let errors = [
        (
            ExecutionError::NotFound,
            "Ids are valid for the same subject and client, for `executions.retention`.",
        ),
        (
            ExecutionError::ScopesMissing,
            "Get a token with the scopes of the one that it began with, or start it again. It can be cancelled without.",
        ),
        (ExecutionError::Busy, "Wait until it ends or asks."),
        (ExecutionError::Ended, "Its answer has been given, or nobody wants it any more."),
        (
            ExecutionError::LeaseLost,
            "Ask for the execution again: it has ended, or another instance runs it.",
        ),
        (
            ExecutionError::AccessEnded,
            "The grant behind the token that began it was revoked, or the user signed out, or an operator revoked the access of the user or the client. Sign in and start it again.",
        ),
        (ExecutionError::TooLarge, "Request less data, or raise `executions.maxJournalBytes`."),
        (
            ExecutionError::TooMany,
            "Answer or cancel some, or raise `executions.maxPerPrincipal`; a principal has a quarter of the free places and bytes at most.",
        ),
        (ExecutionError::Full, "Raise `executions.maxExecutions` or `maxBytes`."),
        (ExecutionError::Unreadable, "Look for the reason in the store: its records were changed."),
        (ExecutionError::Unavailable, "Look at the store of `auth.tokenStorage`."),
    ];
    for (error, advice) in errors {
        let _ = writeln!(text, "| `{}` | {} | {advice} |", error.code(), cell(&error.to_string()));
    }
}

fn upstreams(text: &mut String) {
    text.push_str(
        "\n## Upstream apps\n\nIn `data.code` of the JSON-RPC error of a direct call.\n\n| code | meaning |\n|---|---|\n",
    );
    for (code, about) in UPSTREAM {
        let _ = writeln!(text, "| `{code}` | {about} |");
    }
}

fn openapi(text: &mut String) {
    text.push_str(
        "\n## OpenAPI apps\n\nIn `structuredContent.code` of a tool error, beside `message`, `status` and `problem`.\n\n| code | meaning |\n|---|---|\n",
    );
    for (code, about) in OPENAPI {
        let _ = writeln!(text, "| `{code}` | {about} |");
    }
}

const OPENAPI: [(&str, &str); 11] = [
    ("HTTP_<status>", "the API answered with this status; the message is that of the API"),
    ("RATE_LIMIT", "the API answered with HTTP 429; `retryAfterSeconds` is its `Retry-After`"),
    (
        "VALIDATION_ERROR",
        "an argument cannot be sent in its place, such as `..` in a path, or the answer has no list for `paginate`",
    ),
    ("CREDENTIALS_MISSING", "`auth` of the app has nothing for the security schemes of the operation"),
    ("CREDENTIALS_REFUSED", "the token endpoint gave the gateway no access token"),
    ("UPSTREAM_AUTHORIZATION", "the caller is no user who can sign in, or their token cannot be used now"),
    ("ADDRESS_REFUSED", "the address, or that of a redirect, is private or not https; see `allowPrivate`"),
    ("OPENAPI_NO_SERVER", "the document names no usable server, and `baseUrl` is not set"),
    ("UPSTREAM_UNREACHABLE", "the API cannot be reached, or the connection broke"),
    (
        "UPSTREAM_BAD_ANSWER",
        "the answer is not what its type says, is compressed, or has too many values; or redirects do not end",
    ),
    (
        "UPSTREAM_TOO_LARGE",
        "the answer is longer than `maxResponseBytes` of the app, or there is no memory for it in the script",
    ),
];

const UPSTREAM: [(&str, &str); 14] = [
    ("UPSTREAM_UNREACHABLE", "the request could not be sent; try again"),
    (
        "UPSTREAM_ENDED",
        "the server ended, or the connection broke, during the call; the gateway starts or connects it again",
    ),
    (
        "UPSTREAM_STARTING",
        "the first connection of the app is being made; try again in a moment. A request waits for it for up to 5 s after the start",
    ),
    ("UPSTREAM_DOWN", "the server is not connected; the log and the console have details of the reason"),
    ("UPSTREAM_BAD_ANSWER", "the answer does not match the request"),
    (
        "UPSTREAM_TOO_LARGE",
        "the answer is longer than `maxMessageBytes` of the app, or has more keys and values than that allows, or its values would take more \
         memory than `codecall.vm.hostMemoryMib` leaves to the script",
    ),
    (
        "UPSTREAM_TASK_LOST",
        "the tool runs as a task, and the server does not know the task any more; it may have run (`_meta.code` of the tool error)",
    ),
    ("UPSTREAM_FAILED", "the call failed for another reason; see the message"),
    ("UPSTREAM_AUTHORIZATION", "no token of the caller for the server can be obtained; see the message"),
    (
        "CALLER_CANNOT_BE_ASKED",
        "the server asked something for which the caller declared no capability, or that its request cannot bring to it; see the message",
    ),
    (
        "CALLER_TIMED_OUT",
        "the caller did not answer a question of the server within `questionTimeout` of the app",
    ),
    ("CALLER_BUSY", "too many questions wait for answers already; see docs/operate/questions.md"),
    ("CALLER_GONE", "the caller could not be reached, or left, before it answered a question of the server"),
    ("TIMEOUT", "no answer within `timeout` of the app"),
];

fn oauth(text: &mut String) {
    text.push_str(
        "\n## Login and tokens\n\n`error` in responses below `/oauth`, in the `WWW-Authenticate` header of the MCP endpoint, and in the address that the browser is \
         redirected to; `error_description` has details.\n\n| code | meaning | what to do |\n|---|---|---|\n",
    );
    for ErrorCode { code, meaning, advice } in ERRORS {
        let _ = writeln!(text, "| `{code}` | {meaning} | {advice} |");
    }
    text.push_str(
        "\nFor an app with `auth.type: oauth` that the user has not connected yet, a call returns `AUTHORIZATION_REQUIRED` and `url`, or the \
         JSON-RPC error -32042 if the client supports URL elicitation (2025-11-25): open the address in a browser, then call again. \
         A script waits instead: `INPUT_REQUIRED` names the address and the execution to `resume`.\n",
    );
}

fn protocol(text: &mut String) {
    text.push_str(
        "\n## JSON-RPC\n\n| code | meaning |\n|---|---|\n\
         | -32700 | the body is not JSON |\n\
         | -32600 | not a JSON-RPC request; an `id`, `requestId` or `progressToken` over 1 KiB; or, without HTTP, the caller lacks the scopes in `data.requiredScopes` |\n\
         | -32601 | unknown method |\n\
         | -32602 | invalid parameters; an unknown tool; from 2026-07-28 on also an unknown resource |\n\
         | -32603 | internal error, or an error of an app |\n\
         | -32000 | rejected by the transport: Host, Origin, size, load, an unknown session (HTTP 404); see the HTTP status |\n\
         | -32001 | not authenticated (HTTP 401), or the token lacks scopes (HTTP 403); see `WWW-Authenticate` and `data` |\n\
         | -32002 | resource not found, up to 2025-11-25 |\n\
         | -32020 | a header of HTTP and the body disagree (from 2026-07-28 on), or a header of MCP is sent twice |\n\
         | -32021 | the request needs a capability that the client does not declare (from 2026-07-28 on) |\n\
         | -32022 | unsupported protocol version; `data.supported` lists the supported ones |\n\
         | -32042 | the user must open an address first (URL elicitation, 2025-11-25) |\n\
         | -32800 | the request was cancelled; sent only if the client still waits for it: an HTTP POST in a session |\n",
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
    fn each_rule_rejects_the_code_that_the_table_lists_for_it() {
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
