//! Random and mutated text: the validator always answers.

use gatewright_agentscript::fuzz;
use proptest::{prelude::*, strategy::ValueTree as _};

use crate::{cases, support::config, validate::on_asked_stack};

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

#[path = "../../../../fuzz/src/corpus.rs"]
mod corpus;

#[test]
fn every_script_of_the_fuzz_corpus_is_read() {
    on_asked_stack(|| corpus::of("reader").iter().for_each(|(_, bytes)| fuzz::validator(bytes)));
}

#[test]
fn all_messages_of_the_fuzz_corpus_are_decoded_or_refused() {
    corpus::of("worker").iter().for_each(|(_, bytes)| fuzz::worker(bytes));
}

#[tokio::test]
async fn every_script_of_the_fuzz_corpus_ends_in_time_and_its_worker_survives() {
    let pool = gatewright_agentscript::WorkerPool::new(config().workers(1)).expect("it starts");
    for (_, bytes) in corpus::of("run") {
        fuzz::script(&bytes, &pool).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        on_asked_stack(move || fuzz::validator(&bytes));
    }

    #[test]
    fn any_change_of_a_script_gets_an_answer(bytes in mutated()) {
        on_asked_stack(move || fuzz::validator(&bytes));
    }

    #[test]
    fn any_bytes_of_a_worker_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzz::worker(&bytes);
    }

    #[test]
    fn any_change_of_messages_is_decoded_or_refused(
        frames in prop::collection::vec((0_u8..24, any::<u32>(), ".{0,20}", ".{0,40}"), 1..5),
        at in any::<prop::sample::Index>(), with in any::<u8>()
    ) {
        let mut bytes = Vec::new();
        for (kind, run, head, body) in frames {
            bytes.extend_from_slice(&u32::try_from(13 + head.len() + body.len()).expect("short").to_le_bytes());
            bytes.push(kind);
            bytes.extend_from_slice(&run.to_le_bytes());
            bytes.extend_from_slice(&0_u32.to_le_bytes());
            bytes.extend_from_slice(&u32::try_from(head.len()).expect("short").to_le_bytes());
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(body.as_bytes());
        }
        fuzz::worker(&bytes);
        let at = at.index(bytes.len());
        bytes[at] = with;
        fuzz::worker(&bytes);
    }
}

#[tokio::test]
async fn any_change_of_a_script_ends_in_time_and_its_worker_survives() {
    let pool = gatewright_agentscript::WorkerPool::new(
        config().workers(1).watchdog_extra(std::time::Duration::from_millis(100)),
    )
    .expect("it starts");
    let mut runner = proptest::test_runner::TestRunner::default();
    let strategy = mutated();
    for _ in 0..300 {
        let bytes = strategy.new_tree(&mut runner).expect("a script").current();
        fuzz::script(&bytes, &pool).await;
    }
}

#[test]
fn every_script_of_the_corpus_gets_an_answer_at_every_cut() {
    on_asked_stack(|| {
        for case in cases::all() {
            for (at, _) in case.script.char_indices().step_by(7) {
                fuzz::validator(&case.script.as_bytes()[..at]);
            }
        }
    });
}
