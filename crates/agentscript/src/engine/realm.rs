//! Builds a realm: a runtime of its own, chosen intrinsics, the native door, everything frozen.

use std::{cell::RefCell, rc::Rc};

use rquickjs::{
    Context, Ctx, Function, Object, Persistent, Result, Runtime, Value, context::intrinsic, function::Rest,
};

use super::{
    compile::Compiler,
    run::{Ending, location},
    state::{Doom, Refused, State},
};
use crate::{
    protocol::Kind,
    worker::{
        Link, harden,
        heap::{Heap, HeapAllocator},
    },
};

/// What a realm is made of. No `Eval`: `eval` and every function constructor lead nowhere. No `Proxy`, `WeakRef`, `Performance`.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// Name of the script in positions.
pub(super) const NAME: &str = "script";

/// A realm under construction holds no garbage worth looking for.
const NO_GC: usize = 64 * 1024 * 1024;

/// Stack of the engine while a realm is built.
const BUILD_STACK: usize = 256 * 1024;

/// A realm that has run nothing yet, or was put back to that.
pub(crate) struct Realm {
    // Dropped first: a value must not outlive its runtime.
    pub(super) exports: Persistent<Object<'static>>,
    /// The native functions: held here, so that no script can make the engine let go of one.
    _natives: Vec<Persistent<Function<'static>>>,
    pub(super) context: Context,
    pub(super) runtime: Runtime,
    pub(super) state: Rc<State>,
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
        let state = Rc::new(State::new(link, Rc::clone(&heap)));
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

    /// Makes the realm one that has run nothing.
    pub(crate) fn reset(&mut self) {
        harden::restore(&self.heap);
    }
}

type Built<'js> = (Object<'js>, Vec<Function<'js>>);

fn build<'js>(ctx: &Ctx<'js>, state: &Rc<State>, compiler: &Compiler) -> Result<Built<'js>> {
    let prelude: Function<'js> = harden::evaluate(ctx, compiler.prelude())?.get()?;
    let (for_host, for_tick, for_now, for_random) =
        (Rc::clone(state), Rc::clone(state), Rc::clone(state), Rc::clone(state));
    let host = Function::new(ctx.clone(), move |ctx: Ctx<'js>, kind: i32, name: String, body: String| {
        let sent = match kind {
            0 | 4 => for_host.ask(Kind::Call, &name, if body.is_empty() { "{}" } else { &body }, kind == 4),
            1 => for_host.ask(Kind::GetTool, &name, "", false),
            2 => for_host.log(&name).map(|()| 0),
            _ => Err(for_host.illegal(&name)),
        };
        sent.map_err(|refused| throw(&ctx, &refused))
    })?;
    let tick = Function::new(ctx.clone(), move |ctx: Ctx<'js>, texts: Rest<Value<'js>>| {
        for text in texts.iter() {
            for_tick.charge_text(harden::text_len(text));
        }
        for_tick.tick().map_err(|refused| throw(&ctx, &refused))
    })?;
    let now = Function::new(ctx.clone(), move || for_now.now_ms.get().floor())?;
    let random = Function::new(ctx.clone(), move || for_random.next_random())?;
    let for_species = Rc::clone(state);
    // `undefined` for the engine's own functions; a script that asks is at its end.
    let species = Function::new(ctx.clone(), move |ctx: Ctx<'js>| {
        let asks = ctx.script_or_module_name(0).and_then(|name| name.to_string().ok());
        if asks.as_deref() == Some(NAME) {
            Err(throw(&ctx, &for_species.illegal("constructor")))
        } else {
            Ok(())
        }
    })?;
    let (on_done, on_failed) = (Rc::clone(state), Rc::clone(state));
    let done = Function::new(ctx.clone(), move |json: String| on_done.settle(Ending::Ok, json))?;
    let failed = Function::new(
        ctx.clone(),
        move |kind: String, name: String, message: String, code: String, stack: String| {
            let ending = match kind.as_str() {
                "tool" => Ending::Tool { tool_name: name, message, code },
                _ => Ending::Runtime { name, message, location: location(&stack) },
            };
            on_failed.settle(ending, String::new());
        },
    )?;
    let natives = [host, tick, now, random, species, done, failed];
    let [host, tick, now, random, species, done, failed] = natives.clone();
    let exports = prelude.call((host, tick, now, random, species, done, failed))?;
    Ok((exports, natives.into()))
}

/// A run that must end throws; what the script makes of the exception no longer matters.
fn throw(ctx: &Ctx<'_>, refused: &Refused) -> rquickjs::Error {
    match rquickjs::String::from_str(ctx.clone(), refused.0) {
        Ok(text) => ctx.throw(text.into_value()),
        Err(error) => error,
    }
}

/// What was thrown, as an ending's doom when memory ran out while building arguments.
pub(super) fn thrown<'js>(ctx: &Ctx<'js>, state: &State, error: &rquickjs::Error) -> Option<Value<'js>> {
    match error {
        rquickjs::Error::Exception => Some(ctx.catch()),
        rquickjs::Error::Allocation => {
            state.end(Doom::Memory);
            None
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_builds() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let link = Rc::new(RefCell::new(Link::new(ours, 1024)));
        let heap = Rc::new(Heap::new());
        let runtime = Runtime::new_with_alloc(HeapAllocator::new(Rc::clone(&heap))).unwrap();
        let context = Context::custom::<Intrinsics>(&runtime).unwrap();
        let state = Rc::new(State::new(link, heap));
        context.with(|ctx| {
            if let Err(error) = build(&ctx, &state, &Compiler::new().unwrap()) {
                let thrown = ctx.catch();
                let stack: String = thrown.as_object().unwrap().get("stack").unwrap();
                panic!("{error}: {:?} {stack}", thrown.as_exception().and_then(|e| e.message()));
            }
        });
    }
}
