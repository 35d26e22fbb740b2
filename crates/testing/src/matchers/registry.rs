//! The list of matchers, and all that follows from an entry: a type, a function, methods of [`Expect`], a name in suites.

use std::sync::Arc;
#[cfg(feature = "suites")]
use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;

#[cfg(feature = "suites")]
use super::{
    argument::{Argument, BadArgument},
    vocabulary::Vocabulary,
};
use super::{
    arguments::{
        ItemMatcher, JsonSchema, Latency, LogMessage, Message, NumberRange, Path, Pattern, Snapshot, Times,
    },
    expect::Expect,
    matching::Match,
    mismatch::Outcome,
    subject::AsSubject,
};

/// Creates a matcher from its argument.
#[cfg(feature = "suites")]
type Create = fn(&Value, &Vocabulary<'_>) -> Result<Box<dyn Match + Send + Sync>, BadArgument>;

/// A matcher as suites use it.
#[cfg(feature = "suites")]
pub(crate) struct Registered {
    /// The name in suites, such as `toContainTool`.
    pub(crate) name: String,
    /// JSON Schema of the argument, with the documentation of the matcher.
    pub(crate) schema: Value,
    /// Creates the matcher; the error is the requirement that the argument does not meet.
    pub(super) create: Create,
}

#[cfg(feature = "suites")]
impl Registered {
    fn of<M: SuiteMatcher>(about: &'static str) -> Self {
        let mut schema = M::Argument::schema();
        schema["description"] = about.trim().into();
        let create = |value: &Value, vocabulary: &Vocabulary<'_>| {
            Ok(Box::new(M::new(M::Argument::read(value, vocabulary)?)) as Box<dyn Match + Send + Sync>)
        };
        Self { name: camel_case(M::METHOD), schema, create }
    }
}

/// A matcher that a suite can create from JSON.
#[cfg(feature = "suites")]
trait SuiteMatcher: Match + Send + Sync + Sized + 'static {
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

/// An argument as it is given, as a matcher keeps it.
trait Keep<K> {
    fn keep(self) -> K;
}

macro_rules! keep {
    ($($kept:ty),+) => {$(
        impl<T: Into<$kept>> Keep<$kept> for T {
            fn keep(self) -> $kept {
                self.into()
            }
        }
    )+};
}

keep!(String, i64, usize, Pattern, Path, NumberRange, Latency, Snapshot, Message, LogMessage);

impl<T: Serialize> Keep<Value> for T {
    fn keep(self) -> Value {
        serde_json::to_value(self).expect("the argument of a matcher can be written as JSON")
    }
}

impl<T: Serialize> Keep<JsonSchema> for T {
    fn keep(self) -> JsonSchema {
        let schema: Value = self.keep();
        schema.into()
    }
}

impl<T: Into<NumberRange>> Keep<Times> for T {
    fn keep(self) -> Times {
        Times(self.into())
    }
}

impl<M: Match + Send + Sync + 'static> Keep<ItemMatcher> for M {
    fn keep(self) -> ItemMatcher {
        ItemMatcher(Arc::new(self))
    }
}

/// An argument in the message of a failure.
trait Shown {
    fn shown(&self) -> String {
        "…".to_owned()
    }
}

macro_rules! shown {
    ($($argument:ty: |$value:ident| $text:expr;)+) => {$(
        impl Shown for $argument {
            fn shown(&self) -> String {
                let $value = self;
                $text
            }
        }
    )+};
}

shown! {
    String: |text| format!("{text:?}");
    i64: |number| number.to_string();
    usize: |number| number.to_string();
    Path: |path| format!("{:?}", path.to_string());
    NumberRange: |range| range.to_string();
    Times: |times| times.0.to_string();
    Pattern: |pattern| pattern.0.as_ref().map_or_else(|_| "…".to_owned(), |regex| format!("{:?}", regex.as_str()));
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> String {
        self.as_ref().map(Shown::shown).unwrap_or_default()
    }
}

impl Shown for Value {}
impl Shown for JsonSchema {}
impl Shown for ItemMatcher {}
impl Shown for Snapshot {}
impl Shown for Latency {}
impl Shown for Message {}
impl Shown for LogMessage {}

