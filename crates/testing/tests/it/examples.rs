//! The Rust server in `examples/`: it passes its tests, and each broken variant fails the test that should notice it. The binary's
//! tests run the examples in other languages with `gatewright test`.

use std::{path::Path, process::Command};

#[test]
#[ignore = "compiles the whole workspace, whose features the example shares"]
fn a_rust_server_intact_and_broken() {
    let run = |broken: &str| {
        let output = Command::new(env!("CARGO"))
            .args(["test", "--workspace", "--test", "orders", "--color", "never"])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env("BREAK", broken)
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned());
        (output.status.success(), text.concat())
    };
    let (passed, text) = run("");
    assert!(passed && text.contains("3 passed"), "{text}");
    for (broken, test, why) in [
        ("sum", "adds_up_an_order", "total_cents: expected 599, is 600"),
        ("empty", "refuses_an_empty_order", "expected: an error"),
    ] {
        let (passed, text) = run(broken);
        assert!(!passed && text.contains(&format!("test {test} ... FAILED")), "{broken}: {text}");
        for part in [why, "requests of client 1:", "tools/call"] {
            assert!(text.contains(part), "{broken}: {part}: {text}");
        }
    }
}
