//! The table in `docs/auth/checklist.md` names tests that exist.

use std::{collections::BTreeSet, fs, path::Path};

fn sources(folder: &Path, out: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            out.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_row_of_the_checklist_names_a_test_that_exists_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    sources(&root.join("src"), &mut code);
    sources(&root.join("tests"), &mut code);
    // Networks and trusted hops are the core's, the audit file is the operator's.
    sources(&root.join("../core/src"), &mut code);
    sources(&root.join("../operator/tests"), &mut code);
    let text = fs::read_to_string(root.join("../../docs/auth/checklist.md")).unwrap();
    let mut ids = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| ") && line.split(" | ").count() >= 3) {
        let mut cells = line.trim_matches('|').splitn(3, " | ");
        let id = cells.next().unwrap().trim();
        if id.len() != 3 || !id.as_bytes()[1].is_ascii_digit() {
            continue;
        }
        ids.insert(id.to_owned());
        let cell = cells.nth(1).unwrap_or_default().trim();
        assert!(!cell.is_empty(), "{id}");
        for name in cell
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| name.to_ascii_uppercase().starts_with(&id[..1]) && name.contains('_'))
        {
            assert!(code.contains(&format!("fn {name}(")), "{id} names {name}");
        }
    }
    assert_eq!(ids.len(), 235, "every row is in the table");
}
