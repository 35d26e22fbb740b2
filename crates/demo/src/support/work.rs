//! Tools an agent works on tickets with. Finding and opening them is in `tickets`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::dataset::{Comment, State, TODAY, Ticket, find_mut};
use crate::schema::{by_id, count, email, id, object, plain, record, text, ticket};
use crate::tool::{Args, Effect, Failure, Outcome, Spec, row};

pub(super) fn tools() -> Vec<Spec> {
    vec![
        Spec {
            name: "tickets_assign",
            title: "Assign a ticket",
            effect: Effect::Update,
            description: "Assign a support ticket to an agent, who is then responsible for it. Refused for closed tickets.",
            input: object(
                json!({
                    "id": id("ticket", "tkt_0002"),
                    "assignee": email("E-mail address of the agent", "noor@support.example"),
                }),
                &["id", "assignee"],
            ),
            output: ticket(),
            examples: &[],
            run: |state, args| {
                let ticket = not_closed(state, args, "assigned")?;
                ticket.assignee = Some(args.owned("assignee"));
                Ok(row(ticket))
            },
        },
        Spec {
            name: "tickets_comment",
            title: "Comment on a ticket",
            effect: Effect::Create,
            description: "Add a comment to a support ticket: write a reply or a note. Returns the ticket with all its comments.",
            input: object(
                json!({
                    "id": id("ticket", "tkt_0001"),
                    "author": email("E-mail address of the writer", "noor@support.example"),
                    "text": text("What to write", "We have reset your password."),
                }),
                &["id", "author", "text"],
            ),
            output: ticket(),
            examples: &[],
            run: |state, args| {
                let ticket = find_mut(&mut state.tickets, "ticket", args.text("id"))?;
                ticket.comments.push(Comment {
                    author: args.owned("author"),
                    text: args.owned("text"),
                    created_at: TODAY.to_owned(),
                });
                ticket.updated_at = TODAY.to_owned();
                Ok(row(ticket))
            },
        },
        Spec {
            name: "tickets_escalate",
            title: "Escalate a ticket",
            effect: Effect::Update,
            description: "Escalate a support ticket to the second line and make it urgent. Refused for closed tickets.",
            input: by_id("ticket", "tkt_0003"),
            output: ticket(),
            examples: &[],
            run: |state, args| {
                let ticket = not_closed(state, args, "escalated")?;
                ticket.escalated = true;
                ticket.priority = "urgent".to_owned();
                Ok(row(ticket))
            },
        },
        Spec {
            name: "tickets_close",
            title: "Close a ticket",
            effect: Effect::Update,
            description: "Close a support ticket: mark it as resolved. It can be opened again with tickets_update.",
            input: by_id("ticket", "tkt_0001"),
            output: ticket(),
            examples: &[(
                "Answer a ticket, then close it",
                "const id = 'tkt_0011';\nawait callTool('support:tickets_comment', { id, author: 'sofia@support.example', text: 'There is 10% above fifty seats.' });\nconst ticket = await callTool('support:tickets_close', { id });\nreturn { id: ticket.id, status: ticket.status, comments: ticket.comments.length };",
            )],
            run: |state, args| {
                let ticket = find_mut(&mut state.tickets, "ticket", args.text("id"))?;
                ticket.status = "closed".to_owned();
                ticket.updated_at = TODAY.to_owned();
                Ok(row(ticket))
            },
        },
        Spec {
            name: "tickets_notify",
            title: "Notify the requester of a ticket",
            effect: Effect::Notify,
            description: "Notify the person who opened a support ticket, by e-mail, of how it stands. At most three notifications a minute.",
            input: object(
                json!({
                    "id": id("ticket", "tkt_0001"),
                    "message": text("What to tell the person", "We are still looking into it."),
                }),
                &["id", "message"],
            ),
            output: record(json!({
                "ticketId": plain("Ticket the e-mail is about"),
                "sentTo": { "type": "string", "format": "email", "description": "Address it was sent to" },
                "sentAt": plain("Day it was sent"),
            })),
            examples: &[],
            run: |state, args| {
                let ticket = state.ticket(args.text("id"))?;
                let sent_to = state.user(&ticket.requester_id)?.email.clone();
                let id = ticket.id.clone();
                state.spend("tickets_notify")?;
                Ok(json!({ "ticketId": id, "sentTo": sent_to, "sentAt": TODAY }))
            },
        },
        Spec {
            name: "tickets_stats",
            title: "Ticket statistics",
            effect: Effect::Read,
            description: "Statistics of the support desk: how many tickets there are in each status, of each priority and for each agent, and how many wait for an assignee.",
            input: object(json!({}), &[]),
            output: record(json!({
                "total": count("All tickets"),
                "unassigned": count("Tickets not closed and without an assignee"),
                "byStatus": counts("Tickets in each status"),
                "byPriority": counts("Tickets of each priority"),
                "byAssignee": counts("Tickets of each agent, by e-mail address"),
            })),
            examples: &[],
            run: stats,
        },
    ]
}

fn counts(description: &str) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": { "type": "integer", "minimum": 0 } })
}

fn not_closed<'s>(state: &'s mut State, args: &Args<'_>, verb: &str) -> Result<&'s mut Ticket, Failure> {
    let ticket = find_mut(&mut state.tickets, "ticket", args.text("id"))?;
    if ticket.status == "closed" {
        return Failure::invalid(format!(
            "The ticket {} is closed and cannot be {verb}. Use tickets_update to open it again.",
            ticket.id
        ));
    }
    ticket.updated_at = TODAY.to_owned();
    Ok(ticket)
}

fn stats(state: &mut State, _args: &Args<'_>) -> Outcome {
    let tickets = || state.tickets.values();
    let tally = |keys: &mut dyn Iterator<Item = &str>| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        keys.for_each(|key| *counts.entry(key.to_owned()).or_default() += 1);
        counts
    };
    Ok(json!({
        "total": tickets().count(),
        "unassigned": tickets().filter(|row| row.assignee.is_none() && row.status != "closed").count(),
        "byStatus": tally(&mut tickets().map(|row| row.status.as_str())),
        "byPriority": tally(&mut tickets().map(|row| row.priority.as_str())),
        "byAssignee": tally(&mut tickets().filter_map(|row| row.assignee.as_deref())),
    }))
}
