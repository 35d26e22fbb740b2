//! Values of calls: tools, methods of arrays and promises, and the script's own functions.

use oxc::{
    ast::ast::{CallExpression, Expression, ObjectPropertyKind, StaticMemberExpression},
    span::GetSpan,
};

use super::{
    collector::{CALL_TOOL, Collector, Exposure},
    known::Known,
    literal::{cost, partial},
};
use crate::{
    excerpt::NAME_BYTES,
    plan::{CallSite, Mistake, Origin, Partial},
};

/// Treatment of a call's error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Throwing {
    #[default]
    Yes,
    No,
    Unknown,
}

impl Collector<'_> {
    /// Walks a call. `bare` says that its statement waits for it and nothing between them catches its error.
    pub(super) fn call(&mut self, it: &CallExpression<'_>, bare: bool) -> Known {
        if let Expression::StaticMemberExpression(member) = it.callee.without_parentheses() {
            return self.method(it, member);
        }
        let callee = self.value(&it.callee);
        if it.optional {
            self.doubt(&callee);
        }
        let value = match &callee {
            Known::CallTool => self.tool_call(it, true, bare),
            Known::GetTool => self.tool_call(it, false, bare),
            Known::SafeParallel => self.safe_parallel(it),
            Known::Content => {
                self.calls_tools();
                self.arguments(it);
                Known::Unknown.promise()
            }
            Known::Function(function) => {
                self.arguments(it);
                if function.calls_tools {
                    self.calls_tools();
                }
                function.call()
            }
            _ => {
                self.arguments(it);
                Known::Unknown
            }
        };
        self.called = match callee {
            Known::Function(function) => Some(function),
            _ => None,
        };
        value
    }

    fn tool_call(&mut self, it: &CallExpression<'_>, calls: bool, bare: bool) -> Known {
        self.calls_tools();
        let index = self.site(it, calls, bare);
        if let (true, Some(_), Expression::Identifier(callee)) = (calls, index, &it.callee)
            && callee.name == CALL_TOOL
        {
            self.named.insert(callee.span.start);
        }
        self.arguments(it);
        let options = if calls { CallOptions::of(it) } else { CallOptions::default() };
        match (calls, index, options.throwing) {
            (false, ..) => Known::Unknown,
            (_, Some(index), Throwing::Yes | Throwing::No) if options.paginated.is_some() => {
                Known::Result(Origin::Call(index)).promise()
            }
            _ => Known::Unknown.promise(),
        }
    }

    /// Keeps the call, if its name may be in the text.
    fn site(&mut self, it: &CallExpression<'_>, calls: bool, bare: bool) -> Option<u32> {
        let first = it.arguments.first()?.as_expression()?;
        let name = self.constant(first)?;
        let name = name.as_str().filter(|name| !name.is_empty() && name.len() <= NAME_BYTES)?;
        let bytes = 128 + cost(name);
        if self.room < bytes {
            return None;
        }
        self.room -= bytes;
        let input = calls.then(|| self.input(it));
        let CallOptions { throwing, paginated } =
            if calls { CallOptions::of(it) } else { CallOptions::default() };
        let exposure = match throwing {
            Throwing::Yes if self.tries > 0 => Exposure::Caught,
            Throwing::Yes if bare && self.frames.is_empty() => Exposure::Bare,
            Throwing::Yes => Exposure::Loose,
            Throwing::No | Throwing::Unknown => Exposure::Caught,
        };
        let call = CallSite {
            at: first.span().start,
            name: name.to_owned(),
            input,
            settled: throwing == Throwing::No,
            paginated: paginated == Some(true),
            ends_run: false,
        };
        self.keep_call(call, exposure)
    }

    fn input(&mut self, it: &CallExpression<'_>) -> Partial {
        let spread = it.arguments.iter().take(2).any(|argument| argument.is_spread());
        let input = match it.arguments.get(1).and_then(|argument| argument.as_expression()) {
            _ if spread => return Partial::Hole { optional: false },
            Some(input) if !input.is_undefined() => input,
            _ => return Partial::Object { members: Vec::new(), open: false },
        };
        let mut room = self.room;
        let input = partial(input, self.source, &|it| self.constant(it), &mut room);
        self.room = room;
        input
    }

    fn safe_parallel(&mut self, it: &CallExpression<'_>) -> Known {
        self.calls_tools();
        let arguments = self.arguments(it);
        let plain = match it.arguments.get(1).map(|argument| argument.as_expression()) {
            None => true,
            Some(Some(Expression::ObjectExpression(options))) => options.properties.iter().all(|property| {
                matches!(property, ObjectPropertyKind::ObjectProperty(it)
                    if !it.computed && it.key.static_name().is_some_and(|name| name == "maxConcurrency"))
            }),
            Some(_) => false,
        };
        if !plain {
            // Outcomes may come in place of values.
            self.catches = true;
            return Known::Own.promise();
        }
        arguments.first().map_or(Known::Own, Known::all_called).promise()
    }

    fn method(&mut self, it: &CallExpression<'_>, member: &StaticMemberExpression<'_>) -> Known {
        let name = member.property.name.as_str();
        if let Expression::Identifier(object) = &member.object
            && let Some(value) = self.library(it, object.name.as_str(), name)
        {
            return value;
        }
        let object = self.value(&member.object);
        if member.optional {
            self.doubt(&object);
        }
        let callee = self.property(&object, name, member.property.span.start);
        if it.optional {
            self.doubt(&callee);
        }
        match &object {
            Known::Promise(value) => self.promise_method(it, name, value),
            Known::Result(_) | Known::List(_) | Known::Tuple(_) => self.array_method(it, name, &object),
            _ => {
                // Without knowledge of the object: its method may catch.
                self.catches |= matches!(name, "catch") || (name == "then" && it.arguments.len() > 1);
                self.for_each_async(it, name, &Known::Unknown)
            }
        }
    }

    /// Functions of the library that matter here.
    fn library(&mut self, it: &CallExpression<'_>, object: &str, name: &str) -> Option<Known> {
        let first = |arguments: Vec<Known>| arguments.into_iter().next().unwrap_or(Known::Unknown);
        Some(match (object, name) {
            ("Promise", "all") => first(self.arguments(it)).all_awaited().promise(),
            ("Promise", "allSettled" | "any" | "race") => {
                self.catches = true;
                self.arguments(it);
                Known::Own.promise()
            }
            ("Promise", "resolve") => first(self.arguments(it)).promise(),
            ("Array", "isArray") => {
                if let Known::Result(of) = first(self.arguments(it)) {
                    self.reads.test(of);
                }
                Known::Unknown
            }
            ("Object", "assign") => {
                let target = first(self.arguments(it));
                if let Some(argument) = it.arguments.first().and_then(|argument| argument.as_expression()) {
                    self.added_to(argument, &target);
                }
                target
            }
            ("Object", "hasOwn") => {
                if let Known::Result(of) = first(self.arguments(it)) {
                    self.reads.test(of);
                }
                Known::Unknown
            }
            _ => return None,
        })
    }

    fn promise_method(&mut self, it: &CallExpression<'_>, name: &str, value: &Known) -> Known {
        match name {
            "then" => {
                let result = self.first_callback(it, std::slice::from_ref(value));
                if it.arguments.len() > 1 {
                    self.catches = true;
                    return Known::Unknown.promise();
                }
                result.promise()
            }
            "finally" => {
                self.arguments(it);
                value.clone().promise()
            }
            _ => {
                self.catches |= name == "catch";
                self.arguments(it);
                Known::Unknown.promise()
            }
        }
    }

    /// Walks the arguments, the first as a function that is called with `parameters`. Returns what it returns.
    fn first_callback(&mut self, it: &CallExpression<'_>, parameters: &[Known]) -> Known {
        let mut result = Known::Unknown;
        for (at, argument) in it.arguments.iter().enumerate() {
            match argument.as_expression() {
                Some(function) if at == 0 => {
                    if let Known::Function(function) = self.callback(function, parameters) {
                        if function.calls_tools {
                            self.calls_tools();
                        }
                        result = function.call();
                    }
                }
                _ => {
                    self.argument(argument);
                }
            }
        }
        result
    }

    fn array_method(&mut self, it: &CallExpression<'_>, name: &str, list: &Known) -> Known {
        let takes_function = matches!(
            name,
            "map"
                | "flatMap"
                | "filter"
                | "find"
                | "findLast"
                | "forEach"
                | "some"
                | "every"
                | "findIndex"
                | "findLastIndex"
                | "sort"
                | "toSorted"
                | "reduce"
                | "reduceRight"
        );
        let gives_item = matches!(name, "at" | "pop" | "shift" | "values" | "entries" | "flat");
        if matches!(name, "push" | "unshift" | "splice" | "fill") {
            self.filled(list);
        }
        if !takes_function && !gives_item {
            self.arguments(it);
            return match name {
                "slice" | "reverse" | "toReversed" => list.clone(),
                _ => Known::Unknown,
            };
        }
        let item = match takes_function {
            true => self.each(list, None, it.span.start),
            false => self.element(list, None, it.span.start),
        };
        match name {
            "map" => self.first_callback(it, &[item]).list(),
            "flatMap" => {
                let inner = self.first_callback(it, &[item]);
                self.flattened(&inner, it.span.start)
            }
            "filter" => {
                self.first_callback(it, &[item]);
                list.clone()
            }
            "sort" | "toSorted" => {
                self.first_callback(it, &[item.clone(), item]);
                list.clone()
            }
            "find" | "findLast" => {
                self.first_callback(it, std::slice::from_ref(&item));
                item
            }
            "reduce" | "reduceRight" => {
                let start = match it.arguments.get(1).and_then(|argument| argument.as_expression()) {
                    Some(
                        Expression::ObjectExpression(_)
                        | Expression::ArrayExpression(_)
                        | Expression::NewExpression(_),
                    ) => Known::Own,
                    _ => Known::Unknown,
                };
                self.first_callback(it, &[start, item]);
                Known::Unknown
            }
            "at" | "pop" | "shift" => {
                self.arguments(it);
                item
            }
            "values" => {
                self.arguments(it);
                item.list()
            }
            "entries" => {
                self.arguments(it);
                Known::Tuple([Known::Unknown, item].into()).list()
            }
            "flat" => {
                self.arguments(it);
                self.flattened(&item, it.span.start)
            }
            name => self.for_each_async(it, name, &item),
        }
    }

    /// The list of the elements of `element`, if that is an array for certain: other values stay as they are when their list is flattened.
    fn flattened(&mut self, element: &Known, at: u32) -> Known {
        match element {
            Known::List(_) | Known::Tuple(_) => self.element(element, None, at).list(),
            _ => Known::Own,
        }
    }

    /// Notes that values of the script's own are put into `list`: they may have other properties.
    pub(super) fn filled(&mut self, list: &Known) {
        match list {
            Known::Result(origin) => self.reads.change(*origin),
            Known::List(item) => self.filled_item(item),
            Known::Tuple(items) => items.iter().for_each(|item| self.filled_item(item)),
            _ => {}
        }
    }

    fn filled_item(&mut self, item: &Known) {
        if let Known::Result(origin) = item {
            self.reads.change(*origin);
        }
    }

    /// A method that calls its function with `item` and does not keep what it returns.
    fn for_each_async(&mut self, it: &CallExpression<'_>, name: &str, item: &Known) -> Known {
        let Some(function) = it.arguments.first().and_then(|argument| argument.as_expression()) else {
            self.arguments(it);
            return Known::Unknown;
        };
        let function = self.callback(function, std::slice::from_ref(item));
        it.arguments.iter().skip(1).for_each(|argument| {
            self.argument(argument);
        });
        if let Known::Function(function) = function
            && function.calls_tools
        {
            self.calls_tools();
            if function.is_async && name == "forEach" {
                self.note(it.span.start, Mistake::ForEachAsync, "");
            }
        }
        Known::Unknown
    }
}

