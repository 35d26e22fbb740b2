//! Builds a realm: a runtime of its own with chosen intrinsics and the native functions of a run, all of it frozen.

use std::{cell::RefCell, rc::Rc};

use rquickjs::{
    Context, Ctx, FromJs, Function, Object, Persistent, Result, Runtime, Value, context::intrinsic,
    function::Rest,
};

use super::{
    answers::receive,
    compile::Compiler,
    limit_errors, locale, names,
    places::{NAME, location},
    raw,
    state::{RunState, Terminated},
};
use crate::{
    outcome::RunError,
    protocol::MessageKind,
    worker::{
        Link,
        heap::{Heap, HeapAllocator},
    },
};

/// Intrinsics of a realm. No `Eval`: `eval` and every function constructor lead nowhere. No `Proxy`, `WeakRef`, `Performance`.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// Heap growth after which the engine looks for cycles while a realm is built, in bytes: there are none worth looking for.
const NO_GC: usize = 64 * 1024 * 1024;

/// Stack of the engine while a realm is built.
const BUILD_STACK: usize = 256 * 1024;

/// A realm that has run nothing yet, or was put back to that.
pub(crate) struct Realm {
    // Dropped first: a value must not outlive its runtime.
    pub(super) exports: Persistent<Object<'static>>,
    /// The native functions: kept here, so that no script can make the engine drop one.
    _natives: Vec<Persistent<Function<'static>>>,
    pub(super) context: Context,
    pub(super) runtime: Runtime,
    pub(super) state: Rc<RunState>,
    heap: Rc<Heap>,
}

impl Realm {
    /// Builds a realm whose host calls go through `link`.
    pub(crate) fn new(link: Rc<RefCell<Link>>, compiler: &Compiler) -> Result<Self> {
        let heap = Rc::new(Heap::new());
        let runtime = Runtime::new_with_alloc(HeapAllocator::new(Rc::clone(&heap)))?;
        runtime.set_max_stack_size(BUILD_STACK);
        runtime.set_gc_threshold(NO_GC);
        let context = Context::custom::<Intrinsics>(&runtime)?;
        let state = Rc::new(RunState::new(link, Rc::clone(&heap)));
        let (exports, natives) = context.with(|ctx| {
            let (exports, natives) = build(&ctx, &state, compiler)?;
            let natives = natives.into_iter().map(|native| Persistent::save(&ctx, native)).collect();
            Ok::<_, rquickjs::Error>((Persistent::save(&ctx, exports), natives))
        })?;
        let poll = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            poll.flush();
            poll.must_stop()
        })));
        runtime.run_gc();
        heap.save();
        Ok(Self { exports, _natives: natives, context, runtime, state, heap })
    }

    /// Restores the realm to its first state.
    pub(crate) fn reset(&mut self) {
        raw::restore(&self.heap);
    }
}

type Built<'js> = (Object<'js>, Vec<Function<'js>>);

