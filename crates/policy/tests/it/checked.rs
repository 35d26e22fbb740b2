//! Problems of policies that show without a request.

use gatewright_policy::Catalog;

use super::decide::Bank;

#[tokio::test]
async fn comparisons_that_are_never_true_together_are_found() {
    for (head, condition, attribute) in [
        (
            "resource is Tool",
            "resource.name == \"bank:close\" && \"bank:balance\" == resource.name",
            "resource.name",
        ),
        ("resource == Tool::\"bank:close\"", "resource.name == \"bank:balance\"", "resource.name"),
        (
            "resource in App::\"bank\"",
            "principal.subject == \"a\" && principal.subject == \"b\"",
            "principal.subject",
        ),
        ("resource", "context.hour == 1 && (context.calls == 2 && context.hour == 3)", "context.hour"),
        (
            "resource",
            "[\"a\", \"b\"].contains(principal.subject) && principal.subject == \"c\"",
            "principal.subject",
        ),
        (
            "resource",
            "[1, 2].contains(context.hour) && [2, 3].contains(context.hour) && context.hour == 1",
            "context.hour",
        ),
        (
            "resource",
            "context.hour == 1 && (context.hour == 2 || (context.hour == 3 && context.calls == 1))",
            "context.hour",
        ),
        ("resource is Tool", "resource.readOnly == true && resource.readOnly == false", "resource.readOnly"),
    ] {
        let bank = Bank::new(&format!(
            "permit (principal, action == Action::\"call\", {head})\nwhen {{ {condition} }};"
        ))
        .await;
        let items = bank.registry.operator_snapshot();
        let found = bank.policies.check(Some(&Catalog::new(&items)));
        let [problem] = &found[..] else { panic!("{condition}: {found:?}") };
        assert!(
            problem.problem.starts_with(&format!("never matches: `{attribute}` has to be ")),
            "{problem}"
        );
        assert_eq!(problem.line, 2, "{problem}");
    }
}

#[tokio::test]
async fn comparisons_that_can_be_true_together_are_no_problem() {
    for (head, condition) in [
        ("resource is Tool", "resource.name == \"bank:close\" || resource.name == \"bank:balance\""),
        ("resource is Tool", "!(resource.name == \"bank:close\") && resource.name == \"bank:balance\""),
        ("resource == Tool::\"bank:close\"", "resource.name == \"bank:close\" && resource.app == \"bank\""),
        ("resource", "[1, 2].contains(context.hour) && [2, 3].contains(context.hour) && context.hour == 2"),
        ("resource", "context.hour == 1 && (context.hour == 2 || context.calls == 3)"),
        (
            "resource",
            "(context.hour == 1 && context.calls == 1) || (context.hour == 2 && context.calls == 2)",
        ),
        ("resource", "context.hour == 1 && context.calls == 2"),
    ] {
        let bank = Bank::new(&format!(
            "permit (principal, action == Action::\"call\", {head})\nwhen {{ {condition} }};"
        ))
        .await;
        let items = bank.registry.operator_snapshot();
        let found = bank.policies.check(Some(&Catalog::new(&items)));
        assert!(found.is_empty(), "{condition}: {found:?}");
    }
}

#[tokio::test]
async fn texts_that_name_no_tool_or_app_are_found_with_the_nearest_name() {
    for (condition, expected) in [
        (
            "resource.name == \"bank:clos\"",
            "there is no tool or prompt `bank:clos`; did you mean `bank:close`?",
        ),
        ("resource.name != \"close\"", "there is no tool or prompt `close`"),
        (
            "[\"bank:close\", \"bank:blance\"].contains(resource.name)",
            "there is no tool or prompt `bank:blance`",
        ),
        ("resource.app == \"bnk\"", "there is no app `bnk`"),
    ] {
        let bank = Bank::new(&format!(
            "permit (principal, action == Action::\"call\", resource is Tool)\nwhen {{ {condition} }};"
        ))
        .await;
        let items = bank.registry.operator_snapshot();
        let found = bank.policies.check(Some(&Catalog::new(&items)));
        let [problem] = &found[..] else { panic!("{condition}: {found:?}") };
        assert!(problem.problem.starts_with(expected) && problem.line == 2, "{problem}");
        assert!(bank.policies.check(None).is_empty(), "names are known by the catalog alone");
    }
}
