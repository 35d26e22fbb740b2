//! `#[test]`.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, Type, spanned::Spanned};

use crate::{
    cases::{Cases, name_of},
    settings::{Setting, Settings},
};

/// A test function and what its attribute says.
struct Test {
    function: ItemFn,
    /// Types of all arguments.
    types: Vec<Type>,
    skip: TokenStream,
    only: bool,
    cases: Option<Cases>,
    /// The expression that makes the options.
    options: TokenStream,
}

pub(crate) fn expand(settings: Settings, function: ItemFn) -> syn::Result<TokenStream> {
    let test = Test::read(settings, function)?;
    let only = test.only.then(|| mark_only(&test.function.sig.ident));
    let tests = match &test.cases {
        None => test.single(),
        Some(Cases::Listed(cases)) => test.listed(cases)?,
        Some(Cases::Iterator(cases)) => test.iterated(cases)?,
    };
    Ok(quote!(#tests #only))
}

impl Test {
    fn read(settings: Settings, function: ItemFn) -> syn::Result<Self> {
        let signature = &function.sig;
        if signature.asyncness.is_none() {
            return Err(syn::Error::new(signature.fn_token.span(), "a test with fixtures is an `async fn`"));
        }
        let mut types = Vec::new();
        for argument in &signature.inputs {
            match argument {
                FnArg::Typed(typed) => types.push(Type::clone(&typed.ty)),
                FnArg::Receiver(own) => return Err(syn::Error::new(own.span(), "a test has no `self`")),
            }
        }
        let (mut skip, mut only, mut cases) = (TokenStream::new(), false, None);
        let mut own_server = false;
        let mut setters = TokenStream::new();
        for Setting { key, value } in settings.0 {
            match (key.to_string().as_str(), value) {
                ("only", None) => only = true,
                ("only", Some(value)) => {
                    return Err(syn::Error::new(
                        value.span(),
                        "`only` takes no value; leave it out to run all tests",
                    ));
                }
                ("skip", Some(Expr::Lit(ExprLit { lit: Lit::Str(why), .. }))) => {
                    skip = quote!(#[ignore = #why])
                }
                ("skip", value) => {
                    return Err(syn::Error::new(value.span(), "`skip` says why, as a text"));
                }
                ("cases", Some(value)) => cases = Some(Cases::read(value)?),
                (name, Some(value)) => {
                    own_server |= ["server", "base_url", "app"].contains(&name);
                    setters.extend(quote!(.#key(#value)));
                }
                (_, None) => return Err(syn::Error::new(key.span(), "a setting is `key = value`")),
            }
        }
        let values = cases.as_ref().map_or(0, Cases::values);
        let begin = match own_server || types.len() <= values {
            true => quote!(::gatewright_testing::TestOptions::default()),
            false => quote!(__gatewright_test_options()),
        };
        Ok(Self { function, types, skip, only, cases, options: quote!(#begin #setters) })
    }

    /// The function without its attributes, to be called by the test.
    fn inner(&self) -> ItemFn {
        let mut inner = self.function.clone();
        inner.attrs.clear();
        inner.vis = syn::Visibility::Inherited;
        inner
    }

    /// The fixtures: statements that build them, and their names.
    fn fixtures(&self, values: usize) -> syn::Result<(TokenStream, Vec<Ident>)> {
        let Some(count) = self.types.len().checked_sub(values) else {
            let problem = format!("each case has {values} values, which are the last arguments of the test");
            return Err(syn::Error::new(self.function.sig.ident.span(), problem));
        };
        let kinds = &self.types[..count];
        let names: Vec<Ident> =
            (0..count).map(|at| Ident::new(&format!("fixture_{at}"), Span::mixed_site())).collect();
        let build = quote! {
            #(<#kinds as ::gatewright_testing::Fixture>::announce(&context);)*
            #(let #names = <#kinds as ::gatewright_testing::Fixture>::build(&context).await?;)*
        };
        Ok((build, names))
    }

    fn single(&self) -> TokenStream {
        let (skip, options, inner, visibility) =
            (&self.skip, &self.options, self.inner(), &self.function.vis);
        let (attributes, name) = (&self.function.attrs, &self.function.sig.ident);
        let (build, names) = self.fixtures(0).unwrap_or_default();
        quote! {
            #[::core::prelude::v1::test]
            #skip
            #(#attributes)*
            #visibility fn #name() {
                #inner
                ::gatewright_testing::__private::run(
                    ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)),
                    #options,
                    |context: ::std::sync::Arc<::gatewright_testing::TestContext>| async move {
                        #build
                        ::gatewright_testing::__private::Outcome::into_outcome(#name(#(#names),*).await)
                    },
                )
            }
        }
    }

    /// A function that runs one case by its number, and a module with a test for each.
    fn listed(&self, cases: &[Vec<Expr>]) -> syn::Result<TokenStream> {
        let values = cases.first().map_or(0, Vec::len);
        let (build, names) = self.fixtures(values)?;
        let (skip, options, inner, visibility) =
            (&self.skip, &self.options, self.inner(), &self.function.vis);
        let name = &self.function.sig.ident;
        let attributes = &self.function.attrs;
        let conditions: Vec<&Attribute> =
            attributes.iter().filter(|one| one.path().is_ident("cfg")).collect();
        let mut taken = Vec::new();
        let (mut arms, mut tests) = (TokenStream::new(), TokenStream::new());
        for (number, case) in cases.iter().enumerate() {
            arms.extend(quote!(#number => #name(#(#names,)* #(#case),*).await,));
            let test = name_of(case, number, &mut taken);
            tests.extend(quote! {
                #[::core::prelude::v1::test]
                #skip
                #(#attributes)*
                fn #test() {
                    super::#name(::core::concat!(::core::module_path!(), "::", ::core::stringify!(#test)), #number)
                }
            });
        }
        Ok(quote! {
            #(#conditions)*
            #[cfg(test)]
            #[doc(hidden)]
            #visibility fn #name(__name: &'static str, __case: usize) {
                #inner
                ::gatewright_testing::__private::run(
                    __name,
                    #options,
                    |context: ::std::sync::Arc<::gatewright_testing::TestContext>| async move {
                        #build
                        let outcome = match __case {
                            #arms
                            _ => ::core::unreachable!("a case has a number"),
                        };
                        ::gatewright_testing::__private::Outcome::into_outcome(outcome)
                    },
                )
            }

            #(#conditions)*
            #[cfg(test)]
            #visibility mod #name {
                #tests
            }
        })
    }

    /// One test that runs all cases.
    fn iterated(&self, cases: &Expr) -> syn::Result<TokenStream> {
        let (build, names) = self.fixtures(1)?;
        let (skip, options, inner, visibility) =
            (&self.skip, &self.options, self.inner(), &self.function.vis);
        let (attributes, name) = (&self.function.attrs, &self.function.sig.ident);
        Ok(quote! {
            #[::core::prelude::v1::test]
            #skip
            #(#attributes)*
            #visibility fn #name() {
                #inner
                ::gatewright_testing::__private::run_cases(
                    ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#name)),
                    #cases,
                    |__name, __case| ::gatewright_testing::__private::run(
                        __name,
                        #options,
                        |context: ::std::sync::Arc<::gatewright_testing::TestContext>| async move {
                            #build
                            ::gatewright_testing::__private::Outcome::into_outcome(#name(#(#names,)* __case).await)
                        },
                    ),
                )
            }
        })
    }
}

/// Registers the test as one that leaves out others.
fn mark_only(name: &Ident) -> TokenStream {
    quote! {
        #[cfg(test)]
        const _: () = {
            #[::gatewright_testing::__private::linkme::distributed_slice(::gatewright_testing::__private::MARKS)]
            #[linkme(crate = ::gatewright_testing::__private::linkme)]
            static ONLY: ::gatewright_testing::__private::Mark = ::gatewright_testing::__private::Mark {
                module: ::core::module_path!(),
                kind: ::gatewright_testing::__private::MarkKind::Only(::core::concat!(
                    ::core::module_path!(),
                    "::",
                    ::core::stringify!(#name)
                )),
            };
        };
    }
}