fn build<'js>(ctx: &Ctx<'js>, state: &Rc<RunState>, compiler: &Compiler) -> Result<Built<'js>> {
    let prelude: Function<'js> = raw::evaluate(ctx, compiler.prelude())?.get()?;
    let (for_host, for_tick, for_made, for_now, for_random) =
        (Rc::clone(state), Rc::clone(state), Rc::clone(state), Rc::clone(state), Rc::clone(state));
    let host =
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, kind: i32, Text(name): Text, Text(body): Text| {
            let sent = match kind {
                0 | 4 => {
                    let body = without_halves(body);
                    for_host.ask(
                        MessageKind::Call,
                        &name,
                        if body.is_empty() { "{}" } else { &body },
                        kind == 4,
                    )
                }
                2 => for_host.log(&name).map(|()| 0),
                5 => for_host.progress(&without_halves(body)),
                _ => Err(for_host.illegal(&name, &body)),
            };
            sent.map_err(|terminated| throw(&ctx, &terminated))
        })?;
    let tick = Function::new(ctx.clone(), move |ctx: Ctx<'js>, texts: Rest<Value<'js>>| {
        for text in texts.iter() {
            for_tick.charge_text(raw::text_len(text));
        }
        for_tick.tick().map_err(|terminated| throw(&ctx, &terminated))
    })?;
    let made = Function::new(ctx.clone(), move |ctx: Ctx<'js>, text: Value<'js>| {
        for_made.charge_text(raw::text_len(&text));
        if for_made.is_terminated() { Err(throw(&ctx, &Terminated)) } else { Ok(text) }
    })?;
    let for_returns = Rc::clone(state);
    let returns = Function::new(ctx.clone(), move |number: u32, value: Value<'js>| {
        for_returns.returned.set(number);
        value
    })?;
    let now = Function::new(ctx.clone(), move || for_now.now_ms.get().floor())?;
    let random = Function::new(ctx.clone(), move || for_random.next_random())?;
    // Tests whether the script itself, and not a function of the engine, reads the property whose getter calls this.
    let script_asks = Function::new(ctx.clone(), move |ctx: Ctx<'js>| {
        let asks = ctx.script_or_module_name(1).and_then(|name| name.to_string().ok());
        asks.as_deref() == Some(NAME)
    })?;
    let (on_done, on_failed) = (Rc::clone(state), Rc::clone(state));
    let done = Function::new(ctx.clone(), move |Text(json): Text| on_done.settle(Ok(without_halves(json))))?;
    let failed = Function::new(
        ctx.clone(),
        move |kind: String, Text(name): Text, Text(message): Text, Text(code): Text, Text(stack): Text| {
            let error = if kind == "tool" {
                RunError::ToolError { tool_name: name, message, code, location: location(&stack) }
            } else {
                on_failed.result_is_faulty.set(kind == "result");
                // The names of limits are the engine's to give.
                let name = if names::is_own(&name) { "Error".to_owned() } else { name };
                RunError::RuntimeError { name, message, location: location(&stack) }
            };
            on_failed.settle(Err(error));
        },
    )?;
    let for_english = Rc::clone(state);
    let english = Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, kind: i32, a: String, b: String, options: Vec<String>| {
            // The engine's own poll does not see the time that this takes.
            let stop = || for_english.must_stop();
            let answer = if stop() { String::new() } else { locale::answer(kind, &a, &b, &options, &stop) };
            if for_english.is_terminated() { Err(throw(&ctx, &Terminated)) } else { Ok(answer) }
        },
    )?;
    let for_question = Rc::clone(state);
    let question = Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, Text(name): Text, deliver: Function<'js>| -> Result<Object<'js>> {
            let over = |terminated| throw(&ctx, &terminated);
            let asked = for_question.ask(MessageKind::GetTool, &name, "", false).map_err(over)?;
            loop {
                let Some(answer) = receive(&ctx, &for_question)? else {
                    for_question.refuse().map_err(over)?;
                    continue;
                };
                if answer.id == asked {
                    let object = Object::new(ctx.clone())?;
                    object.set("ok", answer.ok)?;
                    object.set("value", answer.value)?;
                    return Ok(object);
                }
                // Settles a promise; what the script does about it comes when it waits.
                deliver.call::<_, ()>((answer.id, answer.ok, answer.value))?;
            }
        },
    )?;
    let natives = [host, tick, made, returns, now, random, script_asks, done, failed, english, question];
    let exports = prelude.call((Rest(natives.to_vec()),))?;
    Ok((exports, natives.into()))
}

/// A text of the script's, with U+FFFD for what is not Unicode: half a surrogate pair may stand in any name or message.
struct Text(String);

impl<'js> FromJs<'js> for Text {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Self> {
        match String::from_js(ctx, value.clone()) {
            Err(rquickjs::Error::Utf8(_)) => Ok(Self(raw::lossy_text(&value))),
            text => text.map(Self),
        }
    }
}

