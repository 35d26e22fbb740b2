//! The Rust server under `examples/`: whole it passes, and each broken variant fails the test that should find it. The servers
//! in other languages are tried with `gatewright test`, in the binary's own tests.

use std::{path::Path, process::Command};

#[test]
#[ignore = "builds a project of its own, which takes minutes"]
fn a_rust_server_whole_and_broken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let project = root.join("examples/testing-rust");
    // The versions and the target directory of this run (`TARGET/PROFILE/deps/it-…`, wherever CARGO_TARGET_DIR put it): what
    // is built is used again.
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).unwrap();
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let run = |broken: &str| {
        let output = Command::new(env!("CARGO"))
            .args(["test", "--color", "never", "--manifest-path"])
            .arg(project.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(target)
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
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
