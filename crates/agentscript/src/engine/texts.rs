//! Texts on their way out of the engine.
//!
//! A script makes texts as long as its heap. Native functions get them as [`Text`], which reads them where they are and copies no more than
//! it is asked for. [`native`] is the only way to make a native function, and takes none whose parameters could be a copy of a whole text.

use std::borrow::Cow;

use rquickjs::{
    Ctx, FromJs, Function, Result, Value,
    function::{IntoJsFunc, Rest},
};

use super::{places, raw};
use crate::{
    excerpt::{self, MESSAGE_BYTES, NAME_BYTES},
    outcome::Location,
};

/// A text of a script, in the engine's heap. What reading it takes counts against the heap's limit.
pub(crate) struct Text<'js>(raw::Utf8<'js>);

impl<'js> FromJs<'js> for Text<'js> {
    fn from_js(_: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        let kind = value.type_name();
        if !value.is_string() {
            return Err(rquickjs::Error::new_from_js(kind, "string"));
        }
        // Without memory for it, the heap has noted that the run must end.
        raw::utf8(value).map(Self).ok_or(rquickjs::Error::Exception)
    }
}

impl Text<'_> {
    /// Length in bytes of UTF-8.
    pub(crate) fn len(&self) -> usize {
        self.0.bytes().len()
    }

    /// At most [`NAME_BYTES`] of the text.
    pub(crate) fn name(&self) -> String {
        // So much that what is cut off shows that there was more.
        excerpt::name(&self.beginning(NAME_BYTES + 4)).into_owned()
    }

    /// At most [`MESSAGE_BYTES`] of the text, from both of its ends.
    pub(crate) fn message(&self) -> String {
        match std::str::from_utf8(self.0.bytes()) {
            Ok(text) => excerpt::message(text).into_owned(),
            Err(_) => excerpt::message(&self.beginning(MESSAGE_BYTES)).into_owned(),
        }
    }

    /// The whole text, when it has at most `most` bytes.
    pub(crate) fn within(&self, most: u64) -> Option<Cow<'_, str>> {
        (self.len() as u64 <= most).then(|| String::from_utf8_lossy(self.0.bytes()))
    }

    /// The beginning of the text, whole characters of at most `most` bytes. U+FFFD stands for halves of surrogate pairs.
    pub(crate) fn beginning(&self, most: usize) -> Cow<'_, str> {
        let bytes = self.0.bytes();
        let mut end = most.min(bytes.len());
        while bytes.get(end).is_some_and(|byte| (0x80..0xc0).contains(byte)) {
            end -= 1;
        }
        String::from_utf8_lossy(&bytes[..end])
    }

    /// The first place of the script in a stack.
    pub(crate) fn location(&self) -> Option<Location> {
        std::str::from_utf8(self.0.bytes()).ok().and_then(places::location)
    }
}

/// Makes a native function.
pub(super) fn native<'js, P, F>(ctx: &Ctx<'js>, function: F) -> Result<Function<'js>>
where
    P: Bounded,
    F: IntoJsFunc<'js, P> + 'js,
{
    #[expect(clippy::disallowed_methods, reason = "the parameters hold no copies of texts")]
    Function::new(ctx.clone(), function)
}

/// Parameters that hold no copy of a text, whatever its length.
pub(super) trait Bounded {}

impl Bounded for i32 {}
impl Bounded for u32 {}
impl Bounded for Ctx<'_> {}
impl Bounded for Value<'_> {}
impl Bounded for Function<'_> {}
impl Bounded for Text<'_> {}
impl<T: Bounded> Bounded for Vec<T> {}
impl<T: Bounded> Bounded for Rest<T> {}

macro_rules! bounded_lists {
    ($($($part:ident)*;)*) => { $(impl<$($part: Bounded),*> Bounded for ($($part,)*) {})* };
}
bounded_lists! { ; A; A B; A B C; A B C D; A B C D E; }
