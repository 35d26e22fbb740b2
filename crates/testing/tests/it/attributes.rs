//! The attributes: cases, `only`, hooks of modules.

use gatewright_testing::{Mcp, TestContext, expect, json, test_use};

use crate::{fixtures::outcome_of, support::Everything};

test_use! { app: || Everything }

mod cases {
    use std::sync::Arc;

    use super::*;

    /// A test for each case: `cases::says_what_it_hears::hello_5` and so on.
    #[gatewright_testing::test(cases = [("hello", 5), ("née", 3), ("type", 4)])]
    async fn says_what_it_hears(mcp: Mcp, text: &str, length: usize) {
        let result = mcp.tools().call("echo", json!({"text": text})).await.unwrap();
        expect(&result).at("structuredContent.text").to_have_length(length);
    }

    #[gatewright_testing::test(cases = ["fail", "nobody"])]
    async fn fails(
        mcp: Mcp,
        context: Arc<TestContext>,
        tool: &str,
    ) -> Result<(), gatewright_testing::BoxError> {
        assert!(context.name().ends_with(&format!("cases::fails::{tool}")), "{}", context.name());
        expect(&mcp.tools().call(tool, ()).await?).to_be_error();
        Ok(())
    }

    #[gatewright_testing::test(cases = [1, 2])]
    async fn needs_no_fixture(number: u8) {
        assert!(number < 3);
    }

    #[gatewright_testing::test(cases = (0..3).map(|n| (n, n * n)))]
    async fn takes_any_iterator(_mcp: Mcp, (number, square): (i32, i32)) {
        assert_eq!(number * number, square);
    }

    #[gatewright_testing::test(cases = 0..3, skip = "run by a test of the same file")]
    async fn some_fail(number: i32) {
        assert_eq!(number, 1);
    }

    #[gatewright_testing::test(cases = Vec::<u8>::new(), skip = "run by a test of the same file")]
    async fn none(_number: u8) {}
}

#[tokio::test]
async fn each_case_runs_even_if_another_failed_and_none_at_all_is_a_failure() {
    let (passed, said) = outcome_of("attributes::cases::some_fail").await;
    let told =
        "2 of 3 cases failed:\n  it::attributes::cases::some_fail::0\n  it::attributes::cases::some_fail::2";
    assert!(!passed && said.contains(told), "{said}");
    let (passed, said) = outcome_of("attributes::cases::none").await;
    assert!(!passed && said.contains("has no cases"), "{said}");
}

mod only {
    #[gatewright_testing::test(only, skip = "run by `only_leaves_out_the_rest_of_its_module`")]
    async fn chosen() {
        eprintln!("chosen ran");
    }

    #[gatewright_testing::test(skip = "run by `only_leaves_out_the_rest_of_its_module`")]
    async fn another() {
        panic!("another ran");
    }
}

#[tokio::test]
async fn only_leaves_out_the_rest_of_its_module_and_is_refused_in_ci() {
    let run = async |ci: Option<&str>| {
        let mut run = tokio::process::Command::new(std::env::current_exe().unwrap());
        run.args(["--ignored", "attributes::only::", "--nocapture", "--test-threads", "1"]).env_remove("CI");
        let output = run.envs(ci.map(|value| ("CI", value))).output().await.unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let left_out = "it::attributes::only::another is left out: it::attributes::only::chosen has `only`";
    for not_ci in [None, Some("false"), Some("")] {
        let (passed, said) = run(not_ci).await;
        assert!(passed && said.contains("chosen ran") && said.contains(left_out), "{said}");
    }
    let (passed, said) = run(Some("true")).await;
    assert!(!passed && said.contains("remove it (the environment variable CI is set)"), "{said}");
    assert!(said.contains("another ran"), "in CI nothing is left out: {said}");
}

mod hooks {
    use gatewright_testing::{BoxError, after_all, after_each, before_all, before_each};

    #[before_all]
    async fn first() {
        eprintln!("hook: first");
    }

    #[before_each]
    async fn before() -> Result<(), BoxError> {
        eprintln!("hook: before");
        Ok(())
    }

    #[after_each]
    async fn after() {
        eprintln!("hook: after");
    }

    #[after_all]
    async fn last() {
        eprintln!("hook: last");
    }

    #[gatewright_testing::test(skip = "run by `hooks_of_a_module_surround_its_tests_and_those_in_it`")]
    async fn one() {
        eprintln!("hook: one");
    }

    mod inner {
        use gatewright_testing::{after_each, before_all};

        #[before_all]
        async fn first() {
            eprintln!("hook: inner first");
        }

        #[after_each]
        async fn after() {
            eprintln!("hook: inner after");
        }

        #[gatewright_testing::test(skip = "run by `hooks_of_a_module_surround_its_tests_and_those_in_it`")]
        async fn two() {
            eprintln!("hook: two");
            panic!("hooks run all the same");
        }
    }
}

#[tokio::test]
async fn hooks_of_a_module_surround_its_tests_and_those_in_it() {
    let mut run = tokio::process::Command::new(std::env::current_exe().unwrap());
    run.args(["--ignored", "attributes::hooks::", "--nocapture", "--test-threads", "1"]);
    let output = run.output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let hooks: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("hook: ")).collect();
    let of_inner = ["first", "inner first", "before", "two", "inner after", "after"];
    let of_outer = ["before", "one", "after", "last"];
    assert_eq!(hooks, [&of_inner[..], &of_outer].concat(), "{said}");
}

mod failing_hook {
    #[gatewright_testing::before_all]
    async fn fails() -> Result<(), gatewright_testing::BoxError> {
        Err("the database is down".into())
    }

    #[gatewright_testing::test(skip = "run by `a_failed_hook_fails_the_test`")]
    async fn one() {}
}

#[tokio::test]
async fn a_failed_hook_fails_the_test() {
    let (passed, said) = outcome_of("attributes::failing_hook::one").await;
    assert!(!passed && said.contains("it::attributes::failing_hook::one: the database is down"), "{said}");
}
