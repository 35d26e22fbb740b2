//! Limits on policies, which keep reading and evaluating them within the stack: on texts before they are parsed, and on conditions.

use crate::cedar::{Expr, ExprKind};

/// Longest file of policies, in bytes.
pub(crate) const LONGEST: usize = 1024 * 1024;
/// Deepest nesting of brackets and `if` in a policy. The parser goes about ten functions deeper for each.
const DEEPEST_NESTING: usize = 64;
/// Most operators, keywords such as `in`, and opening brackets of one policy.
const MOST_OPERATORS: usize = 10_000;
/// Deepest condition: `a || b || c` is three deep.
const DEEPEST_CONDITION: usize = 1_000;

/// Stack of the thread that reads and checks policies, for the limits above in a build without optimisation.
const READING_STACK: usize = 128 * 1024 * 1024;
/// Stack that evaluating a condition takes, and the part of it for each level.
const EVALUATION_STACK: usize = 256 * 1024;
const LEVEL_STACK: usize = if cfg!(debug_assertions) { 128 * 1024 } else { 16 * 1024 };

/// Does `work` on a thread with the stack that reading policies needs. `None` if there is no such thread.
pub(crate) fn with_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("policies".to_owned()).stack_size(READING_STACK);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// Evaluates something `depth` levels deep with the stack that it needs.
pub(crate) fn evaluating<T>(depth: usize, evaluate: impl FnOnce() -> T) -> T {
    let stack = EVALUATION_STACK + LEVEL_STACK * depth;
    stacker::maybe_grow(stack, stack, evaluate)
}

/// The first place of a text that no policy may have, and why.
pub(crate) fn excess(text: &str) -> Option<(usize, String)> {
    if text.len() > LONGEST {
        return Some((0, format!("the file has more than {LONGEST} bytes; split it")));
    }
    // The `if`s of each open bracket, since its last comma.
    let (mut open, mut nesting, mut operators) = (vec![0_usize], 0, 0);
    let (bytes, mut at) = (text.as_bytes(), 0);
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'/' if bytes.get(at) == Some(&b'/') => {
                at += bytes[at..].iter().take_while(|byte| !matches!(byte, b'\n' | b'\r')).count();
            }
            b'(' | b'[' | b'{' => {
                open.push(0);
                nesting += 1;
                operators += 1;
            }
            b')' | b']' | b'}' if open.len() > 1 => nesting -= 1 + open.pop().unwrap_or_default(),
            b',' | b';' => {
                if let Some(ifs) = open.last_mut() {
                    nesting -= std::mem::take(ifs);
                }
                if byte == b';' && open.len() == 1 {
                    operators = 0;
                }
            }
            b'+' | b'-' | b'*' | b'.' | b'!' => operators += 1,
            b'&' | b'|' | b'=' | b'<' | b'>' => {
                operators += 1;
                at += usize::from(matches!(bytes.get(at), Some(b'&' | b'|' | b'=')));
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
                    .count();
                match &bytes[start..at] {
                    b"if" => {
                        *open.last_mut()? += 1;
                        nesting += 1;
                    }
                    b"in" | b"has" | b"like" | b"is" => operators += 1,
                    _ => {}
                }
            }
            _ => {}
        }
        if nesting > DEEPEST_NESTING {
            let problem =
                format!("the policy nests brackets and `if` more than {DEEPEST_NESTING} deep; split it");
            return Some((start, problem));
        }
        if operators > MOST_OPERATORS {
            let problem =
                format!("the policy has more than {MOST_OPERATORS} operators and brackets; split it");
            return Some((start, problem));
        }
    }
    None
}

/// The place after a string that has begun.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// Levels of a condition.
///
/// # Errors
/// There are more than conditions may have.
pub(crate) fn depth<'e>(condition: &'e Expr) -> Result<usize, String> {
    let (mut deepest, mut left) = (0, vec![(condition, 1_usize)]);
    while let Some((expr, depth)) = left.pop() {
        if depth > DEEPEST_CONDITION {
            return Err(format!(
                "the condition is more than {DEEPEST_CONDITION} operators deep; split the policy, or compare with a set, as in \
                 `[\"a\", \"b\"].contains(context.arguments.to)`"
            ));
        }
        deepest = deepest.max(depth);
        let mut below = |expr: &'e Expr| left.push((expr, depth + 1));
        match expr.expr_kind() {
            ExprKind::Lit(_) | ExprKind::Var(_) | ExprKind::Slot(_) | ExprKind::Unknown(_) => {}
            ExprKind::If { test_expr, then_expr, else_expr } => {
                [test_expr, then_expr, else_expr].into_iter().for_each(|part| below(part));
            }
            ExprKind::And { left, right } | ExprKind::Or { left, right } => {
                [left, right].into_iter().for_each(|part| below(part));
            }
            ExprKind::UnaryApp { arg, .. } => below(arg),
            ExprKind::BinaryApp { arg1, arg2, .. } => {
                [arg1, arg2].into_iter().for_each(|part| below(part));
            }
            ExprKind::ExtensionFunctionApp { args, .. } => args.iter().for_each(below),
            ExprKind::GetAttr { expr, .. }
            | ExprKind::HasAttr { expr, .. }
            | ExprKind::ExtHasAttr { expr, .. }
            | ExprKind::Like { expr, .. }
            | ExprKind::Is { expr, .. } => below(expr),
            ExprKind::Set(items) => items.iter().for_each(below),
            ExprKind::Record(members) => members.values().for_each(below),
        }
    }
    Ok(deepest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_brackets_that_are_open_and_operators_of_one_policy_count() {
        let fits = |text: String| assert_eq!(excess(&text), None, "{text:.80}");
        fits(format!("when {{ \"{}\\\"(\" }}", "(".repeat(100)));
        fits(format!("// {}\nwhen", "(".repeat(100)));
        fits("(a)[b]{c}".repeat(100));
        fits(format!("[{}]", "if a then b else c, ".repeat(1_000)));
        fits("a.b && c || d.e == f.g + 1;".repeat(10_000));
        fits(")".repeat(100) + &"(".repeat(DEEPEST_NESTING));
        for text in [
            "(".repeat(DEEPEST_NESTING + 1),
            "if a then b else ".repeat(DEEPEST_NESTING + 1),
            ".a".repeat(MOST_OPERATORS + 1),
            "&& a".repeat(MOST_OPERATORS + 1),
            "a in ".repeat(MOST_OPERATORS + 1),
            "a[0]".repeat(MOST_OPERATORS + 1),
        ] {
            assert_eq!(
                excess(&format!("\n{text}")).map(|(at, _)| at < text.len() + 1),
                Some(true),
                "{text:.80}"
            );
        }
    }
}
