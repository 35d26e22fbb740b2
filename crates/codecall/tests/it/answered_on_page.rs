//! Questions of plans that users answer on a page, because the clients of the plans cannot ask them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use gatewright_core::{
    CannotAnswer, PlanQuestion, PlanQuestions, Principal, Scopes,
    rmcp::model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, InputRequiredResult, InputResponses,
    },
};
use gatewright_executions::{Executions, ExecutionsConfig, Reader, State};
use gatewright_testing::ToolServer;
use serde_json::{Value, json};

use super::{
    asking::{asks, made},
    detached::detach,
    held_elsewhere::Two,
    support::{Client, Served},
    waiting::PLAN,
};

const PAGE: &str = "https://mcp.example/oauth/account/questions";

/// Tools: `step` counts its calls, `ask` asks for a name, `twice` asks for it two times, `think` asks the model, `open` has an address opened.
#[derive(Clone, Default)]
struct Desk(Arc<AtomicUsize>);

impl Desk {
    fn server(&self) -> ToolServer {
        let tool = |name: &str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
        let (tools, desk) = (["step", "ask", "twice", "think", "open"].map(tool), self.clone());
        ToolServer::asking(json!(tools), move |call, _| {
            let answer = desk.answer(call);
            async move { Ok(answer) }
        })
    }

