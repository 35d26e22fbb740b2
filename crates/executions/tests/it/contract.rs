//! Checks that executions pass in every store, with two instances.

use gatewright_core::{Groups, Principal, Scopes};
use gatewright_executions::{
    CallCounts, Ending, ExecutionError, Executions, ExecutionsConfig, NewExecution, Reader, State, Terms,
    WaitKind, WaitingFor,
};

use crate::{
    stores::{self, Redis, Sqlite},
    support::{detached, principal},
};

fn calls(made: u32) -> CallCounts {
    CallCounts { made, failed: 0 }
}

async fn a_run_waits_and_goes_on_at_another_instance([a, b]: &[Executions; 2]) {
    let ada = principal("ada", Some("desk"));
    let owner = Reader::Owner(&ada);
    let about = NewExecution { script: [7; 32], title: Some("é".repeat(300)), ..NewExecution::default() };
    let mut draft = a.draft(&ada, about);
    let id = draft.id().to_string();
    draft.append(b"start").unwrap();
    draft.append(b"").unwrap();
    assert_eq!(a.open(&id, Reader::Operator).await.unwrap_err(), ExecutionError::NotFound);
    let lease = draft.persist().await.unwrap();
    assert_eq!(lease.id(), draft.id());
    draft.end(&Ending::new("ok"), calls(0));
    assert_eq!(b.acquire(&id, owner).await.unwrap_err(), ExecutionError::Busy);
    lease.append(b"asks").await.unwrap();
    let waiting = WaitingFor::new(WaitKind::Approval, "Refund 1,200?").tool("crm:refund");
    lease.wait(&vec![waiting.clone(); 20], calls(1)).await.unwrap();
    let head = b.head(&id, owner).await.unwrap();
    assert_eq!((head.state, head.waiting_for), (State::Waiting, vec![waiting; 16]));
    let (lease, found) = b.acquire(&id, owner).await.unwrap();
    assert_eq!(found.chunks, [&b"start"[..], b"", b"asks"]);
    let head = found.head;
    assert_eq!(
        (head.state, head.resumed, head.calls, head.waiting_for.len()),
        (State::Running, 1, calls(1), 0)
    );
    assert_eq!((&head.owner, head.about.script, head.about.title), (&ada, [7; 32], Some("é".repeat(128))));
    assert_eq!(a.acquire(&id, owner).await.unwrap_err(), ExecutionError::Busy);
    lease.append(b"answer").await.unwrap();
    let ending = Ending::new("tool_error").code("RATE_LIMIT");
    lease.end(&ending, CallCounts { made: 2, failed: 1 }).await.unwrap();
    let ended = a.open(&id, owner).await.unwrap();
    assert_eq!(ended.chunks, [&b"start"[..], b"", b"asks", b"answer"]);
    assert_eq!((ended.head.state, ended.head.ending), (State::Ended, Some(ending.clone())));
    assert_eq!(ended.head.calls, CallCounts { made: 2, failed: 1 });
    assert_eq!(a.acquire(&id, owner).await.unwrap_err(), ExecutionError::Ended);
    assert_eq!(a.cancel(&id, owner, &ending).await.unwrap_err(), ExecutionError::Ended);
    a.remove(&id, owner).await.unwrap();
    assert_eq!(b.open(&id, owner).await.unwrap_err(), ExecutionError::NotFound);
    assert!(b.list(owner, None, 10).await.unwrap().is_empty());
}

fn until(ms: u64) -> Terms {
    Terms { until_ms: Some(ms), grant: None }
}

async fn an_owner_who_shows_another_token_leaves_its_scopes_its_groups_and_its_end([a, b]: &[Executions; 2]) {
    let groups = |names: &[&str]| Groups::new(names.iter().copied()).unwrap();
    let ada = Principal { groups: groups(&["ops", "team a"]), ..principal("kim", Some("desk")) };
    let about = NewExecution { terms: until(7), ..detached() };
    let lease = a.create(&ada, about, b"start").await.unwrap();
    let id = lease.id().to_string();
    lease.wait(&[], calls(0)).await.unwrap();
    assert_eq!(b.head(&id, Reader::Owner(&ada)).await.unwrap().owner, ada);
    let now = Principal { scopes: Scopes::parse("crm:*"), groups: groups(&["team a"]), ..ada.clone() };
    let eve = principal("eve", Some("desk"));
    assert_eq!(b.acquire_with(&id, &eve, until(9)).await.unwrap_err(), ExecutionError::NotFound);
    let (lease, found) = b.acquire_with(&id, &now, until(8)).await.unwrap();
    assert_eq!((found.head.owner, found.head.about.terms), (now.clone(), until(8)));
    lease.wait(&[], calls(0)).await.unwrap();
    assert_eq!(a.acquire(&id, Reader::Owner(&ada)).await.unwrap_err(), ExecutionError::ScopesMissing);
    let (_lease, found) = a.acquire(&id, Reader::Owner(&now)).await.unwrap();
    assert_eq!((found.head.owner, found.head.about.terms), (now, until(8)), "no token was shown");
    a.remove(&id, Reader::Operator).await.unwrap();
}

