//! The attributes of `gatewright-testing`. Use them from there: `#[gatewright_testing::test]`.
#![forbid(unsafe_code)]

mod cases;
mod hook;
mod settings;
mod test;

use syn::{ItemFn, parse_macro_input};

use settings::Settings;

/// Turns `async fn name(mcp: Mcp, auth: Auth, …)` into a test whose arguments are fixtures, built by their types.
///
/// The attribute takes the options of `test_use!`, as `key = value`, and these:
///
/// * `skip = "why"` leaves the test out.
/// * `only` leaves out every other test of this module and of those in it. If the environment variable `CI` is set, the test fails instead.
/// * `cases = [("Oslo", 21), ("Rome", 30)]` makes a test of each case, named after its values: `name::oslo_21`. The values are the last
///   arguments of the function. With any other expression, an iterator, one test runs all cases, and its last argument is the case.
///
/// A test with its own `server`, `base_url` or `app` ignores the `test_use!` of its module; every other test adds its options to it.
#[proc_macro_attribute]
pub fn test(settings: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let settings = parse_macro_input!(settings as Settings);
    let function = parse_macro_input!(item as ItemFn);
    test::expand(settings, function).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a hook of the tests of a module, and of those in it, of an `async fn` without arguments.
macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident: $kind:literal;)+) => {$(
        $(#[$doc])*
        #[proc_macro_attribute]
        pub fn $name(settings: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
            let function = parse_macro_input!(item as ItemFn);
            hook::expand($kind, settings.into(), function).unwrap_or_else(syn::Error::into_compile_error).into()
        }
    )+};
}

hooks! {
    /// Runs an `async fn` once, before the first test of its module and of those in it. `cargo nextest` runs each test in its own process,
    /// and so the hook before each test.
    before_all: "BeforeAll";
    /// Runs an `async fn` before each test of its module and of those in it.
    before_each: "BeforeEach";
    /// Runs an `async fn` after each test of its module and of those in it, even if the test failed.
    after_each: "AfterEach";
    /// Runs an `async fn` once, when the process ends, if a test of its module or of those in it ran.
    after_all: "AfterAll";
}
