//! Secrets of the configuration, taken out of what servers wrote.

use std::sync::{PoisonError, RwLock};

use gatewright_core::{CredentialPatterns, MASK, Secret};

use memchr::memmem;

/// Shorter values are not looked for: they would hide ordinary words.
const SHORTEST: usize = 6;
/// Shorter ones are left in answers of success, where they may be an ordinary word.
const SHORTEST_IN_DATA: usize = 10;
/// Tokens that are remembered at once.
const MOST_TOKENS: usize = 64;

/// Knows the credentials of an app.
#[derive(Default)]
pub(crate) struct Redactor {
    configured: Vec<Secret>,
    /// Those of `configured` and their parts, for errors.
    in_errors: Vec<Secret>,
    /// Tokens that the gateway got meanwhile, the latest last.
    tokens: RwLock<Vec<Secret>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({})", self.configured.len())
    }
}

impl Redactor {
    /// Knows `secrets`, and their `parts` in errors.
    pub(crate) fn new(secrets: &[Secret], parts: &[Secret]) -> Self {
        let spelled = |secrets: &mut dyn Iterator<Item = &Secret>| {
            let all = secrets.flat_map(Secret::spellings).filter(|text| text.len() >= SHORTEST);
            let mut all: Vec<Secret> = all.map(Secret::new).collect();
            all.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
            all
        };
        let configured = spelled(&mut secrets.iter());
        let in_errors = spelled(&mut secrets.iter().chain(parts));
        Self { configured, in_errors, tokens: RwLock::default() }
    }

    /// Remembers a token.
    pub(crate) fn learn(&self, token: &Secret) {
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        // One in use is remembered for longer than others.
        tokens.retain(|known| known != token);
        tokens.push(token.clone());
        if tokens.len() > MOST_TOKENS {
            tokens.remove(0);
        }
    }

    /// A JSON or other text of an answer without the credentials themselves: what an API returns of others is its data.
    pub(crate) fn data(&self, body: Vec<u8>) -> Vec<u8> {
        let body = self.without_credentials(body);
        // Writers of JSON may escape any character, and some escape `+`, `/`, `<` and others.
        let is_escaped =
            [r"\u".as_bytes(), br"\/"].iter().any(|escape| memmem::find(&body, escape).is_some());
        let plain = is_escaped.then(|| plainly_escaped(&body));
        match plain {
            Some(plain) if self.is_in(&plain) => self.without_credentials(plain),
            _ => body,
        }
    }

    fn without_credentials(&self, mut body: Vec<u8>) -> Vec<u8> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let all = self.configured.iter().chain(tokens.iter()).map(Secret::expose);
        for secret in all.filter(|secret| secret.len() >= SHORTEST_IN_DATA) {
            if memmem::find(&body, secret.as_bytes()).is_some() {
                body = without(&body, secret.as_bytes());
            }
        }
        body
    }

    /// Returns `true` if a credential is in `bytes` of any kind, as it is or as UTF-16.
    pub(crate) fn is_in(&self, bytes: &[u8]) -> bool {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = self.configured.iter().chain(tokens.iter()).map(Secret::expose);
        all.any(|secret| {
            let wide: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
            // Without the last byte, which is 0 as a rule, it is in both byte orders.
            let wide = &wide[..wide.len().saturating_sub(1)];
            secret.len() >= SHORTEST_IN_DATA
                && [secret.as_bytes(), wide]
                    .into_iter()
                    .any(|spelling| memmem::find(bytes, spelling).is_some())
        })
    }

    /// At most `most` bytes of `text`, without credentials and control characters.
    pub(crate) fn text(&self, text: &str, most: usize) -> String {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let all = || self.in_errors.iter().chain(tokens.iter()).map(Secret::expose);
        // Some bytes more, for a credential that goes over the end.
        let longest = all().map(str::len).max().unwrap_or_default();
        let start = &text[..text.floor_char_boundary(most.saturating_add(longest))];
        let mut known = start.to_owned();
        for secret in all().filter(|secret| secret.len() >= SHORTEST) {
            if known.contains(secret) {
                known = known.replace(secret, MASK);
            }
        }
        let is_whole = start.len() == text.len();
        let patterns = CredentialPatterns::usual();
        let masked = if is_whole { patterns.mask(&known) } else { patterns.mask_beginning(&known) };
        let end = masked.floor_char_boundary(most);
        let mut cleaned: String =
            masked[..end].chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
        if !is_whole || end < masked.len() {
            cleaned.push('…');
        }
        cleaned
    }
}

