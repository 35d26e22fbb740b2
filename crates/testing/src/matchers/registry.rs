//! The list of matchers, and all that follows from an entry: a type, a function, methods of [`Expect`], a name in suites.

#[cfg(feature = "suites")]
use std::sync::LazyLock;

use serde_json::Value;

#[cfg(feature = "suites")]
use super::argument::Argument;
use super::{expect::Expect, matching::Match, mismatch::Outcome, subject::AsSubject};

/// A matcher as suites use it.
#[cfg(feature = "suites")]
pub(crate) struct Registered {
    /// The name in suites, such as `toContainTool`.
    pub(crate) name: String,
    /// JSON Schema of the argument, with the documentation of the matcher.
    pub(crate) schema: Value,
    /// Creates the matcher; the error is the requirement that the argument does not meet.
    pub(crate) create: fn(&Value) -> Result<Box<dyn Match>, &'static str>,
}

#[cfg(feature = "suites")]
impl Registered {
    fn of<M: SuiteMatcher>(about: &'static str) -> Self {
        let mut schema = M::Argument::schema();
        schema["description"] = about.trim().into();
        let create = |value: &Value| Ok(Box::new(M::new(M::Argument::from_json(value)?)) as Box<dyn Match>);
        Self { name: camel_case(M::METHOD), schema, create }
    }
}

/// A matcher that a suite can create from JSON.
#[cfg(feature = "suites")]
trait SuiteMatcher: Match + Sized + 'static {
    type Argument: Argument;
    const METHOD: &'static str;

    fn new(argument: Self::Argument) -> Self;
}

#[cfg(feature = "suites")]
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

/// An argument in the message of a failure.
trait Display {
    fn display(&self) -> String;
}

macro_rules! display {
    ($($argument:ty: |$value:ident| $text:expr;)+) => {$(
        impl Display for $argument {
            fn display(&self) -> String {
                let $value = self;
                $text
            }
        }
    )+};
}

display! {
    &str: |text| format!("{text:?}");
    i64: |number| number.to_string();
    usize: |number| number.to_string();
    &Value: |_json| "…".to_owned();
}

/// A matcher: its type, its function, its methods, and its form in suites.
macro_rules! matcher {
    ($about:literal $name:ident() $function:ident ($method:ident)) => {
        matcher!(@suite $name, (), $method, |()| $name);

        #[doc = $about]
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        matcher!(@function $about $function() $name);

        impl Expect<'_> {
            matcher!(@method $about $method() $name);
        }
    };
    ($about:literal $name:ident($argument:ident: $given:ty => $kept:ty) $function:ident ($method:ident)) => {
        matcher!(@suite $name, $kept, $method, $name);

        #[doc = $about]
        #[derive(Debug, Clone)]
        pub struct $name(pub $kept);

        matcher!(@function $about $function($argument: $given) $name($argument.to_owned()));

        impl Expect<'_> {
            matcher!(@method $about $method($argument: $given) $name($argument.to_owned()));
        }
    };
    ($about:literal $name:ident[$argument:ident: $given:ty => $kept:ty] $function:ident ($first:ident() or $second:ident($_:ident))) => {
        matcher!(@optional $about $name[$argument: $given => $kept] $function $first $second $first);
    };
    ($about:literal $name:ident[$argument:ident: $given:ty => $kept:ty] $function:ident ($first:ident($_:ident) or $second:ident())) => {
        matcher!(@optional $about $name[$argument: $given => $kept] $function $second $first $first);
    };
    (@optional $about:literal $name:ident[$argument:ident: $given:ty => $kept:ty] $function:ident $without:ident $with:ident $suite:ident) => {
        matcher!(@suite $name, Option<$kept>, $suite, $name);

        #[doc = $about]
        #[derive(Debug, Clone)]
        pub struct $name(pub Option<$kept>);

        matcher!(@function $about $function($argument: Option<$given>) $name($argument.map(|it| it.to_owned())));

        impl Expect<'_> {
            matcher!(@method $about $without() $name(None));
            matcher!(@method $about $with($argument: $given) $name(Some($argument.to_owned())));
        }
    };
    (@function $about:literal $function:ident($($argument:ident: $given:ty)?) $matcher:expr) => {
        #[doc = $about]
        ///
        /// # Errors
        /// The value does not match, or the matcher does not support values of its type.
        pub fn $function(value: &(impl AsSubject + ?Sized) $(, $argument: $given)?) -> Outcome {
            $matcher.check(&value.as_subject())
        }
    };
    (@method $about:literal $method:ident($($argument:ident: $given:ty)?) $matcher:expr) => {
        #[doc = $about]
        ///
        /// # Panics
        /// The value does not match, or the matcher does not support values of its type.
        #[track_caller]
        pub fn $method(&self $(, $argument: $given)?) {
            let arguments: &[String] = &[$($argument.display())?];
            self.assert(&format!("{}({})", stringify!($method), arguments.concat()), &$matcher);
        }
    };
    (@suite $name:ident, $argument:ty, $method:ident, $new:expr) => {
        #[cfg(feature = "suites")]
        impl SuiteMatcher for $name {
            type Argument = $argument;
            const METHOD: &'static str = stringify!($method);

            fn new(argument: $argument) -> Self {
                ($new)(argument)
            }
        }
    };
}

