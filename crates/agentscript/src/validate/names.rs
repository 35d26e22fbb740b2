//! Names that scripts may not use, and advice for each.

use crate::outcome::IllegalKind;

/// Returns the rule that a free name (one that the script does not declare) breaks.
pub(super) fn free_name(name: &str) -> Option<(IllegalKind, String)> {
    let kind = free_name_kind(name)?;
    let message = match kind {
        IllegalKind::IllegalModuleAccess if matches!(name, "module" | "exports") => format!(
            "`{name}` is not available: AgentScript has no modules; write what the function does as the script itself, and `return` the result"
        ),
        IllegalKind::IllegalModuleAccess => format!(
            "`{name}` is not available: AgentScript has no modules; call a tool with `await callTool(name, input)` instead"
        ),
        IllegalKind::IllegalTimer => format!(
            "`{name}` is not available: AgentScript has no timers; use `await callTool(...)` directly, without waiting"
        ),
        IllegalKind::IllegalGlobalAccess if instead(name).is_some() => {
            format!("`{name}` is not available: {}", instead(name).unwrap_or_default())
        }
        IllegalKind::IllegalGlobalAccess => format!(
            "`{name}` is not available: a script sees only its own variables, `codecallContext`, `callTool` and `getTool`"
        ),
        _ => format!(
            "`{name}` is not available: code cannot be made or reached at run time; write the code in the script itself"
        ),
    };
    Some((kind, message))
}

/// Returns a replacement for a global that other runtimes have and this one leaves out.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "Intl" => {
            "write numbers and dates with `toLocaleString` and `toLocaleDateString`, which take the same options, and compare texts with `localeCompare`; the language is English, the time zone UTC"
        }
        "URL" | "URLSearchParams" => {
            "take addresses apart with a regular expression or `split`, and build them with `encodeURIComponent`"
        }
        "btoa" | "atob" => "AgentScript has no base64; pass the text as it is, or call a tool that encodes",
        "TextEncoder" | "TextDecoder" => {
            "texts are not bytes here; use `charCodeAt`, `codePointAt` and `String.fromCodePoint`"
        }
        "AbortController" | "AbortSignal" => "a tool call ends with the run; there is nothing to abort",
        "Headers" | "Request" | "Response" | "FormData" | "Blob" | "File" | "fetch" | "XMLHttpRequest"
        | "WebSocket" => "scripts have no network; call a tool with `await callTool(name, input)`",
        "process" | "Deno" | "Bun" => {
            "there is no environment and no arguments; what the caller gave is in `codecallContext`, and tools are called with `await callTool(name, input)`"
        }
        _ => return None,
    })
}

/// Returns what to write in place of a name that scripts often expect, for the engine's message that it is not declared.
pub(crate) fn instead_of_undeclared(message: &str) -> Option<&'static str> {
    let name = message.strip_suffix(" is not defined")?.trim_matches(['\'', '`', '"']);
    Some(match name {
        "tools" | "tool" | "codecall" | "mcp" | "client" | "api" | "server" | "servers" | "invoke"
        | "execute" | "callMcpTool" | "call_tool" | "use_mcp_tool" | "calltool" | "CallTool" => {
            "tools are called with `await callTool('app:tool', input)`"
        }
        "context" | "ctx" | "input" | "inputs" | "args" | "params" | "codeCallContext"
        | "codecall_context" => "the caller's `context` is in `codecallContext`",
        "search" | "describe" | "searchTools" | "listTools" | "list_tools" => {
            "scripts cannot search; find tools with codecall:search and codecall:describe before, and `getTool(name)` returns the schemas of one"
        }
        "read_resource" | "resources" | "resource" => "resources are read with `await readResource(uri)`",
        "prompts" | "prompt" => "prompts are read with `await getPrompt(name, args)`",
        "parallel" | "safe_parallel" | "safeParallel" => {
            "functions run in parallel with `await __safe_parallel(functions)` or `await Promise.all(list)`"
        }
        "log" | "print" => "values are logged with `console.log(value)`",
        _ => return None,
    })
}

