//! The journals of scripts.

use std::sync::Arc;

use gatewright::{
    Principal, Scopes,
    executions::{CallCounts, NewExecution, WaitKind, WaitingFor},
};
use gatewright_core::{Approval, Approvals, Policies};
use gatewright_policy::{CedarPolicies, PolicyFile};
use http::StatusCode;

use crate::support::{HOSTILE, Site, assert_clean, site};

fn named(title: &str) -> NewExecution {
    NewExecution { detached: true, title: Some(title.to_owned()), ..NewExecution::default() }
}

#[tokio::test]
async fn runs_that_wait_come_first_and_hostile_texts_stay_text() {
    let site = site().await;
    site.post("/console/script", &[("script", "return 'the result'; // ended"), ("context", "")]).await;
    let executions = site.running.executions();
    let owner = Principal {
        subject: HOSTILE.into(),
        client_id: Some(HOSTILE.into()),
        scopes: Scopes::parse(HOSTILE),
        ..Principal::local()
    };
    let running = executions.create(&owner, named("in the background"), b"the contents").await.unwrap();
    let lease = executions.create(&owner, named(HOSTILE), b"the contents").await.unwrap();
    let id = lease.id();
    let question = WaitingFor::new(WaitKind::Approval, HOSTILE).tool(HOSTILE);
    lease.wait(&[question], CallCounts { made: 3, failed: 1 }).await.unwrap();

    let page = site.get("/console/runs").await;
    assert_eq!(page.status, StatusCode::OK);
    assert_clean(&page);
    let places: Vec<usize> = [
        "Waiting</h2>",
        "an approval for",
        "Running</h2>",
        "in the background",
        "Ended</h2>",
        "return 'the result'",
    ]
    .iter()
    .map(|part| page.text.find(part).unwrap_or_else(|| panic!("{part}: {}", page.text)))
    .collect();
    assert!(places.is_sorted(), "{places:?}");

    let page = site.get(&format!("/console/runs/{id}")).await;
    assert_clean(&page);
    for expected in ["Waits for</h2>", "3, 1 failed", "runs in the background", "&lt;img src=x"] {
        assert!(page.text.contains(expected), "{expected}: {}", page.text);
    }
    assert!(!page.text.contains("the contents"));
    drop(running);
    for unknown in ["exe_", "exe_AAAAAAAAAAAAAAAAAAAAAA", "1"] {
        assert_eq!(site.get(&format!("/console/runs/{unknown}")).await.status, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn a_call_shows_the_word_of_the_policies_when_it_was_made_and_now() {
    let site = site().await;
    let asking = || Policies {
        engine: None,
        approvals: Approvals {
            writes: Some(Approval::Ask),
            approvers: Some("boss".to_owned()),
            ..Approvals::default()
        },
    };
    let script = "return await callTool('evil:rows', { n: 1 });";
    let before = run(&site, script).await;
    assert!(!site.get(&before).await.text.contains("Policies, "), "there are none");

    site.running.gateway().registry().set_policies(Some(asking()));
    let waits = run(&site, "return await callTool('evil:drop', { n: 1 });").await;
    assert_ne!(before, waits);
    for (path, then) in [(&before, "<span class=\"status ok\">yes</span>"), (&waits, "waits for an approval")]
    {
        for path in [path.clone(), format!("{path}?call=1")] {
            let page = site.get(&path).await;
            let words = page.text.split("Policies, when it was called: ").nth(1).unwrap_or(&page.text);
            let (first, now) = words.split_once("</p>").unwrap();
            assert!(first.contains(then), "{path}: {first}");
            assert!(
                now.contains("Policies, as they are now: ") && now.contains("after an approval"),
                "{now}"
            );
        }
    }
}

/// Runs a script in the pad; gives the path of its journal.
async fn run(site: &Site, script: &str) -> String {
    site.post("/console/script", &[("script", script), ("context", "")]).await;
    let runs = site.get("/console/runs").await.text;
    let id = runs.split("href=\"/console/runs/exe_").nth(1).unwrap().split('"').next().unwrap().to_owned();
    format!("/console/runs/exe_{id}")
}

#[tokio::test]
async fn decisions_name_their_policies_by_id_or_by_line() {
    let site = site().await;
    let text = "permit (principal, action, resource is Tool) when { resource.app == \"crm\" };\n\n\
                @id(\"rows\")\npermit (principal, action, resource == Tool::\"evil:rows\");\n\
                forbid (principal, action, resource == Tool::\"evil:drop\");\n";
    let file = PolicyFile { name: "rules.cedar".to_owned(), text: text.to_owned() };
    let engine = CedarPolicies::read(vec![file]).unwrap();
    let policies = Policies { engine: Some(Arc::new(engine)), approvals: Approvals::default() };
    site.running.gateway().registry().set_policies(Some(policies));
    for (call, expected) in [
        ("'crm:users_list', { limit: 1 }", "by <code>rules.cedar:1</code></p>"),
        ("'evil:rows', { n: 1 }", "by <code>rows</code> at rules.cedar:3</p>"),
        ("'evil:drop', { n: 1 }", "the policy `rules.cedar:5` forbids it"),
    ] {
        let path = run(&site, &format!("return await callTool({call});")).await;
        for path in [path.clone(), format!("{path}?call=1")] {
            let page = site.get(&path).await.text;
            let now =
                page.split("Policies, as they are now: ").nth(1).unwrap_or_else(|| panic!("{call}: {page}"));
            assert!(now.split_inclusive("</p>").next().unwrap().contains(expected), "{call}: {now}");
        }
    }
}

#[tokio::test]
async fn a_call_that_waits_for_an_approval_is_drawn_as_waiting() {
    let site = site().await;
    let approvals =
        Approvals { writes: Some(Approval::Ask), approvers: Some("boss".to_owned()), ..Approvals::default() };
    site.running.gateway().registry().set_policies(Some(Policies { engine: None, approvals }));
    let script =
        "await callTool('crm:users_list', { limit: 1 });\nreturn await callTool('evil:drop', { n: 1 });";
    let path = run(&site, script).await;
    for page in [path.as_str(), "/console/calls/1"] {
        let page = site.get(page).await.text;
        let drawn = page.split("Calls over time</h2>").nth(1).unwrap().split("</section>").next().unwrap();
        for expected in
            ["<li class=\"waits\">waiting</li>", "class=\"status waits\"", "<rect class=\"waits\""]
        {
            assert!(drawn.contains(expected), "{expected}: {drawn}");
        }
        assert!(!drawn.contains("bad"), "{drawn}");
    }
    let list = site.get("/console/calls").await.text;
    assert!(list.contains("<path class=\"waits\""), "{list}");

    // What failed stays red.
    let other = crate::support::site().await;
    let path = run(&other, "return await callTool('evil:fail', { n: 1 });").await;
    let page = other.get(&path).await.text;
    assert!(page.contains("<li class=\"bad\">failed</li>") && page.contains("<rect class=\"bad\""), "{page}");
}
