//! An audit file under hands and crashes.

use std::fs;

use gatewright_operator::audit::{AuditError, AuditFile, Broken, Verified, verify};
use serde_json::json;

fn written(lines: usize) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let file = AuditFile::open(&path).unwrap();
    for n in 0..lines {
        file.append(&json!({"event": "test", "n": n}));
    }
    (folder, path)
}

fn check(path: &std::path::Path) -> Result<Verified, Broken> {
    verify(fs::read(path).unwrap().as_slice())
}

fn lines(path: &std::path::Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

fn rewrite(path: &std::path::Path, lines: &[String]) {
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_file_goes_on_after_a_restart() {
    let (_folder, path) = written(3);
    AuditFile::open(&path).unwrap().append(&json!({"event": "again"}));
    let verified = check(&path).unwrap();
    assert_eq!((verified.lines, verified.torn), (4, 0));
}

#[test]
fn a_line_too_long_to_find_its_beginning_again_is_lost_and_the_file_goes_on() {
    let (_folder, path) = written(1);
    let file = AuditFile::open(&path).unwrap();
    for bytes in [1 << 20, 17 << 20] {
        file.append(&json!({"event": "test", "text": "x".repeat(bytes)}));
    }
    drop(file);
    AuditFile::open(&path).unwrap().append(&json!({"event": "again"}));
    assert_eq!(check(&path).unwrap().lines, 3);

    let file = AuditFile::open(&path).unwrap();
    file.append(&json!({"event": "test", "text": "x".repeat(17 << 20)}));
    file.append(&json!({"event": "next"}));
    let lines = lines(&path);
    assert!(lines[3].contains(r#""event":"audit.lost","count":1"#) && lines[4].contains("next"));
}

#[test]
fn a_line_that_is_changed_taken_out_put_in_or_moved_is_named() {
    for (what, hand, broken) in [
        ("changed", (|all| all[1] = all[1].replace("\"n\":1", "\"n\":7")) as fn(&mut Vec<String>), 2),
        ("taken out", |all| drop(all.remove(1)), 2),
        ("put in", |all| all.insert(2, all[1].clone()), 3),
        ("moved", |all| all.swap(1, 2), 2),
    ] {
        let (_folder, path) = written(4);
        let mut all = lines(&path);
        hand(&mut all);
        rewrite(&path, &all);
        assert!(matches!(check(&path), Err(Broken::Chain(at)) if at == broken), "{what}: {:?}", check(&path));
    }
    let (_folder, path) = written(2);
    rewrite(&path, &["{\"event\":\"mine\"}".to_owned()]);
    assert!(matches!(check(&path), Err(Broken::Foreign(1))));
}

#[test]
fn nothing_can_be_put_behind_the_digest_of_a_line() {
    // Readers of JSON that take the last of two members would believe what is put there.
    for tail in [",\"n\":7}", ",\"event\":\"other\"}", " }", "} ", "}\r", ",\"chain\":\"\"}"] {
        for at in [0, 1, 3] {
            let (_folder, path) = written(4);
            let mut all = lines(&path);
            all[at].pop();
            all[at].push_str(tail);
            rewrite(&path, &all);
            assert!(
                matches!(check(&path), Err(Broken::Foreign(line)) if line == at + 1),
                "{tail:?} at {at}: {:?}",
                check(&path)
            );
        }
    }
}

#[test]
fn each_line_is_missed_wherever_it_stood_and_an_empty_one_is_noticed() {
    for at in 0..3 {
        let (_folder, path) = written(4);
        let mut all = lines(&path);
        all.remove(at);
        rewrite(&path, &all);
        assert!(matches!(check(&path), Err(Broken::Chain(line)) if line == at + 1), "{:?}", check(&path));
        let (_folder, path) = written(4);
        let mut all = lines(&path);
        all.insert(at, String::new());
        rewrite(&path, &all);
        assert!(matches!(check(&path), Err(Broken::Foreign(line)) if line == at + 1), "{:?}", check(&path));
    }
}

#[test]
fn lines_cut_off_at_the_end_change_the_last_digest() {
    let (_folder, path) = written(4);
    let whole = check(&path).unwrap();
    rewrite(&path, &lines(&path)[..3]);
    assert_ne!(check(&path).unwrap().chain, whole.chain);
}

#[test]
fn a_line_cut_in_two_by_a_crash_stays_and_is_told_by_the_next_process() {
    for cut in [1, 20, 60] {
        let (_folder, path) = written(3);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
        assert!(matches!(check(&path), Err(Broken::CutOff(3))));
        AuditFile::open(&path).unwrap().append(&json!({"event": "after"}));
        let verified = check(&path).unwrap();
        // Without its line break alone a line is whole.
        let expected = if cut == 1 { (4, 0) } else { (5, 1) };
        assert_eq!((verified.lines, verified.torn), expected, "cut {cut}");
        // The torn line is under the chain too.
        let mut all = lines(&path);
        all[2].pop();
        rewrite(&path, &all);
        assert!(check(&path).is_err());
    }
}

#[test]
fn two_writers_and_other_files_are_refused() {
    let (_folder, path) = written(1);
    let _held = AuditFile::open(&path).unwrap();
    assert!(matches!(AuditFile::open(&path), Err(AuditError::Locked(_))));
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("notes.txt");
    fs::write(&other, "dear diary\n").unwrap();
    assert!(matches!(AuditFile::open(&other), Err(AuditError::Foreign(_))));
}

#[test]
fn a_note_of_a_cut_line_may_be_cut_itself() {
    for cut in [1, 30, 90, 150] {
        let (_folder, path) = written(3);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        drop(AuditFile::open(&path).unwrap());
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
        AuditFile::open(&path).unwrap().append(&json!({"event": "after"}));
        let verified = check(&path).unwrap();
        assert_eq!(verified.torn, 1, "cut {cut}");
    }
}

#[test]
fn a_file_whose_only_line_was_cut_goes_on_and_foreign_lines_at_the_end_do_not() {
    let (_folder, path) = written(1);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    AuditFile::open(&path).unwrap().append(&json!({"event": "after"}));
    assert_eq!(check(&path).unwrap().torn, 1);
    let (_folder, path) = written(2);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}dear diary\n")).unwrap();
    assert!(matches!(AuditFile::open(&path), Err(AuditError::Foreign(_))));
    fs::write(&path, "dear diary").unwrap();
    assert!(matches!(AuditFile::open(&path), Err(AuditError::Foreign(_))));
}

#[test]
fn a_file_that_is_moved_away_is_followed_by_a_new_one_that_names_its_end() {
    let (folder, path) = written(0);
    let moved = folder.path().join("audit.jsonl.1");
    let file = AuditFile::open(&path).unwrap();
    file.append(&json!({"event": "one"}));
    assert!(!file.reopen().unwrap(), "nothing was moved");
    fs::rename(&path, &moved).unwrap();
    file.append(&json!({"event": "two"}));
    assert!(file.reopen().unwrap());
    file.append(&json!({"event": "three"}));
    let (old, new) = (check(&moved).unwrap(), check(&path).unwrap());
    assert_eq!((old.lines, old.previous), (2, None));
    assert_eq!((new.lines, new.previous.as_deref()), (2, Some(&*old.chain)));
    // The old one is free, the new one is held.
    drop(AuditFile::open(&moved).unwrap());
    assert!(matches!(AuditFile::open(&path), Err(AuditError::Locked(_))));
}

#[test]
fn when_a_new_file_cannot_be_had_the_old_one_goes_on() {
    let (folder, path) = written(0);
    let moved = folder.path().join("audit.jsonl.1");
    let file = AuditFile::open(&path).unwrap();
    fs::rename(&path, &moved).unwrap();
    fs::write(&path, "dear diary\n").unwrap();
    assert!(file.reopen().is_err());
    file.append(&json!({"event": "one"}));
    assert_eq!(check(&moved).unwrap().lines, 1);
}

#[test]
fn l08_a_changed_or_removed_line_shows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    for event in ["login.ok", "consent.given", "token.issued"] {
        // Opened anew each time: the chain goes on.
        AuditFile::open(&path).unwrap().append(&json!({"event": event, "actor": "user:alice"}));
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(verify(text.as_bytes()).unwrap().lines, 3);
    let changed = text.replace("consent.given", "consent.denied");
    assert!(matches!(verify(changed.as_bytes()), Err(Broken::Chain(2))));
    let removed: String = text.split_inclusive('\n').skip(1).collect();
    assert!(matches!(verify(removed.as_bytes()), Err(Broken::Chain(1))));
}