fn free_name_kind(name: &str) -> Option<IllegalKind> {
    Some(match name {
        "eval"
        | "Function"
        | "AsyncFunction"
        | "GeneratorFunction"
        | "AsyncGeneratorFunction"
        | "WebAssembly"
        | "Proxy"
        | "Reflect"
        | "SharedArrayBuffer"
        | "Atomics"
        | "FinalizationRegistry"
        | "WeakRef"
        | "ShadowRealm"
        | "Compartment"
        | "Worker"
        | "SharedWorker"
        | "execScript" => IllegalKind::IllegalBuiltinAccess,
        "require"
        | "module"
        | "exports"
        | "importScripts"
        | "__dirname"
        | "__filename"
        | "__non_webpack_require__" => IllegalKind::IllegalModuleAccess,
        "process" | "global" | "globalThis" | "window" | "self" | "Deno" | "Bun" | "document" | "fetch"
        | "XMLHttpRequest" | "WebSocket" | "EventSource" | "Buffer" | "localStorage" | "sessionStorage"
        | "indexedDB" | "navigator" | "GLOBAL" | "root" | "frames" | "performance" | "crypto" | "Intl"
        | "URL" | "URLSearchParams" | "btoa" | "atob" | "TextEncoder" | "TextDecoder" | "AbortController"
        | "AbortSignal" | "Headers" | "Request" | "Response" | "FormData" | "Blob" | "File"
        | "BroadcastChannel" | "MessageChannel" | "MessagePort" | "vm" => IllegalKind::IllegalGlobalAccess,
        "setTimeout"
        | "setInterval"
        | "setImmediate"
        | "queueMicrotask"
        | "requestAnimationFrame"
        | "requestIdleCallback"
        | "clearTimeout"
        | "clearInterval"
        | "clearImmediate"
        | "cancelAnimationFrame"
        | "cancelIdleCallback" => IllegalKind::IllegalTimer,
        _ => return None,
    })
}

/// Property names that lead to a prototype or to what builds functions.
pub(super) fn property(name: &str) -> Option<(IllegalKind, String)> {
    let (kind, advice) = match name {
        "prototype" => (
            IllegalKind::IllegalPrototypeAccess,
            "prototypes are out of reach; call methods on values, copy objects with `{ ...object }`, and ask `Object.hasOwn(object, key)`",
        ),
        "__proto__"
        | "getPrototypeOf"
        | "setPrototypeOf"
        | "__defineGetter__"
        | "__defineSetter__"
        | "__lookupGetter__"
        | "__lookupSetter__"
        | "defineProperty"
        | "defineProperties"
        | "getOwnPropertyDescriptor"
        | "getOwnPropertyDescriptors" => (
            IllegalKind::IllegalPrototypeAccess,
            "prototypes are out of reach; call methods on values, and copy objects with `{ ...object }`",
        ),
        "constructor" => (
            IllegalKind::IllegalPrototypeAccess,
            "constructors are out of reach; use `typeof`, `Array.isArray` or `instanceof` to tell values apart",
        ),
        "captureStackTrace" | "prepareStackTrace" => {
            (IllegalKind::IllegalBuiltinAccess, "stack traces are out of reach; use the error's `message`")
        }
        _ => return None,
    };
    Some((kind, format!("`{name}` is not available: {advice}")))
}

/// Properties of `Symbol` that change what the language itself does; the rest are `iterator`, `asyncIterator` and `toStringTag`.
pub(super) fn symbol_hook(name: &str) -> bool {
    matches!(
        name,
        "species"
            | "unscopables"
            | "toPrimitive"
            | "hasInstance"
            | "isConcatSpreadable"
            | "match"
            | "matchAll"
            | "replace"
            | "search"
            | "split"
            | "for"
            | "keyFor"
    )
}

/// Tests for a free name that exists in a run.
pub(super) fn exists(name: &str) -> bool {
    is_api(name)
        || is_frozen(name)
        || matches!(name, "arguments" | "WeakMap" | "WeakSet" | "ArrayBuffer" | "DataView")
        || (name.ends_with("Array") && name.len() > 5)
}

/// Tests for a name of the API: a script may not declare it.
pub(super) fn is_api(name: &str) -> bool {
    matches!(name, "callTool" | "getTool" | "codecallContext" | "__safe_parallel")
}

/// Tests for the name of a function or a value that AgentScript gives to scripts and other runtimes pass to them.
pub(super) fn is_given(name: &str) -> bool {
    is_api(name) || matches!(name, "console" | "progress" | "readResource" | "listResources" | "getPrompt")
}

/// Tests for a reserved name that scripts may not use.
pub(super) fn is_reserved(name: &str) -> bool {
    (name.starts_with("__safe_") || name.starts_with("__ag_")) && name != "__safe_parallel"
}

/// Names of the realm that cannot be assigned to. `codecallContext` is not here: assigning to it throws at run time.
pub(super) fn is_frozen(name: &str) -> bool {
    matches!(
        name,
        "callTool"
            | "getTool"
            | "__safe_parallel"
            | "console"
            | "Object"
            | "Array"
            | "String"
            | "Number"
            | "Boolean"
            | "Symbol"
            | "BigInt"
            | "Math"
            | "JSON"
            | "Date"
            | "RegExp"
            | "Map"
            | "Set"
            | "WeakMap"
            | "WeakSet"
            | "Promise"
            | "Error"
            | "TypeError"
            | "RangeError"
            | "SyntaxError"
            | "ReferenceError"
            | "URIError"
            | "EvalError"
            | "AggregateError"
            | "Infinity"
            | "NaN"
            | "undefined"
            | "parseInt"
            | "parseFloat"
            | "isNaN"
            | "isFinite"
            | "encodeURIComponent"
            | "decodeURIComponent"
            | "encodeURI"
            | "decodeURI"
            | "structuredClone"
            | "progress"
            | "readResource"
            | "listResources"
            | "getPrompt"
    )
}
