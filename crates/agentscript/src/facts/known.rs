//! Values as far as the walk knows them.

use std::rc::Rc;

use serde_json::Value;

use crate::plan::Origin;

/// A value of the script. Cheap to copy, whatever its parts are; parts may be shared, so nothing looks at all of them.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// Any value.
    Unknown,
    /// A value that the script made, which no tool returned.
    Own,
    /// `callTool`.
    CallTool,
    /// `getTool`.
    GetTool,
    /// `__safe_parallel`.
    SafeParallel,
    /// `readResource`, `listResources` or `getPrompt`.
    Content,
    /// A value that the text spells out.
    Scalar(Rc<Value>),
    /// A tool's result or a part of one.
    Result(Origin),
    /// A promise of a value.
    Promise(Rc<Known>),
    /// An array of such values.
    List(Rc<Known>),
    /// An array of these values.
    Tuple(Rc<[Known]>),
    /// A function.
    Function(Rc<Function>),
}

/// A function of the script.
#[derive(Debug, Clone)]
pub(super) struct Function {
    /// Value of a call, without the promise of an async function.
    pub(super) value: Known,
    pub(super) is_async: bool,
    /// It calls tools.
    pub(super) calls_tools: bool,
    /// Place and name of the value that it seems to have meant to return.
    pub(super) unreturned: Option<(u32, Rc<str>)>,
}

impl Function {
    /// The value that a call has.
    pub(super) fn call(&self) -> Known {
        match self.is_async {
            true => Known::Promise(Rc::new(self.value.clone().awaited())),
            false => self.value.clone(),
        }
    }
}

impl Known {
    /// The value after `await`.
    pub(super) fn awaited(self) -> Self {
        match self {
            Self::Promise(value) => (*value).clone(),
            other => other,
        }
    }

    pub(super) fn promise(self) -> Self {
        Self::Promise(Rc::new(self.awaited()))
    }

    pub(super) fn list(self) -> Self {
        match self {
            Self::Unknown | Self::Own => Self::Own,
            item => Self::List(Rc::new(item)),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    /// The elements after `await`, as `Promise.all` gives them.
    pub(super) fn all_awaited(&self) -> Self {
        match self {
            Self::List(item) => (**item).clone().awaited().list(),
            Self::Tuple(items) => Self::Tuple(items.iter().map(|item| item.clone().awaited()).collect()),
            Self::Result(_) => self.clone(),
            _ => Self::Own,
        }
    }

    /// The values of calls of the elements, as `__safe_parallel` gives them.
    pub(super) fn all_called(&self) -> Self {
        let called = |item: &Self| match item {
            Self::Function(function) => function.call().awaited(),
            _ => Self::Unknown,
        };
        match self {
            Self::List(item) => called(item).list(),
            Self::Tuple(items) => Self::Tuple(items.iter().map(called).collect()),
            _ => Self::Own,
        }
    }
}
