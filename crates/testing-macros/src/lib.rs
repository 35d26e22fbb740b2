//! The test attribute of `gatewright-testing`. Use it from there: `#[gatewright_testing::test]`.
#![forbid(unsafe_code)]

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{
    Expr, ExprLit, FnArg, Ident, ItemFn, Lit, Token, parse::Parse, parse::ParseStream, parse_macro_input,
    punctuated::Punctuated, spanned::Spanned,
};

/// A setting of the attribute, `key = value`.
struct Setting {
    key: Ident,
    value: Expr,
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Self { key, value: input.parse()? })
    }
}

/// Turns `async fn name(mcp: Mcp, auth: Auth, …)` into a test whose arguments are fixtures, built by their types.
///
/// The attribute takes the options of `test_use!`, as `key = value`, and `skip = "why"`. A test with its own `server`, `base_url` or
/// `app` ignores the `test_use!` of its module; every other test adds its options to it.
#[proc_macro_attribute]
pub fn test(settings: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let settings = parse_macro_input!(settings with Punctuated::<Setting, Token![,]>::parse_terminated);
    let function = parse_macro_input!(item as ItemFn);
    expand(settings, function).unwrap_or_else(syn::Error::into_compile_error).into()
}

fn expand(settings: Punctuated<Setting, Token![,]>, function: ItemFn) -> syn::Result<TokenStream> {
    let signature = &function.sig;
    if signature.asyncness.is_none() {
        return Err(syn::Error::new(signature.fn_token.span(), "a test with fixtures is an `async fn`"));
    }
    let mut kinds = Vec::new();
    for argument in &signature.inputs {
        match argument {
            FnArg::Typed(typed) => kinds.push(&typed.ty),
            FnArg::Receiver(own) => return Err(syn::Error::new(own.span(), "a test has no `self`")),
        }
    }
    let mut skip = None;
    let mut stands_alone = kinds.is_empty();
    let mut setters = TokenStream::new();
    for Setting { key, value } in settings {
        if key == "skip" {
            let Expr::Lit(ExprLit { lit: Lit::Str(why), .. }) = value else {
                return Err(syn::Error::new(value.span(), "`skip` says why, as a text"));
            };
            skip = Some(quote!(#[ignore = #why]));
            continue;
        }
        stands_alone |= key == "server" || key == "base_url" || key == "app";
        setters.extend(quote!(.#key(#value)));
    }
    let begin = match stands_alone {
        true => quote!(::gatewright_testing::TestOptions::default()),
        false => quote!(__gatewright_test_options()),
    };
    let names: Vec<Ident> =
        (0..kinds.len()).map(|at| Ident::new(&format!("fixture_{at}"), Span::mixed_site())).collect();
    let (attributes, name, visibility) = (&function.attrs, &signature.ident, &function.vis);
    let mut inner = function.clone();
    inner.attrs.clear();
    inner.vis = syn::Visibility::Inherited;
    Ok(quote! {
        #[::core::prelude::v1::test]
        #skip
        #(#attributes)*
        #visibility fn #name() {
            #inner
            ::gatewright_testing::__private::run(
                ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)),
                #begin #setters,
                |context: ::std::sync::Arc<::gatewright_testing::TestContext>| async move {
                    #(<#kinds as ::gatewright_testing::Fixture>::announce(&context);)*
                    #(let #names = <#kinds as ::gatewright_testing::Fixture>::build(&context).await?;)*
                    ::gatewright_testing::__private::Outcome::into_outcome(#name(#(#names),*).await)
                },
            )
        }
    })
}