async fn only_the_owner_and_operators_see_an_execution([a, b]: &[Executions; 2]) {
    let eve = principal("eve", Some("desk"));
    let lease = a.create(&eve, detached(), b"start").await.unwrap();
    let id = lease.id().to_string();
    let of_client = |client| Principal { client_id: client, ..eve.clone() };
    let others = [
        principal("ada", Some("desk")),
        of_client(None),
        of_client(Some("other".into())),
        // A subject that looks like subject and client together.
        principal("eve desk", None),
        eve.clone().at(Some("support".into())),
    ];
    for other in &others {
        let reader = Reader::Owner(other);
        assert_eq!(b.open(&id, reader).await.unwrap_err(), ExecutionError::NotFound);
        assert_eq!(b.head(&id, reader).await.unwrap_err(), ExecutionError::NotFound);
        assert_eq!(b.acquire(&id, reader).await.unwrap_err(), ExecutionError::NotFound);
        assert_eq!(b.remove(&id, reader).await.unwrap_err(), ExecutionError::NotFound);
        let cancelled = b.cancel(&id, reader, &Ending::new("cancelled")).await;
        assert_eq!(cancelled.unwrap_err(), ExecutionError::NotFound);
        assert!(b.list(reader, None, 10).await.unwrap().is_empty());
    }
    for other in ["ada", "eve desk", "eve\ndesk", ""] {
        let reader = Reader::Subject(other);
        assert_eq!(b.open(&id, reader).await.unwrap_err(), ExecutionError::NotFound);
        assert_eq!(b.acquire(&id, reader).await.unwrap_err(), ExecutionError::NotFound);
        assert!(b.list(reader, None, 10).await.unwrap().is_empty());
    }
    lease.append(b"still there").await.unwrap();
    assert_eq!(b.open(&id, Reader::Operator).await.unwrap().chunks.len(), 2);
    // The user, with whatever client.
    let user = Reader::Subject("eve");
    assert_eq!(b.open(&id, user).await.unwrap().head.owner, eve);
    assert_eq!(b.list(user, None, 10).await.unwrap()[0].head.id, lease.id());
    assert_eq!(b.list(user, Some(State::Running), 10).await.unwrap().len(), 1);
    assert_eq!(b.list(Reader::Owner(&eve), None, 10).await.unwrap()[0].head.id, lease.id());
    b.remove(&id, Reader::Operator).await.unwrap();
    assert_eq!(lease.end(&Ending::new("ok"), calls(0)).await.unwrap_err(), ExecutionError::LeaseLost);
}

async fn the_journal_is_for_tokens_with_all_scopes_that_it_began_with([a, b]: &[Executions; 2]) {
    let mia = principal("mia", Some("desk"));
    let fewer = Principal { scopes: Scopes::parse("crm:read crm:writer other"), ..mia.clone() };
    let lease = a.create(&mia, NewExecution::default(), b"answers").await.unwrap();
    let id = lease.id().to_string();
    lease.wait(&[], calls(1)).await.unwrap();
    let lease = a.create(&mia, NewExecution::default(), b"answers").await.unwrap();
    let ended = lease.id().to_string();
    lease.end(&Ending::new("ok"), calls(1)).await.unwrap();
    let reader = Reader::Owner(&fewer);
    for executions in [a, b] {
        assert_eq!(executions.open(&id, reader).await.unwrap_err(), ExecutionError::ScopesMissing);
        assert_eq!(executions.acquire(&id, reader).await.unwrap_err(), ExecutionError::ScopesMissing);
        assert_eq!(
            executions.acquire_with(&id, &fewer, until(9)).await.unwrap_err(),
            ExecutionError::ScopesMissing
        );
        assert_eq!(executions.open(&ended, reader).await.unwrap_err(), ExecutionError::ScopesMissing);
        assert_eq!(executions.head(&id, reader).await.unwrap().state, State::Waiting);
    }
    let more = Principal { scopes: Scopes::parse("crm:* other"), ..mia.clone() };
    assert_eq!(b.open(&ended, Reader::Owner(&more)).await.unwrap().chunks, [b"answers"]);
    b.cancel(&id, reader, &Ending::new("cancelled")).await.unwrap();
    for id in [id, ended] {
        b.remove(&id, Reader::Operator).await.unwrap();
    }
}

