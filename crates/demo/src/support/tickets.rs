//! Tools that find, open and change tickets. Working on them is in `work`.

use serde_json::json;

use crate::dataset::{TODAY, Ticket, find_mut};
use crate::schema::{
    PRIORITIES, TICKET_STATUS, by_id, choice, email, id, list_input, object, page_of, text, ticket,
};
use crate::tool::{Effect, Spec, page, row};

pub(super) fn tools() -> Vec<Spec> {
    vec![
        Spec {
            name: "tickets_list",
            title: "List tickets",
            effect: Effect::Read,
            description: "List support tickets, page by page, oldest first. Can be narrowed to a status, a priority such as urgent, an account or an assignee.",
            input: list_input(
                json!({
                    "status": choice("Only tickets in this status", &TICKET_STATUS),
                    "priority": choice("Only tickets of this priority", &PRIORITIES),
                    "accountId": id("account", "acc_0001"),
                    "assignee": email("Only tickets of this agent", "noor@support.example"),
                }),
                &[],
            ),
            output: page_of(ticket()),
            examples: &[(
                "Urgent tickets that are still open, with the names of their customers",
                "const page = await callTool('support:tickets_list', { status: 'open', priority: 'urgent' });\nconst rows = [];\nfor (const ticket of page.items) {\n  const account = await callTool('crm:accounts_get', { id: ticket.accountId });\n  rows.push({ id: ticket.id, subject: ticket.subject, customer: account.name });\n}\nreturn rows;",
            )],
            run: |state, args| {
                page(&state.tickets, args, |ticket| {
                    args.matches("status", &ticket.status)
                        && args.matches("priority", &ticket.priority)
                        && args.matches("accountId", &ticket.account_id)
                        && args.matches("assignee", ticket.assignee.as_deref().unwrap_or_default())
                })
            },
        },
        Spec {
            name: "tickets_get",
            title: "Get a ticket",
            effect: Effect::Read,
            description: "Get the details of one support ticket by id: subject, request, status, priority, assignee and the conversation.",
            input: by_id("ticket", "tkt_0001"),
            output: ticket(),
            examples: &[],
            run: |state, args| state.ticket(args.text("id")).map(row),
        },
        Spec {
            name: "tickets_search",
            title: "Search tickets",
            effect: Effect::Read,
            description: "Search support tickets for words in the subject or in the request of the customer. Finds complaints about a subject.",
            input: list_input(
                json!({ "query": text("Words in the subject or the request", "scanner") }),
                &["query"],
            ),
            output: page_of(ticket()),
            examples: &[],
            run: |state, args| {
                page(&state.tickets, args, |ticket| args.finds(&[&ticket.subject, &ticket.body]))
            },
        },
        Spec {
            name: "tickets_create",
            title: "Create a ticket",
            effect: Effect::Create,
            description: "Create a new support ticket: open a case for a user who asks for help or reports a problem. Returns the ticket with its new id.",
            input: object(
                json!({
                    "requesterId": id("user", "usr_0001"),
                    "subject": text("What it is about, in a few words", "Cannot export"),
                    "body": text("The request in the customer's words", "The export button does nothing."),
                    "priority": choice("How much it hurries; normal if left out", &PRIORITIES),
                }),
                &["requesterId", "subject", "body"],
            ),
            output: ticket(),
            examples: &[],
            run: |state, args| {
                let requester = state.user(args.text("requesterId"))?.clone();
                let id = state.next_id("tkt");
                let ticket = Ticket {
                    id: id.clone(),
                    account_id: requester.account_id,
                    requester_id: requester.id,
                    subject: args.owned("subject"),
                    body: args.owned("body"),
                    status: "open".to_owned(),
                    priority: args.optional("priority").unwrap_or("normal").to_owned(),
                    assignee: None,
                    escalated: false,
                    comments: Vec::new(),
                    created_at: TODAY.to_owned(),
                    updated_at: TODAY.to_owned(),
                };
                let answer = row(&ticket);
                state.tickets.insert(id, ticket);
                Ok(answer)
            },
        },
        Spec {
            name: "tickets_update",
            title: "Update a ticket",
            effect: Effect::Update,
            description: "Update a support ticket: change the subject, the priority, or the status (this also reopens a closed ticket). Fields left out stay as they are.",
            input: object(
                json!({
                    "id": id("ticket", "tkt_0002"),
                    "subject": text("New subject", "Address on the invoice"),
                    "priority": choice("New priority", &PRIORITIES),
                    "status": choice("New status", &TICKET_STATUS),
                }),
                &["id"],
            ),
            output: ticket(),
            examples: &[],
            run: |state, args| {
                let ticket = find_mut(&mut state.tickets, "ticket", args.text("id"))?;
                args.set("subject", &mut ticket.subject);
                args.set("priority", &mut ticket.priority);
                args.set("status", &mut ticket.status);
                ticket.updated_at = TODAY.to_owned();
                Ok(row(ticket))
            },
        },
    ]
}
