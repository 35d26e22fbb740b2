//! The table of contract rows and their tests names tests that exist.

use std::{fs, path::Path, time::Duration};

use gatewright_agentscript::{Limits, Preset};

#[test]
fn every_test_in_the_table_of_contract_rows_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table =
        fs::read_to_string(crates.join("../docs/security/contract-rows.md")).expect("the table is there");
    let mut found = 0;
    for name in table.split('`').filter(|name| name.contains("::")) {
        let (file, test) = name.split_once("::").expect("FILE::TEST");
        let path = match file.strip_prefix("cli/") {
            Some(file) => crates.join(format!("cli/tests/it/{file}.rs")),
            None => crates.join(format!("agentscript/tests/it/{file}.rs")),
        };
        let text = fs::read_to_string(&path).unwrap_or_else(|_| panic!("{name}: no such file"));
        assert!(text.contains(&format!("fn {test}(")), "{name} does not exist");
        found += 1;
    }
    assert!(found > 40, "only {found} tests are named");
}

#[test]
fn the_presets_have_the_time_limits_of_the_contract() {
    let timeout = |preset| Limits::preset(preset).timeout;
    assert_eq!(timeout(Preset::LockedDown), Duration::from_secs(2));
    assert_eq!(timeout(Preset::Secure), Duration::from_millis(3_500));
    assert_eq!(timeout(Preset::Balanced), Duration::from_secs(5));
    assert!(timeout(Preset::Experimental) > timeout(Preset::Balanced));
    let iterations = |preset| Limits::preset(preset).max_iterations;
    assert!(iterations(Preset::Experimental) > iterations(Preset::Balanced));
}
