//! Text nobody wrote: the validator answers, whatever it is given.

use std::thread;

use gatewright_agentscript::{Limits, Preset, Rejection, ScriptPolicy, ScriptSource, VALIDATE_STACK};
use proptest::prelude::*;

use crate::cases;

/// The body of the fuzz target: any bytes, no panic; what is allowed is allowed again after a round, places are inside the text.
pub(crate) fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines = u32::try_from(text.split(['\n', '\r']).count()).expect("short");
    for preset in [Preset::LockedDown, Preset::Secure] {
        let policy = ScriptPolicy::new(preset).reserved_tool_prefixes(["codecall:"]);
        match ScriptSource::new(&text).validate(&policy, &Limits::preset(preset)) {
            Ok(script) => assert_eq!(
                script.text().split(['\n', '\r']).count(),
                text.split(['\n', '\r']).count(),
                "lines moved: {text:?}"
            ),
            Err(
                Rejection::Illegal { message, location, .. } | Rejection::SyntaxError { message, location },
            ) => {
                assert!(!message.is_empty());
                assert!(
                    location.column >= 1 && (1..=lines + 1).contains(&location.line),
                    "{location:?} of {text:?}"
                );
                assert!(!message.contains("could not read the script"), "the parser panicked on {text:?}");
            }
            Err(_) => {}
        }
    }
}

fn on_asked_stack(work: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .stack_size(VALIDATE_STACK)
        .spawn(work)
        .expect("a thread")
        .join()
        .expect("no panic");
}

/// A change of a script: cut, doubled, joined with another, or with a byte put in.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let scripts: Vec<String> = cases::all().into_iter().map(|case| case.script).collect();
    let pick = prop::sample::select(scripts);
    let piece = prop::sample::select(vec![
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "`",
        "${",
        "'",
        "\"",
        "/",
        "/*",
        "*/",
        "//",
        "\n",
        "<",
        ">",
        "=>",
        "?.",
        "...",
        "#",
        "@",
        "\\",
        "\\u{",
        " as ",
        ":",
        "!",
        "async ",
        "await ",
        "class ",
        "function* ",
        "static ",
        "get ",
        "\u{e9}",
        "\u{1f600}",
        "\r\n",
        "<!--",
        "0x",
        "1n",
    ]);
    (pick.clone(), pick, any::<prop::sample::Index>(), any::<prop::sample::Index>(), piece, 0..5_u8).prop_map(
        |(a, b, from, to, piece, how)| {
            let cut = |text: &str, at: &prop::sample::Index| {
                let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                ends[at.index(ends.len())]
            };
            let (i, j) = (cut(&a, &from), cut(&b, &to));
            match how {
                0 => a[..i].to_owned(),
                1 => format!("{}{}", &a[..i], &b[j..]),
                2 => format!("{}{piece}{}", &a[..i], &a[i..]),
                3 => format!("{a}\n{b}"),
                _ => format!("{}{}{}", &a[..i], piece.repeat(40), &a[i..]),
            }
            .into_bytes()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        on_asked_stack(move || check(&bytes));
    }

    #[test]
    fn any_change_of_a_script_gets_an_answer(bytes in mutated()) {
        on_asked_stack(move || check(&bytes));
    }
}

#[test]
fn every_script_of_the_corpus_gets_an_answer_at_every_cut() {
    on_asked_stack(|| {
        for case in cases::all() {
            for (at, _) in case.script.char_indices().step_by(7) {
                check(&case.script.as_bytes()[..at]);
            }
        }
    });
}
