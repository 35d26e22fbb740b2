//! Builds a realm: a runtime of its own, chosen intrinsics, the native door, everything frozen.

use std::{cell::RefCell, rc::Rc};

use rquickjs::{
    Context, Ctx, Function, Object, Persistent, Result, Runtime, Value,
    context::{EvalOptions, intrinsic},
};

use super::state::{Doom, Refused, State};
use crate::{
    protocol::Kind,
    worker::{
        Link,
        harden::{Heap, HeapAllocator},
    },
};

/// What a realm is made of. No `Proxy`, no `WeakRef`, no `Performance`; `Eval` only compiles our own text and the script,
/// nothing in the realm leads to it.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// Stack of the engine while a realm is built.
const BUILD_STACK: usize = 256 * 1024;

/// A fresh realm that has run nothing yet.
pub(crate) struct Realm {
    // Dropped first: a value must not outlive its runtime.
    pub(super) exports: Option<Persistent<Object<'static>>>,
    pub(super) context: Context,
    pub(super) runtime: Runtime,
    pub(super) state: Rc<State>,
}

impl Realm {
    /// Builds a realm whose host calls go through `link`.
    pub(crate) fn new(link: Rc<RefCell<Link>>) -> Result<Self> {
        let heap = Rc::new(Heap::default());
        let runtime = Runtime::new_with_alloc(HeapAllocator::new(Rc::clone(&heap)))?;
        runtime.set_max_stack_size(BUILD_STACK);
        let context = Context::custom::<Intrinsics>(&runtime)?;
        let state = Rc::new(State::new(link, heap));
        let exports =
            context.with(|ctx| build(&ctx, &state).map(|exports| Persistent::save(&ctx, exports)))?;
        let poll = Rc::clone(&state);
        runtime.set_interrupt_handler(Some(Box::new(move || poll.must_stop())));
        Ok(Self { exports: Some(exports), context, runtime, state })
    }
}

fn build<'js>(ctx: &Ctx<'js>, state: &Rc<State>) -> Result<Object<'js>> {
    let prelude: Function<'js> = eval(ctx, include_str!("prelude.js"), "prelude")?;
    let (for_host, for_tick, for_now, for_random) =
        (Rc::clone(state), Rc::clone(state), Rc::clone(state), Rc::clone(state));
    let host = Function::new(ctx.clone(), move |ctx: Ctx<'js>, kind: i32, name: String, body: String| {
        let sent = match kind {
            0 => for_host.ask(Kind::Call, &name, if body.is_empty() { "{}" } else { &body }),
            1 => for_host.ask(Kind::GetTool, &name, ""),
            2 => for_host.log(&name).map(|()| 0),
            _ => Err(for_host.illegal(&name)),
        };
        sent.map_err(|refused| throw(&ctx, &refused))
    })?;
    let tick = Function::new(ctx.clone(), move |ctx: Ctx<'js>| {
        for_tick.tick().map_err(|refused| throw(&ctx, &refused))
    })?;
    let now = Function::new(ctx.clone(), move || for_now.now_ms.get().floor())?;
    let random = Function::new(ctx.clone(), move || for_random.next_random())?;
    prelude.call((host, tick, now, random))
}

/// A run that must end throws; what the script makes of the exception no longer matters.
fn throw(ctx: &Ctx<'_>, refused: &Refused) -> rquickjs::Error {
    match rquickjs::String::from_str(ctx.clone(), refused.0) {
        Ok(text) => ctx.throw(text.into_value()),
        Err(error) => error,
    }
}

/// Evaluates text of ours, or a script already validated, as strict code.
pub(super) fn eval<'js, V: rquickjs::FromJs<'js>>(ctx: &Ctx<'js>, code: &str, name: &str) -> Result<V> {
    let mut options = EvalOptions::default();
    options.global = true;
    options.strict = true;
    options.backtrace_barrier = true;
    options.filename = Some(name.to_owned());
    ctx.eval_with_options(code, options)
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
        let heap = Rc::new(Heap::default());
        let runtime = Runtime::new_with_alloc(HeapAllocator::new(Rc::clone(&heap))).unwrap();
        let context = Context::custom::<Intrinsics>(&runtime).unwrap();
        let state = Rc::new(State::new(link, heap));
        context.with(|ctx| {
            if let Err(error) = build(&ctx, &state) {
                let thrown = ctx.catch();
                let stack: String = thrown.as_object().unwrap().get("stack").unwrap();
                panic!("{error}: {:?} {stack}", thrown.as_exception().and_then(|e| e.message()));
            }
        });
    }
}