/// A matcher: its type, its function, its methods, and its form in suites.
macro_rules! matcher {
    ($about:literal $name:ident() $function:ident ($method:ident)) => {
        matcher!(@suite $name, (), $method, |()| $name);

        #[doc = $about]
        #[derive(Debug, Clone, Copy)]
        pub struct $name;

        impl Shown for $name {
            fn shown(&self) -> String {
                String::new()
            }
        }

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

        impl Shown for $name {
            fn shown(&self) -> String {
                self.0.shown()
            }
        }

        matcher!(@function $about $function($argument: $given) $name($argument.keep()));

        impl Expect<'_> {
            matcher!(@method $about $method($argument: $given) $name($argument.keep()));
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

        impl Shown for $name {
            fn shown(&self) -> String {
                self.0.shown()
            }
        }

        matcher!(@function $about $function($argument: Option<$given>) $name($argument.map(Keep::keep)));

        impl Expect<'_> {
            matcher!(@method $about $without() $name(None));
            matcher!(@method $about $with($argument: $given) $name(Some($argument.keep())));
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
            let matcher = $matcher;
            self.assert(&format!("{}({})", stringify!($method), matcher.shown()), &matcher);
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
    ContainsTool(name: impl Into<String> => String): contains_tool, (to_contain_tool);
    /// The list contains a resource with this URI.
    ContainsResource(uri: impl Into<String> => String): contains_resource, (to_contain_resource);
    /// The list contains this resource template.
    ContainsResourceTemplate(template: impl Into<String> => String): contains_resource_template, (to_contain_resource_template);
    /// The list contains a prompt of this name.
    ContainsPrompt(name: impl Into<String> => String): contains_prompt, (to_contain_prompt);
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
    HasMimeType(mime_type: impl Into<String> => String): has_mime_type, (to_have_mime_type);
    /// The prompt has this many messages.
    HasMessages(count: usize => usize): has_messages, (to_have_messages);
    /// A message has this role.
    HasRole(role: impl Into<String> => String): has_role, (to_have_role);
    /// A message, result or resource contains this text.
    ContainsText(text: impl Into<String> => String): contains_text, (to_contain_text);
    /// The value is a JSON-RPC 2.0 response.
    IsValidJsonRpc(): is_valid_json_rpc, (to_be_valid_json_rpc);
    /// The response has a result.
    HasResult(): has_result, (to_have_result);
    /// The response has an error.
    HasError(): has_error, (to_have_error);
    /// The response has an error with this code.
    HasErrorCode(code: i64 => i64): has_error_code, (to_have_error_code);
    /// The JSON contains all of this: objects may have more keys, arrays have the same length.
    MatchesJson(expected: impl Serialize => Value): matches_json, (to_match_json);
    /// The value equals this: nothing is missing, and nothing is added.
    Equals(expected: impl Serialize => Value): equals, (to_equal);
    /// A text matches this regular expression.
    MatchesRegex(pattern: impl Into<Pattern> => Pattern): matches_regex, (to_match_regex);
    /// The number lies in this range, both ends included.
    IsInRange(range: impl Into<NumberRange> => NumberRange): is_in_range, (to_be_in_range);
    /// The list has this many items, the object this many keys, the text this many characters.
    HasLength(length: impl Into<NumberRange> => NumberRange): has_length, (to_have_length);
    /// There is something at this path, such as `structuredContent.items.0`.
    HasProperty(path: impl Into<Path> => Path): has_property, (to_have_property);
    /// Every item of the list, which is not empty, meets these expectations.
    Each(matcher: impl Match + Send + Sync + 'static => ItemMatcher): each, (each);
    /// Some item of the list meets these expectations.
    Containing(matcher: impl Match + Send + Sync + 'static => ItemMatcher): containing, (containing);
    /// The JSON Schema, or the one in this file, allows the value.
    MatchesSchema(schema: impl Serialize => JsonSchema): matches_schema, (to_match_schema);
    /// The result is that in the snapshot of this name. Masked parts only have to be there.
    MatchesSnapshot(snapshot: impl Into<Snapshot> => Snapshot): matches_snapshot, (to_match_snapshot);
    /// Durations keep these limits, in milliseconds, and are not much longer than those of the baseline.
    RespondsWithin(limit: impl Into<Latency> => Latency): responds_within, (to_respond_within);
    /// The server asked this of the client, such as `elicitation/create`, during the call.
    HasAsked(message: impl Into<Message> => Message): has_asked, (to_have_asked);
    /// The server sent this notification, during the call.
    HasNotified(message: impl Into<Message> => Message): has_notified, (to_have_notified);
    /// The server sent a log message with this text, during the call.
    HasLogged(message: impl Into<LogMessage> => LogMessage): has_logged, (to_have_logged);
    /// The server reported progress, which increases, this many times.
    HasProgress(times: impl Into<NumberRange> => Times): has_progress, (to_have_progress);
    /// The server rejected the client with HTTP 401 or 403; with an argument, with this status.
    IsRefused[status: i64 => i64]: is_refused, (to_be_refused() or to_be_refused_with(status));
}
