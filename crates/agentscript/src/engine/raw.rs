//! Calls of the engine that have no safe wrapper.
#![expect(unsafe_code, reason = "calls of the engine without a safe wrapper; each block says why it holds")]

use std::{
    ffi::{CStr, c_char},
    ptr::NonNull,
};

use rquickjs::{Ctx, Value, qjs};

use crate::worker::heap::Heap;

/// Bytecode that this process has compiled.
pub(crate) struct Bytecode(Vec<u8>);

impl Bytecode {
    /// Returns the words that the engine found in the text: names, keys and texts of the code, without those that the engine knows by heart.
    /// `None` when they cannot be read.
    pub(crate) fn words(&self) -> Option<Vec<String>> {
        // A version, a checksum, and the number of words; then each, as `JS_WriteObjectAtoms` writes it.
        let mut rest = self.0.get(5..)?;
        let count = number(&mut rest)?;
        let mut words = Vec::new();
        for _ in 0..count {
            match byte(&mut rest)? {
                0xC0.. => drop(number(&mut rest)?),
                0x80.. => {}
                _ => {
                    let len = number(&mut rest)?;
                    let (units, wide) = (len >> 1, len & 1 == 1);
                    let (text, after) = rest.split_at_checked(if wide { 2 * units } else { units })?;
                    rest = after;
                    words.push(match wide {
                        true => {
                            let units: Vec<u16> = text
                                .chunks_exact(2)
                                .map(|unit| u16::from_ne_bytes([unit[0], unit[1]]))
                                .collect();
                            String::from_utf16_lossy(&units)
                        }
                        // Latin-1.
                        false => text.iter().map(|byte| char::from(*byte)).collect(),
                    });
                }
            }
        }
        Some(words)
    }
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

/// A number in LEB128.
fn number(rest: &mut &[u8]) -> Option<usize> {
    let mut value = 0;
    for shift in (0..32).step_by(7) {
        let next = byte(rest)?;
        value |= usize::from(next & 0x7F) << shift;
        if next < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Compiles a script in strict mode without running it. `strip` leaves out line numbers.
pub(crate) fn compile(ctx: &Ctx<'_>, text: &CStr, name: &CStr, strip: bool) -> rquickjs::Result<Bytecode> {
    let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_STRICT | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
    let debug = if strip { qjs::JS_WRITE_OBJ_STRIP_DEBUG } else { 0 };
    let keep = qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE | debug;
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: both texts end in NUL and the length is that of the text without it; the compiled value and the written bytes are
    // freed here, with the functions that belong to them.
    unsafe {
        let code = qjs::JS_Eval(raw, text.as_ptr(), text.count_bytes() as _, name.as_ptr(), flags as _);
        if qjs::JS_IsException(code) {
            return Err(rquickjs::Error::Exception);
        }
        let mut len = 0;
        let bytes = qjs::JS_WriteObject(raw, &mut len, code, keep as _);
        qjs::JS_FreeValue(raw, code);
        if bytes.is_null() {
            return Err(rquickjs::Error::Exception);
        }
        let copy = std::slice::from_raw_parts(bytes, len as usize).to_vec();
        qjs::js_free(raw, bytes.cast());
        Ok(Bytecode(copy))
    }
}

/// Runs compiled code in the realm `ctx`. Returns its completion value.
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, code: &Bytecode) -> rquickjs::Result<Value<'js>> {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the bytes were written by `compile` of the same engine in the same process; `JS_EvalFunction` takes the function,
    // and its result is owned by the value that is returned.
    unsafe {
        let function =
            qjs::JS_ReadObject(raw, code.0.as_ptr(), code.0.len() as _, qjs::JS_READ_OBJ_BYTECODE as _);
        if qjs::JS_IsException(function) {
            return Err(rquickjs::Error::Exception);
        }
        let value = qjs::JS_EvalFunction(raw, function);
        if qjs::JS_IsException(value) {
            return Err(rquickjs::Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), value))
    }
}

/// Restores the realm on `heap` to its image, between two runs.
pub(crate) fn restore(heap: &Heap) {
    // SAFETY: called between two runs. What the host holds of the realm is older than the image (`Realm` has it all), what a
    // run made was dropped when it ended, and the objects with native parts are held by `Realm`, so none was finalized.
    unsafe { heap.restore() };
}

/// The bytes of a text, in the engine's heap: UTF-8, except for halves of surrogate pairs.
pub(crate) struct Utf8<'js> {
    ctx: Ctx<'js>,
    bytes: NonNull<c_char>,
    len: usize,
}

/// Reads a text; `None` when it is none, or the heap has no room to write it as UTF-8. ASCII is read in place.
pub(crate) fn utf8(value: Value<'_>) -> Option<Utf8<'_>> {
    if !value.is_string() {
        return None;
    }
    let ctx = value.ctx().clone();
    let mut len = 0;
    // SAFETY: the value is a live text; the bytes stay until they are given back, when the result is dropped.
    let bytes = unsafe { qjs::JS_ToCStringLen(ctx.as_raw().as_ptr(), &mut len, value.as_raw()) };
    NonNull::new(bytes.cast_mut()).map(|bytes| Utf8 { ctx, bytes, len })
}

impl Utf8<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the engine gave the length with the bytes, and nobody changes a text.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }
}

impl Drop for Utf8<'_> {
    fn drop(&mut self) {
        // SAFETY: the bytes came from `JS_ToCStringLen` of the same engine and are given back once.
        unsafe { qjs::JS_FreeCString(self.ctx.as_raw().as_ptr(), self.bytes.as_ptr()) };
    }
}

/// Characters of a text, also of one whose parts are not joined yet; 0 for anything else.
pub(crate) fn text_len(value: &Value<'_>) -> u64 {
    let mut len = 0;
    // SAFETY: the value is alive; reading the length of a text runs no code of the script's.
    unsafe {
        let raw = value.as_raw();
        let tag = qjs::JS_VALUE_GET_TAG(raw);
        if tag != qjs::JS_TAG_STRING && tag != qjs::JS_TAG_STRING_ROPE {
            return 0;
        }
        if qjs::JS_GetLength(value.ctx().as_raw().as_ptr(), raw, &mut len) != 0 {
            return 0;
        }
    }
    len.unsigned_abs()
}
