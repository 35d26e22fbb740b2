//! Reads the scripts under `tests/cases`: what each is expected to do stands in the comments above it.
//!
//! A file holds several cases, each begun by a line `//// name`. Comments at its start say more:
//! `// expect: illegal KIND` (refused before it runs), `syntax LINE:COLUMN`, `ok JSON`, `runtime NAME` (throws), `stopped KIND`
//! (an illegal access that only shows at run time), `limit` (some limit ends it), `memory` (the memory limit does), `safe` (any outcome, within its limits);
//! `// preset: NAME` (`secure` when absent).

use std::{fs, path::PathBuf};

use gatewright_agentscript::Preset;

/// Expected outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expect {
    Illegal(String),
    Syntax(u32, u32),
    Ok(serde_json::Value),
    Runtime(String),
    Stopped(String),
    Limit,
    Memory,
    Safe,
}

/// One script of the corpus.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) family: String,
    pub(crate) name: String,
    pub(crate) preset: Preset,
    pub(crate) expect: Expect,
    /// The text below the comments.
    pub(crate) script: String,
}

/// Every case of every family.
pub(crate) fn all() -> Vec<Case> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases = Vec::new();
    for family in fs::read_dir(&root).expect("the corpus is there") {
        let family = family.expect("readable").path();
        for file in fs::read_dir(&family).expect("a folder per family") {
            let file = file.expect("readable").path();
            let text = fs::read_to_string(&file).expect("UTF-8");
            let family = family.file_name().expect("named").to_string_lossy();
            let stem = file.file_stem().expect("named").to_string_lossy();
            for piece in text.split("//// ").skip(1) {
                let (name, body) = piece.split_once('\n').expect("a script below the name");
                cases.push(case(&family, &format!("{stem}/{}", name.trim()), body));
            }
        }
    }
    cases.sort_by(|a, b| (&a.family, &a.name).cmp(&(&b.family, &b.name)));
    cases
}

fn case(family: &str, name: &str, body: &str) -> Case {
    let (mut preset, mut expect) = (Preset::Secure, None);
    let mut rest = body;
    while let Some((line, below)) = rest.split_once('\n') {
        if let Some(text) = line.strip_prefix("// expect: ") {
            expect = Some(parse(text.trim(), name));
        } else if let Some(text) = line.strip_prefix("// preset: ") {
            preset = serde_json::from_value(text.trim().into()).expect("a preset");
        } else {
            break;
        }
        rest = below;
    }
    let expect = expect.unwrap_or_else(|| panic!("{family}/{name} does not say what to expect"));
    Case {
        family: family.to_owned(),
        name: name.to_owned(),
        preset,
        expect,
        script: rest.trim_end_matches('\n').to_owned(),
    }
}

fn parse(text: &str, name: &str) -> Expect {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "illegal" => Expect::Illegal(rest.to_owned()),
        "stopped" => Expect::Stopped(rest.to_owned()),
        "runtime" => Expect::Runtime(rest.to_owned()),
        "ok" => Expect::Ok(serde_json::from_str(rest).unwrap_or_else(|_| panic!("{name}: not JSON: {rest}"))),
        "limit" => Expect::Limit,
        "memory" => Expect::Memory,
        "safe" => Expect::Safe,
        "syntax" => {
            let (line, column) = rest.split_once(':').expect("LINE:COLUMN");
            Expect::Syntax(line.parse().expect("a number"), column.parse().expect("a number"))
        }
        other => panic!("{name}: unknown expectation {other}"),
    }
}
