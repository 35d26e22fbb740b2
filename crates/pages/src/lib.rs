//! The look of every page: the style sheet, the mark, the frame of a page, and elements that several pages share.
//!
//! Pages load nothing from elsewhere: the style sheet and scripts are inline, and the page's policy allows them by their hashes. The
//! console adds a style sheet of its own to [`STYLE`] and serves both as a file.
#![forbid(unsafe_code)]

use std::sync::OnceLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

/// The name that pages show beside the mark.
pub const NAME: &str = "Gatewright";

/// The style sheet of every page.
pub static STYLE: Inline = Inline::new(include_str!("style.css"));

/// The mark as a `data:` address, for `link rel="icon"`.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Crect width='24' height='24' \
rx='6' fill='%231c6b48'/%3E%3Cpath d='M6.5 18.5v-6a5.5 5.5 0 0 1 11 0v6M12 7v11.5M6.5 13.5h11' fill='none' stroke='%23fff' \
stroke-width='1.9' stroke-linecap='round'/%3E%3C/svg%3E";

/// Text of a `style` or `script` element. A policy allows an inline one by its hash.
pub struct Inline {
    text: &'static str,
    source: OnceLock<String>,
}

impl Inline {
    /// An element with this text.
    pub const fn new(text: &'static str) -> Self {
        Self { text, source: OnceLock::new() }
    }

    /// The text.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// A name of this text, for the address of a file that browsers keep: another text has another one.
    pub fn version(&self) -> String {
        Sha256::digest(self.text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The source that allows it in a policy: `'sha256-…'` (CSP Level 3 §2.3.1).
    pub fn source(&self) -> &str {
        self.source.get_or_init(|| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(self.text))))
    }
}

impl std::fmt::Debug for Inline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Inline").field(&self.source()).finish()
    }
}

/// Width of a page's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Width {
    /// One card with one task: a login, a question, an error.
    #[default]
    Slim,
    /// Several sections.
    Wide,
}

/// A page with the mark above and links below.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Title of the window.
    pub title: &'a str,
    /// Width of the column.
    pub width: Width,
    /// Content of `main`.
    pub body: Markup,
    /// Content below it.
    pub footer: Option<Markup>,
    /// The only script.
    pub script: Option<&'static Inline>,
}

impl Frame<'_> {
    /// The document.
    pub fn html(&self) -> String {
        let Self { title, width, body, footer, script } = self;
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    (metadata())
                    title { (title) }
                    style { (PreEscaped(STYLE.text)) }
                }
                body.page.slim[*width == Width::Slim] {
                    header { div.brand { (mark()) (NAME) } }
                    main { (body) }
                    @if let Some(footer) = footer { footer { (footer) } }
                    @if let Some(script) = script { script { (PreEscaped(script.text)) } }
                }
            }
        };
        document.into_string()
    }

    /// The policy that allows its style and its script, and forms that lead to `form_action`.
    pub fn policy(&self, form_action: &str) -> String {
        let script = self.script.map(|script| format!("script-src {}; ", script.source()));
        format!(
            "default-src 'none'; {}style-src {}; img-src data:; form-action {form_action}; frame-ancestors 'none'; base-uri 'none'",
            script.unwrap_or_default(),
            STYLE.source(),
        )
    }
}

/// Elements that the head of every document has.
pub fn metadata() -> Markup {
    html! {
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        link rel="icon" href=(ICON);
    }
}

/// The mark: a gate in an arch.
pub fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" aria-hidden="true" {
            rect width="24" height="24" rx="6" {}
            path d="M6.5 18.5v-6a5.5 5.5 0 0 1 11 0v6M12 7v11.5M6.5 13.5h11" {}
        }
    }
}

/// A name or an address that breaks into lines between its parts rather than inside a word.
pub fn breakable(text: &str) -> Markup {
    let ends_part = |c: char| "/:._-?&=,".contains(c);
    html! {
        @for part in text.split_inclusive(ends_part) { (part) wbr; }
    }
}

/// A duration in words for people who wait, rounded up: `40 seconds`, `12 minutes`, `3 hours`.
pub fn wait(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..=90 => (seconds.max(1), "second"),
        91..=5_400 => (seconds.div_ceil(60), "minute"),
        _ => (seconds.div_ceil(3_600), "hour"),
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(script: Option<&'static Inline>) -> Frame<'static> {
        Frame { title: "<T>", width: Width::Slim, body: html! { h1 { "T" } }, footer: None, script }
    }

    #[test]
    fn a_policy_allows_the_style_and_the_script_of_its_page_alone() {
        static SCRIPT: Inline = Inline::new("");
        // SHA-256 of nothing.
        assert_eq!(SCRIPT.source(), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
        let with = frame(Some(&SCRIPT)).policy("'self'");
        assert!(
            with.starts_with(&format!(
                "default-src 'none'; script-src {}; style-src 'sha256-",
                SCRIPT.source()
            ))
        );
        let without = frame(None).policy("'none'");
        assert!(!without.contains("script-src") && without.contains("form-action 'none';"), "{without}");
        assert!(!without.contains("unsafe"));
    }

    #[test]
    fn a_page_is_one_document_that_names_no_other_address() {
        let page = frame(None).html();
        assert!(page.contains("<title>&lt;T&gt;</title>") && page.contains("class=\"page slim\""), "{page}");
        assert!(!page.contains("src=") && !page.contains("<script"), "{page}");
        for address in page.split("href=\"").skip(1) {
            assert!(address.starts_with("data:"), "{address}");
        }
        assert!(
            !STYLE.text().contains("url(")
                && !STYLE.text().contains("@import")
                && !STYLE.text().contains("</")
        );
    }

    #[test]
    fn names_break_between_their_parts() {
        assert_eq!(breakable("crm:users_list").into_string(), "crm:<wbr>users_<wbr>list<wbr>");
        assert_eq!(breakable("<b>").into_string(), "&lt;b&gt;<wbr>");
    }

    #[test]
    fn a_wait_is_rounded_up() {
        let words = [0, 1, 90, 91, 900, 5_400, 5_401].map(wait);
        assert_eq!(
            words,
            ["1 second", "1 second", "90 seconds", "2 minutes", "15 minutes", "90 minutes", "2 hours"]
        );
    }
}
