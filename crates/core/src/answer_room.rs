//! The memory that a caller has for an answer once it is parsed.

use std::{fmt, sync::Arc};

use rmcp::{RoleServer, service::RequestContext};

use crate::FreeMemory;

/// Room for what is reserved, until it is dropped.
pub type Reserved = Box<dyn Send + Sync>;

/// Extension of a call's context, or of the HTTP request that it came with: the memory that its answer may take once it is parsed.
#[derive(Clone)]
pub struct AnswerRoom(Arc<dyn Fn(u64) -> Result<Reserved, String> + Send + Sync>);

impl AnswerRoom {
    /// `reserve` takes a number of bytes, or returns why there is no room for them.
    pub fn new(reserve: impl Fn(u64) -> Result<Reserved, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reserve))
    }

    /// The room of a call: that of the script which makes it, or else that of its HTTP request.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let of_script = context.extensions.get::<Self>();
        let of_http = || context.extensions.get::<http::request::Parts>()?.extensions.get::<Self>();
        of_script.or_else(of_http).cloned()
    }

    /// Takes `bytes`.
    ///
    /// # Errors
    /// There is no room for them, or the machine or container has not as much memory left.
    pub fn reserve(&self, bytes: u64) -> Result<Reserved, String> {
        if FreeMemory::of_system().has(bytes) { (self.0)(bytes) } else { Err(no_memory_left(bytes)) }
    }
}

fn no_memory_left(bytes: u64) -> String {
    format!(
        "the tool answered, and its answer was dropped: it would take {bytes} bytes of memory, and the machine or container of the gateway has \
         not as much left. What was asked may have been done. Make fewer calls at a time, and ask for less at once"
    )
}

impl fmt::Debug for AnswerRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerRoom")
    }
}
