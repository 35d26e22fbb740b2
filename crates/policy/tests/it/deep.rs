//! Policies that are nested or chained without end.

use serde_json::json;

use gatewright_policy::{Catalog, CedarPolicies, PolicyFile};

use crate::decide::{Bank, caller};

/// A name, the size that is within the limits, and the condition of a size.
type Shape = (&'static str, usize, fn(usize) -> String);

/// Conditions that are true: how far they go within the limits, and `n` times as far.
const SHAPES: [Shape; 10] = [
    ("parentheses", 62, |n| format!("{}true{}", "(".repeat(n), ")".repeat(n))),
    ("sets", 62, |n| format!("{}{} != [1]", "[".repeat(n), "]".repeat(n))),
    ("records", 62, |n| format!("{}1{} != {{a: 1}}", "{a:".repeat(n), "}".repeat(n))),
    ("if", 62, |n| format!("{}true", "if false then false else ".repeat(n))),
    ("sums", 990, |n| format!("{}1 > 0", "1+".repeat(n))),
    ("alternatives", 990, |n| format!("{}true", "context has b || ".repeat(n))),
    ("conjunctions", 990, |n| format!("{}true", "principal == principal && ".repeat(n))),
    ("members", 990, |n| format!("!(context has a && context{})", ".a".repeat(n))),
    ("indices", 990, |n| format!("!(context has a && context{})", "[\"a\"]".repeat(n))),
    ("conditions", 990, |n| format!("true {}", "} when { principal == principal ".repeat(n))),
];

fn policy(condition: &str) -> String {
    format!("\npermit(principal,action,resource) when {{ {condition} }};")
}

#[tokio::test]
async fn conditions_within_the_limits_are_decided_on_with_the_stack_of_a_worker() {
    for (shape, within, condition) in SHAPES {
        let bank = Bank::new(&policy(&condition(within))).await;
        let decided = bank.decide(&caller("ada", None, ""), "close", json!({"count": 1}));
        assert_eq!(decided, "permit", "{shape}");
        let items = bank.registry.operator_snapshot();
        for catalog in [None, Some(&Catalog::new(&items))] {
            let problems = bank.policies.check(catalog);
            assert!(problems.iter().all(|one| !one.problem.contains("recursion")), "{shape}: {problems:?}");
        }
    }
}

#[test]
fn what_exceeds_the_limits_is_a_problem_with_a_line() {
    for (shape, within, condition) in SHAPES {
        for times in [within + 16, 3 * within, 5_000, 20_000] {
            let file = PolicyFile { name: "p.cedar".to_owned(), text: policy(&condition(times)) };
            let problems = CedarPolicies::read(vec![file]).unwrap_err();
            assert_eq!((problems.len(), problems[0].line), (1, 2), "{shape} {times}: {problems:?}");
            assert!(problems[0].problem.contains("more than"), "{shape} {times}: {}", problems[0]);
        }
    }
    for text in ["!".repeat(100_000), "-".repeat(100_000), "(".repeat(100_000), "a in ".repeat(100_000)] {
        let file = PolicyFile { name: "p.cedar".to_owned(), text: policy(&text) };
        assert!(CedarPolicies::read(vec![file]).is_err(), "{text:.9}");
    }
}
