use futures::FutureExt as _;
use serde_json::{Value, json};

use super::*;
use crate::places::{Places, caller_places};

fn caller(session: u32) -> Caller {
    Caller { principal: Arc::new(Principal::local()), session: Some(session.into()) }
}

fn log(bytes: usize) -> ServerJsonRpcMessage {
    let params = json!({"level": "info", "data": "x".repeat(bytes)});
    let message = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
    serde_json::from_value(message).unwrap()
}

fn question(bytes: usize) -> Question {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"mode": "form", "message": "x".repeat(bytes), "requestedSchema": schema});
    let request: Value = json!({"method": "elicitation/create", "params": params});
    Question {
        request: serde_json::from_value(request).unwrap(),
        task: None,
        cancelled: CancellationToken::new(),
        answer: oneshot::channel().0,
    }
}

#[test]
fn messages_that_wait_for_a_slow_caller_are_bounded_in_bytes_and_one_long_question_fits() {
    let calls = Arc::new(OpenCalls::default());
    let (_guard, mut events) = calls.open(caller(1), None);
    let mut waiting = |bytes: usize| {
        for _ in 0..200 {
            assert!(calls.received(&log(bytes)));
        }
        std::iter::from_fn(|| events.try_recv().ok()).count()
    };
    for bytes in [100_000, 100_000, 1 << 20] {
        let kept = waiting(bytes);
        assert!((25..35).contains(&kept), "{kept} of 8 KiB");
    }
    assert_eq!(calls.ask(None, question(5 << 20)), Ok(()));
    assert_eq!(calls.ask(None, question(10)), Err(Unasked::Full));
    let long = events.try_recv().unwrap();
    assert_eq!(calls.ask(None, question(10)), Err(Unasked::Full), "it is not answered yet");
    drop(long);
    assert_eq!(calls.ask(None, question(10)), Ok(()));
}

#[tokio::test]
async fn a_call_that_was_cancelled_counts_for_its_caller_until_its_server_answers_it_or_long_enough() {
    let places = Places::new(1, caller_places(1));
    let of = |subject: &str| {
        let principal = Principal { subject: subject.into(), ..Principal::local() };
        gatewright_core::Caller::new(Arc::new(principal))
    };
    let (ada, bob) = (of("user:ada"), of("user:bob"));
    let calls = OpenCalls::default();
    let keep = || {
        let place = places.take(&ada).now_or_never().expect("it is free");
        calls.keep(RequestId::Number(7), place.of_caller_alone());
        assert!(places.take(&bob).now_or_never().is_some(), "others have room");
    };
    let answered = |id: u32| {
        let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": ""}});
        calls.settle(&mut serde_json::from_value(answer).unwrap());
        places.take(&ada).now_or_never().is_some()
    };
    keep();
    assert!(!answered(8) && answered(7));
    keep();
    assert!(!answered(8));
    calls.free(&RequestId::Number(7));
    assert!(answered(8));
}

#[test]
fn a_log_message_is_copied_once_for_all_calls_and_cut_if_it_is_too_long() {
    let calls = Arc::new(OpenCalls::default());
    let (_first, mut events) = calls.open(caller(1), None);
    let (_second, mut others) = calls.open(caller(2), None);
    assert!(calls.received(&log(10_000)) && calls.received(&log(2 << 20)));
    let logged = |events: &mut mpsc::Receiver<(Event, Room)>| match events.try_recv() {
        Ok((Event::Log(log), _)) => Some(log),
        _ => None,
    };
    let (one, other) = (logged(&mut events).unwrap(), logged(&mut others).unwrap());
    assert!(Arc::ptr_eq(&one, &other));
    assert!(weight(&*one) > 10_000);
    let (long, _) = (logged(&mut events).unwrap(), logged(&mut others).unwrap());
    assert!(weight(&*long) < 10_000, "{}", weight(&*long));
}

#[test]
fn answers_make_one_task_of_each_request_of_a_call() {
    let calls = Arc::new(OpenCalls::default());
    let (guard, _events) = calls.open(caller(1), None);
    for id in 1..=2 {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "x"}});
        let mut request: ClientJsonRpcMessage = serde_json::from_value(request).unwrap();
        if let JsonRpcMessage::Request(request) = &mut request {
            request.request.extensions_mut().insert(guard.mark());
        }
        calls.sent(&mut request);
        for n in 0..100 {
            let result = json!({"task": {"taskId": format!("{id} {n}")}});
            let result = ServerResult::CustomResult(rmcp::model::CustomResult(result));
            let answer = ServerJsonRpcMessage::response(result, RequestId::Number(id));
            assert!(!calls.received(&answer));
        }
    }
    let mut tasks: Vec<String> = calls.lock().by_task.keys().cloned().collect();
    tasks.sort_unstable();
    assert_eq!(tasks, ["1 0", "2 0"]);
    assert!(guard.runs_as("1 0"));
}

#[tokio::test(start_paused = true)]
async fn turns_end_when_no_question_would_have_been_ambiguous_for_a_while() {
    let calls = Arc::new(OpenCalls::default());
    let nobody = Claimant::default();
    assert!(calls.turn(&nobody).await.is_none());
    let (first, _events) = calls.open(caller(1), None);
    let (second, _events_too) = calls.open(caller(2), None);
    assert_eq!(calls.ask(None, question(10)), Err(Unasked::Ambiguous));
    drop(second);
    let turn = calls.turn(&nobody).now_or_never().flatten().expect("calls take turns now");
    tokio::time::advance(TURNS_FOR / 2).await;
    assert_eq!(calls.ask(None, question(10)), Ok(()), "nobody waited: turns end as before");
    tokio::time::advance(TURNS_FOR / 4).await;
    let mut waits = Box::pin(calls.turn(&nobody));
    assert!((&mut waits).now_or_never().is_none());
    assert_eq!(calls.ask(None, question(10)), Ok(()));
    drop((turn, first));
    drop(waits.await);
    tokio::time::advance(TURNS_FOR / 2).await;
    assert!(calls.turn(&nobody).await.is_some(), "somebody waited during the last question");
    tokio::time::advance(TURNS_FOR).await;
    assert!(calls.turn(&nobody).await.is_none());
}

#[test]
fn questions_that_name_no_call_go_to_the_call_of_their_caller_that_was_asked_least() {
    let calls = Arc::new(OpenCalls::default());
    let (_first, mut first) = calls.open(caller(1), None);
    let (_second, mut second) = calls.open(caller(1), None);
    let mut asked = || {
        assert_eq!(calls.ask(None, question(10)), Ok(()));
        let count = |events: &mut mpsc::Receiver<(Event, Room)>| {
            std::iter::from_fn(|| events.try_recv().ok()).count()
        };
        (count(&mut first), count(&mut second))
    };
    assert_eq!([asked(), asked(), asked()], [(0, 1), (1, 0), (0, 1)]);
}
