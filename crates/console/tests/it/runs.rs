//! The journals of scripts.

use gatewright::{
    Principal, Scopes,
    executions::{CallCounts, NewExecution, WaitKind, WaitingFor},
};
use gatewright_core::{Approval, Approvals, Policies};
use http::StatusCode;

use crate::support::{HOSTILE, assert_clean, site};

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
    let run = async |script: &str| {
        site.post("/console/script", &[("script", script), ("context", "")]).await;
        let runs = site.get("/console/runs").await.text;
        let id =
            runs.split("href=\"/console/runs/exe_").nth(1).unwrap().split('"').next().unwrap().to_owned();
        format!("/console/runs/exe_{id}")
    };
    let before = run(script).await;
    assert!(!site.get(&before).await.text.contains("Policies, "), "there are none");

    site.running.gateway().registry().set_policies(Some(asking()));
    let waits = run("return await callTool('evil:drop', { n: 1 });").await;
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