/// JSON text with U+FFFD instead of every half of a surrogate pair. `JSON.stringify` writes halves, and nothing else, as `\\ud…`: a text that
/// most readers of JSON refuse.
fn without_halves(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let half = rest[at..].starts_with("\\ud")
            && matches!(rest.as_bytes().get(at + 3), Some(b'8'..=b'9' | b'a'..=b'f'));
        // Any other escape: its backslash and what it escapes, which may be a backslash.
        let len = if half { 6 } else { 2 };
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        out.push_str(if half { "\u{fffd}" } else { escape.get(..len).unwrap_or(escape) });
        rest = escape.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Throws into a script whose run must end: it does not matter what the script makes of the exception.
fn throw(ctx: &Ctx<'_>, _: &Terminated) -> rquickjs::Error {
    match rquickjs::String::from_str(ctx.clone(), "the run is over") {
        Ok(text) => ctx.throw(text.into_value()),
        Err(error) => error,
    }
}

/// Returns what was thrown. Ends the run when memory ran out while arguments were built.
pub(super) fn thrown<'js>(ctx: &Ctx<'js>, state: &RunState, error: &rquickjs::Error) -> Option<Value<'js>> {
    match error {
        rquickjs::Error::Exception => Some(ctx.catch()),
        rquickjs::Error::Allocation => {
            state.end(limit_errors::memory);
            None
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn halves_of_surrogate_pairs_become_replacement_characters() {
        for (json, expected) in [
            (r#"{"a":"\ud83dx","\udead":"\ud800"}"#, "{\"a\":\"\u{fffd}x\",\"\u{fffd}\":\"\u{fffd}\"}"),
            (r#""\\ud83d \" \n \u0001""#, r#""\\ud83d \" \n \u0001""#),
            (r#""\\\ud83d""#, "\"\\\\\u{fffd}\""),
            ("\"\u{1f600}\"", "\"\u{1f600}\""),
        ] {
            assert_eq!(without_halves(json.to_owned()), expected);
        }
    }

    /// Returns a function that lists what a script could reach and change: every object and function that properties and prototypes of the
    /// global object lead to and that is not frozen. It is compiled before the realm takes away what it is made of.
    const FIND_OPEN: &str = r"(function () {
        const { getPrototypeOf, getOwnPropertyNames, getOwnPropertySymbols, getOwnPropertyDescriptor, isFrozen } = Object;
        const global = globalThis, SetCtor = Set, StringFn = String;
        return () => {
            const open = [], seen = new SetCtor(), queue = [];
            const add = (value, path) => {
                if (value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) return;
                seen.add(value);
                queue[queue.length] = [value, path];
            };
            add(global, 'global');
            add(getPrototypeOf([].values().map((x) => x)), 'iterator helper');
            add(getPrototypeOf((function () { return arguments })()), 'arguments');
            add(getPrototypeOf(async function* () {}), 'async generator');
            for (let i = 0; i < queue.length; i++) {
                const [at, path] = queue[i];
                if (at !== global && !isFrozen(at)) open[open.length] = path;
                add(getPrototypeOf(at), path + '.__proto__');
                for (const key of [...getOwnPropertyNames(at), ...getOwnPropertySymbols(at)]) {
                    const property = getOwnPropertyDescriptor(at, key);
                    const name = path + '.' + StringFn(key);
                    add(property.value, name);
                    add(property.get, 'get ' + name);
                    add(property.set, 'set ' + name);
                    // What a getter holds, its properties do not lead to.
                    if (property.get) { try { add(property.get.call(at), 'result of ' + name); } catch { } }
                }
            }
            return open.join() + ' of ' + queue.length;
        };
    })()";

    #[test]
    fn a_realm_builds_and_everything_a_script_can_reach_in_it_is_frozen() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let link = Rc::new(RefCell::new(Link::new(ours, 1024)));
        let heap = Rc::new(Heap::new());
        let runtime = Runtime::new_with_alloc(HeapAllocator::new(Rc::clone(&heap))).unwrap();
        let context = Context::custom::<Intrinsics>(&runtime).unwrap();
        let state = Rc::new(RunState::new(link, Rc::clone(&heap)));
        let compiler = Compiler::new().unwrap();
        context.with(|ctx| {
            let Ok(find_open) = compiler.script(FIND_OPEN, "test", &Limits::default(), None) else {
                panic!("compiles")
            };
            let find_open: Function<'_> = raw::evaluate(&ctx, &find_open).unwrap().get().unwrap();
            let exports = match build(&ctx, &state, &compiler) {
                Ok((exports, _)) => exports,
                Err(error) => {
                    let thrown = ctx.catch();
                    let stack: String = thrown.as_object().unwrap().get("stack").unwrap();
                    panic!("{error}: {:?} {stack}", thrown.as_exception().and_then(|e| e.message()));
                }
            };
            println!("{} bytes of heap", heap.used());
            let seal: Function<'_> = exports.get("seal").unwrap();
            let given = Object::new(ctx.clone()).unwrap();
            seal.call::<_, ()>((given, true, true)).unwrap();
            let found: String = find_open.call(()).unwrap();
            let (open, reached) = found.split_once(" of ").unwrap();
            assert_eq!(open, "", "of {reached}");
            assert!(reached.parse::<u32>().unwrap() > 500, "{reached}");
        });
    }
}
