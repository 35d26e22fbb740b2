//! Text becomes bytecode here and nowhere else: the realms that run scripts have no compiler in them.

use std::ffi::CString;

use rquickjs::{Context, Ctx, Result, Runtime, context::intrinsic};

use crate::worker::harden::{self, Bytecode};

/// Stack of the compiler, in bytes. The validator bounds how deep a text may nest.
const STACK: usize = 4 * 1024 * 1024;

/// A runtime that compiles and never runs anything.
pub(crate) struct Compiler {
    context: Context,
    prelude: Bytecode,
}

/// The engine's own message about a text it cannot compile.
pub(super) struct Uncompilable(pub(super) String);

impl Compiler {
    pub(crate) fn new() -> Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK);
        let context = Context::custom::<(intrinsic::Eval, intrinsic::RegExpCompiler)>(&runtime)?;
        let prelude = context.with(|ctx| compile(&ctx, include_str!("prelude.js"), "prelude", true))?;
        Ok(Self { context, prelude })
    }

    /// The code every realm begins with.
    pub(super) fn prelude(&self) -> &Bytecode {
        &self.prelude
    }

    /// Compiles a script; places in its errors name it `name`.
    pub(super) fn script(&self, text: &str, name: &str) -> std::result::Result<Bytecode, Uncompilable> {
        self.context.with(|ctx| {
            compile(&ctx, text, name, false).map_err(|_| {
                let thrown = ctx.catch();
                let message = thrown.as_exception().and_then(rquickjs::Exception::message);
                Uncompilable(message.unwrap_or_else(|| "the engine cannot compile the script".to_owned()))
            })
        })
    }
}

fn compile(ctx: &Ctx<'_>, text: &str, name: &str, strip: bool) -> Result<Bytecode> {
    harden::compile(ctx, &CString::new(text)?, &CString::new(name)?, strip)
}
