//! Credentials in text of others, found by their form: values of well-known names, tokens, keys, and passwords in addresses.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

/// Names whose values are credentials. Words before them, as in `DB_PASSWORD` or `x-api-key`, belong to the name.
const NAMES: [&str; 24] = [
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "api_token",
    "session_token",
    "registration_access_token",
    "client_secret",
    "client_assertion",
    "code_verifier",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "secret_key",
    "private_key",
    "access_key",
    "api_key",
    "api-key",
    "apikey",
    "account_key",
    "set-cookie",
    "cookie",
];

/// Text in the place of a credential.
pub const MASK: &str = "[redacted]";

/// Patterns of credentials.
#[derive(Debug)]
pub struct CredentialPatterns {
    /// `name=value`, `name: "value"`, `"name":"value"`, also inside JSON text that was escaped.
    fields: Regex,
    /// The same for a text that was cut: a value without an end runs to the end of the text.
    cut_fields: Regex,
    others: [(Regex, String); 5],
}

/// The patterns for the usual names.
static USUAL: LazyLock<CredentialPatterns> =
    LazyLock::new(|| CredentialPatterns::new(&[]).expect("constant patterns compile"));

impl CredentialPatterns {
    /// Returns the patterns for the usual names.
    pub fn usual() -> &'static Self {
        &USUAL
    }

    /// Compiles the patterns for the usual names and for `names`; `None` if those are too long together.
    pub fn new(names: &[String]) -> Option<Self> {
        let all = NAMES.into_iter().chain(names.iter().map(String::as_str)).map(regex::escape);
        let names = all.collect::<Vec<_>>().join("|");
        // Word boundaries of ASCII: with those of Unicode one letter beyond ASCII makes the search of a line ten times slower.
        let fields = |end: &str| {
            Regex::new(&format!(
                r#"(?i)(?P<name>(?-u:\b(?:[a-z0-9]+[_-]){{0,4}})(?:{names})\\*["']?\s*[:=]\s*)(?:(?P<a>")(?:[^"\\]|\\.)*(?P<b>"{end})|(?P<c>\\+")[^"]*?(?P<d>\\+"{end})|(?P<e>\\*')(?:[^'\\]|\\+[^'\\])*(?P<f>\\*'{end})|(?:[^\s,;&}}\])"'\\]|\\+[^\s,;&}}\])"'\\])+)"#,
            ))
            .ok()
        };
        let other = |pattern: &str, mask: String| Some((Regex::new(pattern).ok()?, mask));
        Some(Self {
            fields: fields("")?,
            cut_fields: fields(r"|\\*\z")?,
            others: [
                // Credentials of an `Authorization` header.
                other(
                    r"(?i)(?-u:\b)(?P<name>bearer|dpop|basic) [a-z0-9._~+/=-]{8,}",
                    format!("${{name}} {MASK}"),
                )?,
                // A signed JWT, and tokens that are known by their first letters.
                other(
                    r"(?-u:\b)(?:eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+|(?:sk-|sk_live_|rk_live_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|gwk_)[A-Za-z0-9_-]{12,})",
                    MASK.to_owned(),
                )?,
                // A password in an address.
                other(r#"(?P<name>[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@"'<>]*@"#, format!("${{name}}{MASK}@"))?,
                // Addresses whose query, or last part, grants access.
                other(
                    r#"(?P<name>[?&](?:token|key|sig|signature|auth|code)=|/oauth/connect\?id=|urn:ietf:params:oauth:request_uri:)[^\s&#"'<>\\]{4,}"#,
                    format!("${{name}}{MASK}"),
                )?,
                other(
                    r"(?s)-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\z)",
                    MASK.to_owned(),
                )?,
            ],
        })
    }

    /// Returns the text with credentials masked. Quotes stay, so that JSON remains valid.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.masked(text, &self.fields)
    }

    /// Returns the beginning of a longer text with credentials masked, including one that goes on after it.
    pub fn mask_beginning<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.masked(text, &self.cut_fields)
    }

    fn masked<'a>(&self, text: &'a str, fields: &Regex) -> Cow<'a, str> {
        // Most texts have no credential and are not copied.
        let mask = format!("${{name}}${{a}}${{c}}${{e}}{MASK}${{b}}${{d}}${{f}}");
        let others = self.others.iter().map(|(pattern, mask)| (pattern, mask.as_str()));
        [(fields, mask.as_str())].into_iter().chain(others).fold(
            Cow::Borrowed(text),
            |text, (pattern, mask)| match pattern.replace_all(&text, mask) {
                Cow::Borrowed(_) => text,
                Cow::Owned(masked) => Cow::Owned(masked),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_by_their_form() {
        for (text, expected) in [
            ("cannot reach postgres://app:hunter2@db:5432/x", "cannot reach postgres://[redacted]@db:5432/x"),
            ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer [redacted]"),
            ("DB_PASSWORD=hunter2 PORT=1", "DB_PASSWORD=[redacted] PORT=1"),
            ("AWS_SECRET_ACCESS_KEY: 'a/b+c'", "AWS_SECRET_ACCESS_KEY: '[redacted]'"),
            ("x-api-key: 12345", "x-api-key: [redacted]"),
            ("Server=db;Pwd=hunter2;x", "Server=db;Pwd=[redacted];x"),
            ("key ghp_0123456789abcdefABCD was revoked", "key [redacted] was revoked"),
            (
                "GET https://a.example/v1?user=7&key=AbCd1234#x",
                "GET https://a.example/v1?user=7&key=[redacted]#x",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nx", "[redacted]\nx"),
            ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted]"),
        ] {
            assert_eq!(CredentialPatterns::usual().mask(text), expected);
        }
    }

    #[test]
    fn ordinary_errors_stay_as_they_are() {
        for text in [
            "Unexpected token: } at 3:4",
            "user 7 has no permission for https://a.example/users?id=7",
            "mail to ann@example.com failed",
            "the password is too short",
            "see https://a.example/@ann and key=value pairs",
        ] {
            assert!(matches!(CredentialPatterns::usual().mask(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn a_value_that_the_cut_goes_through_is_masked() {
        let masked = CredentialPatterns::usual().mask_beginning("secret=\"abc def");
        assert_eq!(masked, "secret=\"[redacted]");
    }
}
