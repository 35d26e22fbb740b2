//! `cases = …`: the cases of a test, and their names.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Expr, Ident, spanned::Spanned};

/// Longest name of a case, in characters.
const LONGEST_NAME: usize = 60;

/// The cases of a test.
pub(crate) enum Cases {
    /// An array whose items are written out: a test for each.
    Listed(Vec<Vec<Expr>>),
    /// Any other expression.
    Iterator(Expr),
}

impl Cases {
    pub(crate) fn read(value: Expr) -> syn::Result<Self> {
        let Expr::Array(array) = value else { return Ok(Self::Iterator(value)) };
        let span = array.span();
        let cases: Vec<Vec<Expr>> = array
            .elems
            .into_iter()
            .map(|item| match item {
                Expr::Tuple(tuple) => tuple.elems.into_iter().collect(),
                one => vec![one],
            })
            .collect();
        let Some(first) = cases.first() else {
            return Err(syn::Error::new(
                span,
                "there are no cases; a test without one passes whatever happens",
            ));
        };
        let count = first.len();
        match cases.iter().find(|case| case.len() != count) {
            Some(other) => {
                let span = other.first().map_or(span, Spanned::span);
                Err(syn::Error::new(
                    span,
                    format!("this case has {} values, the first has {count}", other.len()),
                ))
            }
            None => Ok(Self::Listed(cases)),
        }
    }

    /// Number of arguments that are values of a case.
    pub(crate) fn values(&self) -> usize {
        match self {
            Self::Listed(cases) => cases.first().map_or(0, Vec::len),
            Self::Iterator(_) => 1,
        }
    }
}

/// The name of a case, made of its values: `("Oslo", -5)` is `oslo_minus_5`.
pub(crate) fn name_of(case: &[Expr], number: usize, taken: &mut Vec<String>) -> Ident {
    let mut words = String::new();
    for value in case {
        add_words(value.to_token_stream(), &mut words);
    }
    let mut name: String = words.chars().take(LONGEST_NAME).collect();
    name.truncate(name.trim_end_matches('_').len());
    if name.is_empty() {
        name = format!("case_{}", number + 1);
    }
    // A digit, or a word of the language.
    if syn::parse_str::<Ident>(&name).is_err() {
        name = format!("case_{name}");
    }
    let mut unique = name.clone();
    let mut count = 1;
    while taken.contains(&unique) {
        count += 1;
        unique = format!("{name}_{count}");
    }
    taken.push(unique.clone());
    Ident::new(&unique, Span::call_site())
}

fn add_words(tokens: TokenStream, words: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => add_words(group.stream(), words),
            TokenTree::Punct(sign) if sign.as_char() == '-' => add_word("minus", words),
            TokenTree::Punct(_) => {}
            TokenTree::Ident(word) => add_word(&word.to_string(), words),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let text = syn::parse_str::<syn::LitStr>(&text).map_or(text, |text| text.value());
                add_word(&text, words);
            }
        }
    }
}

fn add_word(text: &str, words: &mut String) {
    if !words.is_empty() && !words.ends_with('_') {
        words.push('_');
    }
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => words.push(c.to_ascii_lowercase()),
            _ if words.is_empty() || words.ends_with('_') => {}
            _ => words.push('_'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(cases: &str) -> Vec<String> {
        let Ok(Cases::Listed(cases)) = Cases::read(syn::parse_str(cases).unwrap()) else { panic!("{cases}") };
        let mut taken = Vec::new();
        cases.iter().enumerate().map(|(number, case)| name_of(case, number, &mut taken).to_string()).collect()
    }

    #[test]
    fn cases_are_named_after_their_values() {
        assert_eq!(names(r#"[("New York", -5), ("Rome", 30)]"#), ["new_york_minus_5", "rome_30"]);
        assert_eq!(
            names(r#"["", "", "日本", 7, "type"]"#),
            ["case_1", "case_2", "case_3", "case_7", "case_type"]
        );
        assert_eq!(names(r#"["a b", "a-b"]"#), ["a_b", "a_b_2"]);
        assert_eq!(names("[Level::Info, Level::Debug]"), ["level_info", "level_debug"]);
        assert!(names(&format!("[{:?}]", "x".repeat(500)))[0].len() == LONGEST_NAME);
    }

    #[test]
    fn cases_have_as_many_values_as_the_first() {
        for (cases, problem) in
            [("[(1, 2), 3]", "this case has 1 values, the first has 2"), ("[]", "there are no cases")]
        {
            let Err(error) = Cases::read(syn::parse_str(cases).unwrap()) else { panic!("{cases}") };
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