/// The same JSON, in which only quotes and backslashes are escaped, as they are in the credentials that are looked for.
fn plainly_escaped(json: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = match rest {
            [_, b'/', ..] => (Some('/'), 2),
            [_, b'u', hex @ ..] => {
                let code = hex.get(..4).and_then(|hex| str::from_utf8(hex).ok());
                let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok());
                (code.and_then(char::from_u32).filter(|character| !character.is_control()), 6)
            }
            _ => (None, 2),
        };
        match character {
            Some(character @ ('"' | '\\')) => plain.extend([b'\\', character as u8]),
            Some(character) => plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => plain.extend_from_slice(&rest[..rest.len().min(2)]),
        }
        rest = &rest[rest.len().min(if character.is_some() { length } else { 2 })..];
    }
    plain.extend_from_slice(rest);
    plain
}

fn without(body: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(body.len());
    let mut end = 0;
    for at in memmem::find_iter(body, secret) {
        clean.extend_from_slice(&body[end..at]);
        clean.extend_from_slice(MASK.as_bytes());
        end = at + secret.len();
    }
    clean.extend_from_slice(&body[end..]);
    clean
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    #[test]
    fn credentials_are_taken_out_in_every_spelling_and_over_the_end() {
        let redactor = Redactor::new(&[Secret::new("pa ss/word!")], &[]);
        redactor.learn(&Secret::new("token-of-now"));
        let basic = base64::engine::general_purpose::STANDARD.encode("pa ss/word!");
        let text = format!("a pa ss/word! b pa%20ss%2Fword%21 c {basic} d token-of-now\u{7}");
        let masked = redactor.text(&text, 1_000);
        assert_eq!(masked, format!("a {MASK} b {MASK} c {MASK} d {MASK} "));
        for at in 1..12 {
            let text = format!("{}token-of-now{}", "x".repeat(100 - at), "y".repeat(100));
            assert!(!redactor.text(&text, 100).contains("xt"), "{at}");
        }
        assert!(!format!("{redactor:?}").contains("pa ss"));
    }

    #[test]
    fn credentials_are_found_in_bytes_of_any_kind() {
        let redactor = Redactor::new(&[Secret::new("secret-of-api"), Secret::new("ordinary")], &[]);
        let wide = |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "x secret-of-api y".encode_utf16().flat_map(to_bytes).collect()
        };
        for body in [b"\x00\xffsecret-of-api\x01".to_vec(), wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
            assert!(redactor.is_in(&body), "{body:?}");
        }
        assert!(!redactor.is_in(b"ordinary secret-of-ap"));
    }

    #[test]
    fn credentials_are_taken_out_of_data_and_other_words_stay() {
        let redactor = Redactor::new(
            &[Secret::new("a/b \"key\" of 1"), Secret::new("ordinary")],
            &[Secret::new("an ordinary")],
        );
        redactor.learn(&Secret::new("token-of-now"));
        let data = |text: &str| String::from_utf8(redactor.data(text.as_bytes().to_vec())).unwrap();
        assert_eq!(data("x token-of-now, token-of-now"), format!("x {MASK}, {MASK}"));
        assert_eq!(data(r#"{"echo": "a/b \"key\" of 1"}"#), format!("{{\"echo\": \"{MASK}\"}}"));
        assert_eq!(data("a%2Fb%20%22key%22%20of%201"), MASK);
        let escaped = |text: &str| text.chars().map(|c| format!("\\u{:04X}", c as u32)).collect::<String>();
        assert_eq!(data(&format!("[\"{}\"]", escaped("token-of-now"))), format!("[\"{MASK}\"]"));
        assert_eq!(
            data(r#"["tok\u0065n\u002Dof-now", "\u00e9\\u0065"]"#),
            format!(r#"["{MASK}", "é\\u0065"]"#)
        );
        assert_eq!(data(r#"{"e": "a\/b \u0022key\u0022 of\u00201"}"#), format!(r#"{{"e": "{MASK}"}}"#));
        for other in [r#"["\u0065\/ \\u0065"]"#, r#"["\uD83D\uDE00 \u00"]"#, r"\", r"\u12"] {
            assert_eq!(data(other), other);
        }
        assert_eq!(data("an ordinary password: hunter2"), "an ordinary password: hunter2");
    }
}
