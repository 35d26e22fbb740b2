//! The files that read JSON without the check of `gatewright_json`, each with the reason why it may. Every other file of these crates
//! reads with `read_json`: an object with a reserved key, nested, would end the process (docs/security/found-and-fixed.md).

use std::{fs, path::Path};

use crate::unsafe_code::rust_files;

/// Crates that read texts of callers, scripts and other servers.
const CRATES: [&str; 11] = [
    "agentscript",
    "auth",
    "codecall",
    "console",
    "core",
    "executions",
    "openapi",
    "operator",
    "policy",
    "server",
    "upstream",
];

/// Files that may, below `crates`, by reason.
const ALLOWED: [(&str, &[&str]); 5] = [
    (
        "frames between the host and its sandbox: of fixed types, or after `gatewright_json::weight`",
        &[
            "agentscript/src/engine/answers.rs",
            "agentscript/src/pool/process.rs",
            "agentscript/src/pool/record.rs",
            "agentscript/src/worker/serve.rs",
        ],
    ),
    (
        "records and states that the gateway wrote, sealed or in its own store",
        &[
            "auth/src/accounts.rs",
            "auth/src/api_keys.rs",
            "auth/src/authorizations.rs",
            "auth/src/clients/registry.rs",
            "auth/src/upstream_oauth/browser.rs",
            "auth/src/upstream_oauth/client.rs",
            "auth/src/upstream_oauth/vault.rs",
            "auth/src/consents.rs",
            "auth/src/context.rs",
            "auth/src/keys/ring.rs",
            "auth/src/server/api_keys.rs",
            "auth/src/server/operator.rs",
            "auth/src/server/passkeys/enrol.rs",
            "auth/src/server/pushed.rs",
            "auth/src/server/token/authorization_code.rs",
            "auth/src/server/token/refresh_token.rs",
            "auth/src/sessions.rs",
            "auth/src/store/passkeys.rs",
            "auth/src/tokens/access.rs",
            "codecall/src/host.rs",
            "codecall/src/runs/answering.rs",
            "codecall/src/runs/ask.rs",
            "codecall/src/runs/questions.rs",
            "codecall/src/runs/record.rs",
            "codecall/src/runs/recorded.rs",
            "codecall/src/shapes/sharing.rs",
            "console/src/instances.rs",
            "core/src/access/seal.rs",
            "core/src/approvals/sealed.rs",
            "executions/src/shared/seal.rs",
            "server/src/relay/message.rs",
        ],
    ),
    ("files of the operator", &["operator/src/audit/chain.rs", "operator/src/audit/verify.rs"]),
    (
        "nothing is built, or a number alone",
        &[
            "codecall/src/lenient.rs",
            "codecall/src/shapes/restore.rs",
            "codecall/src/shapes/text_kind.rs",
            "server/src/batch.rs",
        ],
    ),
    (
        "after the check at the edge (`message_limit`, `measure`, `count_values`, `weight`)",
        &[
            "codecall/src/shapes/reading.rs",
            "openapi/src/call/answer.rs",
            "openapi/src/call/stream.rs",
            "openapi/src/document/parse.rs",
            "server/src/cluster.rs",
            "server/src/lines.rs",
            "server/src/message_limit.rs",
            "server/src/refusal.rs",
            "server/src/sse.rs",
            "server/src/unsent.rs",
            "upstream/src/http.rs",
            "upstream/src/message_limit.rs",
            "upstream/src/post.rs",
            "upstream/src/result_kinds.rs",
            "upstream/src/stdio/lines.rs",
            "upstream/src/task_tools.rs",
        ],
    ),
];

#[test]
fn json_is_read_without_the_check_only_in_the_files_of_the_list() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    CRATES.iter().for_each(|name| rust_files(&crates.join(name).join("src"), &mut files));
    let is_direct = |text: &str| {
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        ["from_str", "from_slice", "from_reader", "Deserializer"]
            .iter()
            .any(|reader| code.contains(&format!("serde_json::{reader}")))
    };
    let is_for_tests =
        |name: &str| name.contains("/tests") || name.ends_with("testing.rs") || name.ends_with("fuzz.rs");
    let mut found: Vec<String> = files
        .iter()
        .filter(|path| is_direct(&fs::read_to_string(path).unwrap()))
        .map(|path| path.strip_prefix(&crates).unwrap().to_string_lossy().replace('\\', "/"))
        .filter(|name| !is_for_tests(name))
        .collect();
    found.sort();
    let mut allowed: Vec<&str> = ALLOWED.iter().flat_map(|(_, files)| files.iter().copied()).collect();
    allowed.sort_unstable();
    assert_eq!(found, allowed, "read JSON of strangers with `gatewright_core::read_json`");
}
