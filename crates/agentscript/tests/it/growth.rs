//! Work on text that a script or a tool chose grows no faster than the text.

use gatewright_agentscript::{Sanitizer, excerpt};

#[path = "../../../../tests/growth/mod.rs"]
mod work;

use work::{SHAPES, assert_linear, assert_linear_up_to, repeated};

#[test]
fn cleaning_a_message_grows_no_faster_than_the_message() {
    for piece in SHAPES {
        let clean = |text: &str| drop(std::hint::black_box(Sanitizer::default().text(text)));
        assert_linear(piece, |len| repeated(piece, len), clean);
        assert_linear_up_to(excerpt::MESSAGE_BYTES, piece, |len| repeated(piece, len), clean);
        // A path, or a trace, whose end the repetition hides.
        for before in ["cannot open '/home/ann/", "Error: no\n    at f (/srv/", "C:\\Users\\"] {
            let text = |len: usize| format!("{before}{}", repeated(piece, len - before.len()));
            assert_linear_up_to(excerpt::MESSAGE_BYTES, &format!("{before:?} {piece:?}"), text, clean);
        }
    }
}

#[test]
fn no_message_is_longer_than_its_cap_when_it_is_clean() {
    for piece in SHAPES.into_iter().chain([" ~/a", "\\\\a\\b "]) {
        let clean = Sanitizer::default().text(&repeated(piece, 1 << 20)).into_owned();
        assert!(clean.len() <= 2 * excerpt::MESSAGE_BYTES, "{piece:?}: {} bytes", clean.len());
    }
}
