//! The settings of the test attribute: `key = value`, or a key alone.

use syn::{Expr, Ident, Token, parse::Parse, parse::ParseStream};

/// A setting. `only` has no value.
pub(crate) struct Setting {
    pub(crate) key: Ident,
    pub(crate) value: Option<Expr>,
}

/// All settings of an attribute.
pub(crate) struct Settings(pub(crate) Vec<Setting>);

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key: Ident = input.parse()?;
        if key == "only" && !input.peek(Token![=]) {
            return Ok(Self { key, value: None });
        }
        input.parse::<Token![=]>()?;
        Ok(Self { key, value: Some(input.parse()?) })
    }
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let settings = input.parse_terminated(Setting::parse, Token![,])?;
        Ok(Self(settings.into_iter().collect()))
    }
}
