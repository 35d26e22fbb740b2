//! Resources and prompts of the support desk.

use rmcp::model::{Prompt, PromptArgument, Resource, ResourceTemplate};
use serde_json::json;

use crate::answer::Failure;
use crate::app::{Shelf, argument};

const JSON: &str = "application/json";
const TONES: [&str; 3] = ["apologetic", "friendly", "formal"];

const SLA: &str = "\
# How fast we answer

* urgent: within 1 hour, day and night
* high: within 4 hours
* normal: by the next working day
* low: within a week

Escalate a ticket to the second line when the time has passed twice.
";

pub(crate) fn shelf() -> Shelf {
    Shelf {
        resources: vec![
            Resource::new("support://handbook/response-times", "response-times")
                .with_title("Response times")
                .with_description("How fast tickets of each priority are to be answered")
                .with_mime_type("text/markdown")
                .with_size(SLA.len() as u64),
            Resource::new("support://tickets/open", "open-tickets")
                .with_title("Open tickets")
                .with_description("Every ticket that is not closed, as JSON")
                .with_mime_type(JSON),
        ],
        templates: vec![
            ResourceTemplate::new("support://tickets/{id}", "ticket")
                .with_title("One ticket")
                .with_description("A ticket by id with its comments, as JSON")
                .with_mime_type(JSON),
        ],
        prompts: vec![
            Prompt::new(
                "draft_reply",
                Some("Draft a reply to a support ticket"),
                Some(vec![
                    PromptArgument::new("ticket_id").with_description("Id of the ticket").with_required(true),
                    PromptArgument::new("tone")
                        .with_description("apologetic, friendly (the default) or formal")
                        .with_required(false),
                ]),
            )
            .with_title("Draft a reply"),
        ],
        read: |state, uri| match uri.strip_prefix("support://")? {
            "handbook/response-times" => Some(("text/markdown", SLA.to_owned())),
            "tickets/open" => {
                let open: Vec<_> =
                    state.tickets.values().filter(|ticket| ticket.status != "closed").collect();
                Some((JSON, format!("{:#}", json!(open))))
            }
            path => {
                let ticket = state.tickets.get(path.strip_prefix("tickets/")?)?;
                Some((JSON, format!("{:#}", json!(ticket))))
            }
        },
        prompt: |state, name, args| {
            (name == "draft_reply").then(|| {
                let ticket = state.ticket(argument(args, "ticket_id").unwrap_or_default())?;
                let tone = argument(args, "tone").unwrap_or("friendly");
                if !TONES.contains(&tone) {
                    return Failure::invalid(format!("'tone' must be one of: {}.", TONES.join(", ")));
                }
                let requester = state.user(&ticket.requester_id)?;
                Ok(format!(
                    "Draft a {tone} reply to {}, who wrote under the subject \"{}\":\n\n{}\n\nPriority: {}. Status: {}.",
                    requester.name, ticket.subject, ticket.body, ticket.priority, ticket.status,
                ))
            })
        },
        values: |state, target, argument| match (target, argument) {
            ("draft_reply", "ticket_id") | ("support://tickets/{id}", "id") => {
                state.tickets.keys().cloned().collect()
            }
            ("draft_reply", "tone") => TONES.map(str::to_owned).to_vec(),
            _ => Vec::new(),
        },
    }
}