/// The third argument of a call.
#[derive(Debug, Clone, Copy)]
struct CallOptions {
    throwing: Throwing,
    /// `paginate` is there; none if it may be.
    paginated: Option<bool>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { throwing: Throwing::Yes, paginated: Some(false) }
    }
}

impl CallOptions {
    const UNKNOWN: Self = Self { throwing: Throwing::Unknown, paginated: None };

    fn of(it: &CallExpression<'_>) -> Self {
        if it.arguments.iter().take(3).any(|argument| argument.is_spread()) {
            return Self::UNKNOWN;
        }
        let mut found = Self::default();
        let Some(options) = it.arguments.get(2).and_then(|argument| argument.as_expression()) else {
            return found;
        };
        let Expression::ObjectExpression(options) = options.without_parentheses() else {
            return if options.is_null_or_undefined() { found } else { Self::UNKNOWN };
        };
        for property in &options.properties {
            let ObjectPropertyKind::ObjectProperty(property) = property else { return Self::UNKNOWN };
            match property.key.static_name() {
                Some(name) if !property.computed && name == "throwOnError" => {
                    found.throwing = match &property.value {
                        Expression::BooleanLiteral(it) if !it.value => Throwing::No,
                        Expression::BooleanLiteral(_) => Throwing::Yes,
                        _ => Throwing::Unknown,
                    };
                }
                Some(name) if !property.computed && name == "paginate" => {
                    let is_there =
                        matches!(property.value.without_parentheses(), Expression::ObjectExpression(_));
                    found.paginated = is_there.then_some(true);
                }
                Some(_) if !property.computed => {}
                _ => return Self::UNKNOWN,
            }
        }
        found
    }
}