    fn answer(&self, call: CallToolRequestParams) -> CallToolResponse {
        let again = |requests: Value| -> InputRequiredResult {
            made(json!({"resultType": "input_required", "requestState": "asked", "inputRequests": requests}))
        };
        let questions = match (&*call.name, call.request_state.as_deref()) {
            ("ask", None) => asks("Who?", "asked"),
            ("twice", None) => asks("Who?", "first"),
            ("twice", Some("first")) => asks("Who?", "second"),
            ("think", None) => {
                again(json!({"name": {"method": "sampling/createMessage", "params": {"maxTokens": 9,
                "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]}}}))
            }
            ("open", None) => {
                again(json!({"name": {"method": "elicitation/create", "params": {"mode": "url",
                "message": "Sign in", "url": "https://login.example/x", "elicitationId": "1"}}}))
            }
            ("step", _) => {
                let n = self.0.fetch_add(1, Ordering::SeqCst) + 1;
                return CallToolResponse::Complete(CallToolResult::structured(json!({"n": n})));
            }
            _ => {
                let answer = call.input_responses.unwrap_or_default().remove("name").unwrap_or_default();
                return CallToolResponse::Complete(CallToolResult::structured(json!({"answer": answer})));
            }
        };
        CallToolResponse::InputRequired(questions)
    }

    fn steps(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    async fn served(&self, executions: &Executions) -> Served {
        let served = Served::keeping(executions.clone(), self.server()).await;
        served.code_call.answered_at(PAGE);
        served
    }
}

/// A client of ada, or of a program, which cannot ask anybody.
async fn client(served: &Served, subject: &str, client: &str) -> Client {
    let principal = Principal {
        subject: subject.into(),
        client_id: Some(client.into()),
        scopes: Scopes::All,
        ..Principal::local()
    };
    Client(served.connect(principal, ()).await)
}

/// Runs a script that asks; gives the answer to its client and the id of its execution.
async fn asked(client: &Client, script: &str) -> (Value, String) {
    let body = client.body("codecall:execute", json!({"script": script})).await;
    assert_eq!(
        (&body["status"], &body["error"]["code"]),
        (&json!("tool_error"), &json!("INPUT_REQUIRED")),
        "{body}"
    );
    let id = body["executionId"].as_str().unwrap().to_owned();
    (body, id)
}

async fn open(served: &Served, id: &str) -> Result<Vec<PlanQuestion>, CannotAnswer> {
    served.code_call.questions("ada", id).await.map(|(_, questions)| questions)
}

async fn answer(served: &Served, id: &str, question: &str, response: Value) -> Result<(), CannotAnswer> {
    let responses: InputResponses = made(json!({"name": response}));
    served.code_call.answer("ada", id, question, responses).await
}

fn accepted(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

async fn resume(client: &Client, id: &str) -> Value {
    client.body("codecall:execute", json!({"resume": id})).await
}

const NAMED: &str =
    "const { n } = await callTool('app:step', {}); return [n, (await callTool('app:ask', {})).answer]";

fn executions() -> Executions {
    Executions::in_memory(ExecutionsConfig::default())
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_given_the_page_and_resumes_the_plan_after_the_answer() {
    let (desk, executions) = (Desk::default(), executions());
    let served = desk.served(&executions).await;
    for (response, expected) in [
        (accepted("Ada"), accepted("Ada")),
        (json!({"action": "decline"}), json!({"action": "decline"})),
        (json!({"action": "cancel"}), json!({"action": "cancel"})),
    ] {
        let before = desk.steps();
        let ada = client(&served, "ada", "app").await;
        let (body, id) = asked(&ada, NAMED).await;
        assert_eq!(body["url"], format!("{PAGE}?plan={id}"), "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("its user answers at {PAGE}?plan={id}")), "{message}");

        let waiting = served.code_call.waiting("ada").await.unwrap();
        let plan = waiting.iter().find(|plan| plan.id == id).expect("it is listed");
        assert_eq!((plan.client.as_deref(), plan.detached), (Some("app"), false));
        assert_eq!(plan.asks, ["Who?"]);
        let question = open(&served, &id).await.unwrap().remove(0);
        assert_eq!(question.name, "app:ask");
        answer(&served, &id, &question.id, response).await.unwrap();
        let again = answer(&served, &id, &question.id, accepted("Eve")).await;
        assert_eq!(again, Err(CannotAnswer::NotOpen), "it is answered once");
        assert!(open(&served, &id).await.unwrap().is_empty());

        let over = resume(&ada, &id).await;
        assert_eq!(over["result"], json!([before + 1, expected]), "{over}");
        assert_eq!(desk.steps(), before + 1, "nothing is done twice");
        assert_eq!(open(&served, &id).await.unwrap_err(), CannotAnswer::NotOpen, "it is over");
        assert!(served.code_call.waiting("ada").await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_run_in_the_background_goes_on_by_itself_after_the_answer() {
    let (desk, executions) = (Desk::default(), executions());
    let served = desk.served(&executions).await;
    let ada = client(&served, "ada", "app").await;
    let id = detach(&ada, NAMED).await;
    let until = async |state: State| {
        while executions.head(&id, Reader::Operator).await.unwrap().state != state {
            tokio::task::yield_now().await;
        }
    };
    until(State::Waiting).await;
    drop(ada);
    assert!(served.code_call.waiting("ada").await.unwrap()[0].detached);
    let question = open(&served, &id).await.unwrap().remove(0);
    answer(&served, &id, &question.id, accepted("Ada")).await.unwrap();
    until(State::Ended).await;
    let over = resume(&client(&served, "ada", "app").await, &id).await;
    assert_eq!(over["result"], json!([1, accepted("Ada")]), "{over}");
    assert_eq!(desk.steps(), 1);
}

#[tokio::test]
async fn nobody_else_sees_or_answers_a_plan_and_an_unknown_one_looks_the_same() {
    let (desk, executions) = (Desk::default(), executions());
    let served = desk.served(&executions).await;
    let ada = client(&served, "ada", "app").await;
    let (_, id) = asked(&ada, NAMED).await;
    let question = open(&served, &id).await.unwrap().remove(0).id;
    let (plans, unknown) = (&served.code_call, "exe_00000000000000000000000000");
    assert!(plans.waiting("eve").await.unwrap().is_empty());
    for id in [&*id, unknown, "", "../x"] {
        assert_eq!(plans.questions("eve", id).await.unwrap_err(), CannotAnswer::NotOpen, "{id}");
        let responses = made(json!({"name": accepted("Eve")}));
        assert_eq!(plans.answer("eve", id, &question, responses).await, Err(CannotAnswer::NotOpen), "{id}");
    }
    let (_, other) = asked(&ada, NAMED).await;
    for (id, question) in [(&id, "00"), (&id, ""), (&other, &question)] {
        let refused = answer(&served, id, question, accepted("Eve")).await;
        assert_eq!(refused, Err(CannotAnswer::NotOpen), "a question of another plan, or none");
    }
    assert_eq!(resume(&ada, &id).await["error"]["code"], "INPUT_REQUIRED", "it still waits");
}

#[tokio::test]
async fn an_earlier_form_answers_no_later_question_of_the_same_call() {
    let (desk, executions) = (Desk::default(), executions());
    let served = desk.served(&executions).await;
    let ada = client(&served, "ada", "app").await;
    let (_, id) = asked(&ada, "return (await callTool('app:twice', {})).answer").await;
    let first = open(&served, &id).await.unwrap().remove(0).id;
    answer(&served, &id, &first, accepted("Ada")).await.unwrap();
    assert_eq!(resume(&ada, &id).await["error"]["code"], "INPUT_REQUIRED", "it asks again");
    let second = open(&served, &id).await.unwrap().remove(0).id;
    assert_ne!(first, second);
    assert_eq!(answer(&served, &id, &first, accepted("Eve")).await, Err(CannotAnswer::NotOpen));
    answer(&served, &id, &second, accepted("Lovelace")).await.unwrap();
    assert_eq!(resume(&ada, &id).await["result"], accepted("Lovelace"));
}

#[tokio::test]
async fn of_two_answers_at_once_one_is_taken() {
    let (desk, executions) = (Desk::default(), executions());
    let (one, two) = (desk.served(&executions).await, desk.served(&executions).await);
    let ada = client(&one, "ada", "app").await;
    let (_, id) = asked(&ada, NAMED).await;
    let question = open(&one, &id).await.unwrap().remove(0).id;
    let (first, second) = tokio::join!(
        answer(&one, &id, &question, accepted("Ada")),
        answer(&two, &id, &question, accepted("Bea"))
    );
    let name = match (first, second) {
        (Ok(()), Err(_)) => "Ada",
        (Err(_), Ok(())) => "Bea",
        other => panic!("{other:?}"),
    };
    assert_eq!(resume(&ada, &id).await["result"], json!([1, accepted(name)]));
}

#[tokio::test]
async fn calls_that_ask_at_the_same_time_are_answered_one_by_one() {
    let (desk, executions) = (Desk::default(), executions());
    let served = desk.served(&executions).await;
    let ada = client(&served, "ada", "app").await;
    let both = "return (await Promise.all([callTool('app:ask', {}), callTool('app:open', {})])).map((one) => one.answer)";
    let (_, id) = asked(&ada, both).await;
    let questions = open(&served, &id).await.unwrap();
    assert_eq!(questions.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["app:ask", "app:open"]);
    answer(&served, &id, &questions[0].id, accepted("Ada")).await.unwrap();
    let told = resume(&ada, &id).await;
    assert!(told["url"].is_string() && told["error"]["toolName"] == "app:open", "{told}");
    answer(&served, &id, &questions[1].id, json!({"action": "accept"})).await.unwrap();
    assert_eq!(resume(&ada, &id).await["result"], json!([accepted("Ada"), {"action": "accept"}]));
}

#[tokio::test]
async fn programs_and_questions_for_a_model_have_no_page() {
    let (desk, executions) = (Desk::default(), executions());
    let served = desk.served(&executions).await;
    let robot = client(&served, "robot", "robot").await;
    let (body, _) = asked(&robot, NAMED).await;
    assert_eq!(body.get("url"), None, "nobody signs in as a program: {body}");
    let ada = client(&served, "ada", "app").await;
    let (body, id) = asked(&ada, "return (await callTool('app:think', {})).answer").await;
    assert_eq!(body.get("url"), None, "{body}");
    assert!(served.code_call.waiting("ada").await.unwrap().is_empty());
    assert!(open(&served, &id).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_plan_that_was_kept_long_enough_takes_no_answer_any_more() {
    let ahead = Arc::new(AtomicU64::new(0));
    let of_clock = ahead.clone();
    let now = move || SystemTime::now() + Duration::from_secs(of_clock.load(Ordering::SeqCst));
    let config = ExecutionsConfig { retention: Duration::from_secs(600), ..ExecutionsConfig::default() };
    let (desk, executions) = (Desk::default(), Executions::in_memory_at(config, now));
    let served = desk.served(&executions).await;
    let ada = client(&served, "ada", "app").await;
    let (_, id) = asked(&ada, NAMED).await;
    let question = open(&served, &id).await.unwrap().remove(0).id;
    ahead.store(601, Ordering::SeqCst);
    assert_eq!(answer(&served, &id, &question, accepted("Ada")).await, Err(CannotAnswer::NotOpen));
    assert_eq!(open(&served, &id).await.unwrap_err(), CannotAnswer::NotOpen);
    assert!(served.code_call.waiting("ada").await.unwrap().is_empty());
}

#[tokio::test]
async fn the_call_of_an_older_server_at_another_instance_gets_the_answer_of_the_page() {
    for detached in [true, false] {
        let two = Two::new().await;
        two.b.code_call.answered_at(PAGE);
        let ada = client(&two.b, "ada", "app").await;
        let of_a = client(&two.a, "ada", "app").await;
        let id = match detached {
            true => {
                let id = detach(&of_a, PLAN).await;
                while resume(&of_a, &id).await["status"] == "running" {
                    tokio::task::yield_now().await;
                }
                id
            }
            false => asked(&of_a, PLAN).await.1,
        };
        let question = open(&two.b, &id).await.unwrap().remove(0);
        // The gateway names the questions of open calls.
        let responses = question.requests.keys().map(|key| (key.clone(), accepted("Ada")));
        two.b.code_call.answer("ada", &id, &question.id, responses.collect()).await.unwrap();
        let over = loop {
            let over = resume(&ada, &id).await;
            if over["status"] != "running" {
                break over;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(over["result"], json!([1, "Ada", 2]), "{over}");
        let (at_a, at_b, passed) = two.counts();
        assert_eq!((at_a, at_b, two.effects()), (1, 0, 2), "the call that waited got the answer");
        assert!(passed > 0);
    }
}