async fn an_execution_belongs_to_the_endpoint_where_it_was_begun([a, b]: &[Executions; 2]) {
    let there = principal("ivy", Some("desk")).at(Some("support".into()));
    let lease = a.create(&there, detached(), b"start").await.unwrap();
    let id = lease.id().to_string();
    assert_eq!(b.head(&id, Reader::Owner(&there)).await.unwrap().owner, there);
    assert_eq!(b.list(Reader::Owner(&there), None, 10).await.unwrap()[0].head.id, lease.id());
    for elsewhere in [there.clone().at(None), there.clone().at(Some("sales".into()))] {
        let reader = Reader::Owner(&elsewhere);
        assert_eq!(b.open(&id, reader).await.unwrap_err(), ExecutionError::NotFound);
        assert!(b.list(reader, None, 10).await.unwrap().is_empty());
    }
    b.remove(&id, Reader::Operator).await.unwrap();
}

async fn hostile_ids_give_the_error_of_unknown_ones([a, _]: &[Executions; 2]) {
    let ada = principal("ada", None);
    let unknown = a.draft(&ada, detached()).id().to_string();
    let null = format!("exe_{}\0", &unknown[4..25]);
    let long = "exe_".repeat(100_000);
    for id in ["", "exe_", "*", "head", "../x", "exe_{gw}:************", "é", &null, &long, &unknown] {
        for reader in [Reader::Owner(&ada), Reader::Operator] {
            assert_eq!(a.open(id, reader).await.unwrap_err(), ExecutionError::NotFound, "{id}");
            assert_eq!(a.head(id, reader).await.unwrap_err(), ExecutionError::NotFound, "{id}");
            assert_eq!(a.acquire(id, reader).await.unwrap_err(), ExecutionError::NotFound, "{id}");
            assert_eq!(a.remove(id, reader).await.unwrap_err(), ExecutionError::NotFound, "{id}");
        }
    }
}

async fn lists_name_open_executions_first_and_the_newest_of_each([a, b]: &[Executions; 2]) {
    let (lou, max) = (principal("lou", None), principal("max", None));
    let waits = a.create(&lou, NewExecution::default(), b"1").await.unwrap();
    let waits = (waits.id(), waits.wait(&[], calls(0)).await.unwrap()).0;
    let runs = a.create(&lou, detached(), b"2").await.unwrap();
    let mut draft = a.draft(&lou, NewExecution::default());
    draft.append(b"3").unwrap();
    let ended = draft.id();
    draft.end(&Ending::new("ok"), calls(3));
    a.draft(&lou, NewExecution::default()).append(b"forgotten").unwrap();
    let of_max = a.create(&max, detached(), b"4").await.unwrap();
    // What has ended is there at once for this instance, and for others when it has been written.
    assert_eq!(a.open(&ended.to_string(), Reader::Owner(&lou)).await.unwrap().chunks, [b"3"]);
    assert!(a.open(&ended.to_string(), Reader::Owner(&max)).await.is_err());
    a.close().await;
    assert_eq!(b.open(&ended.to_string(), Reader::Owner(&lou)).await.unwrap().chunks, [b"3"]);
    let ids = async |reader: Reader<'_>, state| {
        let listed = b.list(reader, state, 10).await.unwrap();
        listed.into_iter().map(|one| (one.head.id, one.held)).collect::<Vec<_>>()
    };
    let mut all = ids(Reader::Owner(&lou), None).await;
    assert_eq!(all.pop(), Some((ended, false)));
    all.sort();
    let mut open = [(waits, false), (runs.id(), true)];
    open.sort();
    assert_eq!(all, open);
    assert_eq!(ids(Reader::Owner(&lou), Some(State::Waiting)).await, [(waits, false)]);
    assert_eq!(ids(Reader::Owner(&lou), Some(State::Ended)).await, [(ended, false)]);
    assert_eq!(ids(Reader::Owner(&max), None).await, [(of_max.id(), true)]);
    let all = b.list(Reader::Operator, None, 100).await.unwrap();
    assert!(all.iter().any(|one| one.head.id == of_max.id()) && all.iter().any(|one| one.head.id == ended));
    assert_eq!(b.list(Reader::Operator, None, 2).await.unwrap().len(), 2);
}

