//! Builds a realm: a runtime of its own with chosen intrinsics and the native functions of a run, all of it frozen.

use std::{cell::RefCell, rc::Rc};

use rquickjs::{
    Context, Ctx, Function, Object, Persistent, Result, Runtime, Value, context::intrinsic, function::Rest,
};

use super::{
    answers::receive,
    compile::Compiler,
    limit_errors, locale, names,
    places::NAME,
    raw,
    state::{RunState, Terminated},
    texts::{Text, native},
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

/// Longest text that is compared or formatted, in bytes: the prelude refuses one of more than 1,048,576 characters.
const LONGEST_COMPARED: u64 = 3 * 1024 * 1024;

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
    let host = native(ctx, move |ctx: Ctx<'js>, kind: i32, name: Text<'js>, body: Text<'js>| {
        let sent = match kind {
            0 | 4 => for_host.ask(MessageKind::Call, &name, Some(&body), kind == 4),
            8 | 9 => for_host.ask(MessageKind::CallPages, &name, Some(&body), kind == 9),
            6 | 7 => for_host.ask(MessageKind::Content, &name, Some(&body), kind == 7),
            2 => for_host.log(&name).map(|()| 0),
            5 => for_host.progress(&body),
            _ => Err(for_host.illegal(&name, &body)),
        };
        sent.map_err(|terminated| throw(&ctx, &terminated))
    })?;
    let tick = native(ctx, move |ctx: Ctx<'js>, texts: Rest<Value<'js>>| {
        for text in texts.iter() {
            for_tick.charge_text(raw::text_len(text));
        }
        for_tick.tick().map_err(|terminated| throw(&ctx, &terminated))
    })?;
    let made = native(ctx, move |ctx: Ctx<'js>, text: Value<'js>| {
        for_made.charge_text(raw::text_len(&text));
        if for_made.is_terminated() { Err(throw(&ctx, &Terminated)) } else { Ok(text) }
    })?;
    let for_returns = Rc::clone(state);
    let returns = native(ctx, move |number: u32, value: Value<'js>| {
        for_returns.returned.set(number);
        value
    })?;
    let now = native(ctx, move || for_now.now_ms.get().floor())?;
    let random = native(ctx, move || for_random.next_random())?;
    // Tests whether the script itself, and not a function of the engine, reads the property whose getter calls this.
    let script_asks = native(ctx, move |ctx: Ctx<'js>| {
        let asks = ctx.script_or_module_name(1).and_then(|name| name.to_string().ok());
        asks.as_deref() == Some(NAME)
    })?;
    let (on_done, on_failed) = (Rc::clone(state), Rc::clone(state));
    let done = native(ctx, move |json: Text<'js>| on_done.fulfil(&json))?;
    let failed = native(
        ctx,
        move |kind: Text<'js>, name: Text<'js>, message: Text<'js>, code: Text<'js>, stack: Text<'js>| {
            let (kind, name, message, location) =
                (kind.name(), name.name(), message.message(), stack.location());
            let error = if kind == "tool" {
                RunError::ToolError { tool_name: name, message, code: code.name(), location }
            } else {
                on_failed.result_is_faulty.set(kind == "result");
                // The names of limits are the engine's to give.
                let name = if names::is_own(&name) { "Error".to_owned() } else { name };
                RunError::RuntimeError { name, message, location }
            };
            on_failed.settle(Err(error));
        },
    )?;
    let for_english = Rc::clone(state);
    let english =
        native(ctx, move |ctx: Ctx<'js>, kind: i32, a: Text<'js>, b: Text<'js>, options: Vec<Text<'js>>| {
            // The engine's own poll does not see the time that this takes.
            let stop = || for_english.must_stop();
            let options: Vec<String> = options.iter().map(Text::message).collect();
            let answer = match (a.within(LONGEST_COMPARED), b.within(LONGEST_COMPARED)) {
                (Some(a), Some(b)) if !stop() => locale::answer(kind, &a, &b, &options, &stop),
                _ => String::new(),
            };
            if for_english.is_terminated() { Err(throw(&ctx, &Terminated)) } else { Ok(answer) }
        })?;
    let for_question = Rc::clone(state);
    let question =
        native(ctx, move |ctx: Ctx<'js>, name: Text<'js>, deliver: Function<'js>| -> Result<Object<'js>> {
            let over = |terminated| throw(&ctx, &terminated);
            let asked = for_question.ask(MessageKind::GetTool, &name, None, false).map_err(over)?;
            loop {
                let Some(answer) = receive(&ctx, &for_question, Some(asked))? else {
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
        })?;
    let natives = [host, tick, made, returns, now, random, script_asks, done, failed, english, question];
    let exports = prelude.call((Rest(natives.to_vec()),))?;
    Ok((exports, natives.into()))
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
