//! `#[before_all]` and its like.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{ItemFn, spanned::Spanned};

/// Keeps the function, and registers it for the tests of its module.
pub(crate) fn expand(kind: &str, settings: TokenStream, function: ItemFn) -> syn::Result<TokenStream> {
    if !settings.is_empty() {
        return Err(syn::Error::new(settings.span(), "a hook takes no settings"));
    }
    let signature = &function.sig;
    if signature.asyncness.is_none() || !signature.inputs.is_empty() || !signature.generics.params.is_empty()
    {
        return Err(syn::Error::new(signature.span(), "a hook is an `async fn` without arguments"));
    }
    let (name, kind) = (&signature.ident, Ident::new(kind, Span::call_site()));
    Ok(quote! {
        #function

        const _: () = {
            #[::gatewright_testing::__private::linkme::distributed_slice(::gatewright_testing::__private::MARKS)]
            #[linkme(crate = ::gatewright_testing::__private::linkme)]
            static HOOK: ::gatewright_testing::__private::Mark = ::gatewright_testing::__private::Mark {
                module: ::core::module_path!(),
                kind: ::gatewright_testing::__private::MarkKind::Hook(
                    ::gatewright_testing::__private::When::#kind,
                    || ::std::boxed::Box::pin(async {
                        ::gatewright_testing::__private::Outcome::into_outcome(#name().await)
                    }),
                ),
            };
        };
    })
}