/// All matchers. An entry is its documentation, its type with the argument as it is given and kept (in brackets if it may be
/// left out), its function, and its method (or two methods, if the argument may be left out; the first one names it in suites).
macro_rules! matchers {
    ($(#[doc = $about:literal] $name:ident $argument:tt: $function:ident, $methods:tt;)+) => {
        $(matcher! { $about $name $argument $function $methods })+

        /// All matchers, in the order of the list.
        #[cfg(feature = "suites")]
        pub(crate) fn registered() -> &'static [Registered] {
            static ALL: LazyLock<Vec<Registered>> =
                LazyLock::new(|| vec![$(Registered::of::<$name>($about)),+]);
            &ALL
        }
    };
}

matchers! {
    /// The list contains a tool of this name.
    ContainsTool(name: &str => String): contains_tool, (to_contain_tool);
    /// The list contains a resource with this URI.
    ContainsResource(uri: &str => String): contains_resource, (to_contain_resource);
    /// The list contains this resource template.
    ContainsResourceTemplate(template: &str => String): contains_resource_template, (to_contain_resource_template);
    /// The list contains a prompt of this name.
    ContainsPrompt(name: &str => String): contains_prompt, (to_contain_prompt);
    /// The call succeeded.
    IsSuccessful(): is_successful, (to_be_successful);
    /// The call failed; with an argument, with this JSON-RPC code.
    IsError[code: i64 => i64]: is_error, (to_be_error() or to_be_error_code(code));
    /// A text contains this; without an argument, there is a text.
    HasTextContent[text: &str => String]: has_text_content, (to_have_text_content(text) or to_have_any_text_content());
    /// There is an image.
    HasImageContent(): has_image_content, (to_have_image_content);
    /// There is an embedded resource or a link to one.
    HasResourceContent(): has_resource_content, (to_have_resource_content);
    /// A content has this media type.
    HasMimeType(mime_type: &str => String): has_mime_type, (to_have_mime_type);
    /// The prompt has this many messages.
    HasMessages(count: usize => usize): has_messages, (to_have_messages);
    /// A message has this role.
    HasRole(role: &str => String): has_role, (to_have_role);
    /// A message, result or resource contains this text.
    ContainsText(text: &str => String): contains_text, (to_contain_text);
    /// The value is a JSON-RPC 2.0 response.
    IsValidJsonRpc(): is_valid_json_rpc, (to_be_valid_json_rpc);
    /// The response has a result.
    HasResult(): has_result, (to_have_result);
    /// The response has an error.
    HasError(): has_error, (to_have_error);
    /// The response has an error with this code.
    HasErrorCode(code: i64 => i64): has_error_code, (to_have_error_code);
    /// The JSON contains all of this: objects may have more keys, arrays have the same length.
    MatchesJson(expected: &Value => Value): matches_json, (to_match_json);
    /// The server rejected the client with HTTP 401 or 403; with an argument, with this status.
    IsRefused[status: i64 => i64]: is_refused, (to_be_refused() or to_be_refused_with(status));
}