async fn one_of_many_who_acquire_gets_the_lease([a, b]: &[Executions; 2]) {
    let ada = principal("race", None);
    let lease = a.create(&ada, detached(), b"start").await.unwrap();
    let id = lease.id().to_string();
    lease.wait(&[], calls(0)).await.unwrap();
    for round in 1..=5_u8 {
        let tries = (0..10).map(|n| [a, b][n % 2].acquire(&id, Reader::Owner(&ada)));
        let got = futures::future::join_all(tries).await;
        let (got, lost): (Vec<_>, Vec<_>) = got.into_iter().partition(Result::is_ok);
        assert!(lost.into_iter().all(|error| error.err() == Some(ExecutionError::Busy)));
        let [Ok((lease, found))]: [_; 1] =
            got.try_into().unwrap_or_else(|got: Vec<_>| panic!("{} got it", got.len()))
        else {
            unreachable!()
        };
        assert_eq!(found.chunks.len(), usize::from(round));
        lease.append(&[round]).await.unwrap();
        lease.wait(&[], calls(u32::from(round))).await.unwrap();
    }
    let found = b.open(&id, Reader::Operator).await.unwrap();
    assert_eq!(found.chunks, [&b"start"[..], &[1], &[2], &[3], &[4], &[5]]);
}

async fn a_lease_that_is_given_back_is_there_for_others_at_once([a, b]: &[Executions; 2]) {
    let ada = principal("back", None);
    let lease = a.create(&ada, detached(), b"start").await.unwrap();
    let id = lease.id();
    lease.append(b"step").await.unwrap();
    let is_free = async || b.abandoned().await.unwrap().iter().any(|head| head.id == id);
    assert!(!is_free().await);
    lease.give_back().await.unwrap();
    assert_eq!(lease.append(b"late").await.unwrap_err(), ExecutionError::LeaseLost);
    while !is_free().await {
        // One search looks at a part of them.
    }
    let (next, found) = b.acquire(&id.to_string(), Reader::Operator).await.unwrap();
    assert_eq!((found.chunks.len(), found.head.state), (2, State::Running));
    next.append(b"more").await.unwrap();
    next.end(&Ending::new("ok"), calls(1)).await.unwrap();
}

async fn a_cancelled_execution_has_ended_and_its_holder_stops([a, b]: &[Executions; 2]) {
    let ada = principal("cancel", None);
    let lease = a.create(&ada, detached(), b"start").await.unwrap();
    let id = lease.id().to_string();
    b.cancel(&id, Reader::Owner(&ada), &Ending::new("cancelled")).await.unwrap();
    assert_eq!(lease.append(b"more").await.unwrap_err(), ExecutionError::LeaseLost);
    assert!(lease.lost().is_cancelled());
    assert_eq!(lease.end(&Ending::new("ok"), calls(0)).await.unwrap_err(), ExecutionError::LeaseLost);
    let found = a.open(&id, Reader::Owner(&ada)).await.unwrap();
    assert_eq!(
        (found.head.ending.unwrap().status.as_str(), found.chunks),
        ("cancelled", vec![b"start".to_vec()])
    );
    assert_eq!(a.acquire(&id, Reader::Owner(&ada)).await.unwrap_err(), ExecutionError::Ended);
    let listed = a.list(Reader::Owner(&ada), None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|one| one.head.state).collect::<Vec<_>>(), [State::Ended]);
}

async fn all(instances: &[Executions; 2]) {
    a_run_waits_and_goes_on_at_another_instance(instances).await;
    an_owner_who_shows_another_token_leaves_its_scopes_its_groups_and_its_end(instances).await;
    only_the_owner_and_operators_see_an_execution(instances).await;
    an_execution_belongs_to_the_endpoint_where_it_was_begun(instances).await;
    the_journal_is_for_tokens_with_all_scopes_that_it_began_with(instances).await;
    hostile_ids_give_the_error_of_unknown_ones(instances).await;
    one_of_many_who_acquire_gets_the_lease(instances).await;
    a_cancelled_execution_has_ended_and_its_holder_stops(instances).await;
    a_lease_that_is_given_back_is_there_for_others_at_once(instances).await;
    lists_name_open_executions_first_and_the_newest_of_each(instances).await;
}

#[tokio::test]
async fn executions_in_memory_pass_all_checks() {
    all(&stores::memory(&ExecutionsConfig::default())).await;
}

#[tokio::test]
async fn executions_in_records_pass_all_checks() {
    all(&stores::records(&ExecutionsConfig::default())).await;
}

#[tokio::test]
async fn executions_in_sqlite_pass_all_checks() {
    all(&Sqlite::new(&ExecutionsConfig::default()).instances).await;
}

#[tokio::test]
async fn executions_in_redis_pass_all_checks() {
    let redis = Redis::start();
    all(&redis.instances(&ExecutionsConfig::default()).await).await;
    let longest = i64::try_from(ExecutionsConfig::default().retention.as_millis()).unwrap();
    for (name, left, _) in redis.contents() {
        assert!(name.starts_with("gw:execution:") && (1..=longest).contains(&left), "{name} lives {left} ms");
    }
}
