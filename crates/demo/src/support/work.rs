//! Tools an agent works on tickets with. Finding and opening them is in `tickets`.

use std::collections::BTreeMap;

use rmcp::{
    handler::server::wrapper::{Json, Parameters},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    answer::{Failure, check_email, check_text, hints},
    app::App,
    dataset::{Comment, State, TODAY, Ticket, find_mut},
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AssignTicket {
    /// Id of the ticket, such as tkt_0002
    #[schemars(example = &"tkt_0002")]
    id: String,
    /// E-mail address of the agent
    #[schemars(email, example = &"noor@support.example")]
    assignee: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CommentTicket {
    /// Id of the ticket, such as tkt_0001
    #[schemars(example = &"tkt_0001")]
    id: String,
    /// E-mail address of the writer
    #[schemars(email, example = &"noor@support.example")]
    author: String,
    /// What to write
    #[schemars(length(min = 1, max = 2000), example = &"We have reset your password.")]
    text: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EscalateTicket {
    /// Id of the ticket, such as tkt_0003
    #[schemars(example = &"tkt_0003")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CloseTicket {
    /// Id of the ticket, such as tkt_0001
    #[schemars(example = &"tkt_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NotifyRequester {
    /// Id of the ticket, such as tkt_0001
    #[schemars(example = &"tkt_0001")]
    id: String,
    /// What to tell the person
    #[schemars(length(min = 1, max = 2000), example = &"We are still looking into it.")]
    message: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Notification {
    /// Ticket the e-mail is about
    ticket_id: String,
    /// Address it was sent to
    #[schemars(email)]
    sent_to: String,
    /// Day it was sent
    sent_at: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Statistics {
    /// All tickets
    total: usize,
    /// Tickets not closed and without an assignee
    unassigned: usize,
    /// Tickets in each status
    by_status: BTreeMap<String, usize>,
    /// Tickets of each priority
    by_priority: BTreeMap<String, usize>,
    /// Tickets of each agent, by e-mail address
    by_assignee: BTreeMap<String, usize>,
}

#[tool_router(router = work, vis = "pub(crate)")]
impl App {
    #[tool(
        title = "Assign a ticket",
        description = "Assign a support ticket to an agent, who is then responsible for it. Refused for closed tickets.",
        annotations(
            title = "Assign a ticket",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:write", &[])
    )]
    fn tickets_assign(&self, Parameters(input): Parameters<AssignTicket>) -> Result<Json<Ticket>, Failure> {
        self.with(|state| {
            let assignee = check_email("assignee", &input.assignee)?;
            let ticket = not_closed(state, &input.id, "assigned")?;
            ticket.assignee = Some(assignee);
            Ok(ticket.clone())
        })
    }

    #[tool(
        title = "Comment on a ticket",
        description = "Add a comment to a support ticket: write a reply or a note. Returns the ticket with all its comments.",
        annotations(
            title = "Comment on a ticket",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        ),
        meta = hints("support:write", &[])
    )]
    fn tickets_comment(&self, Parameters(input): Parameters<CommentTicket>) -> Result<Json<Ticket>, Failure> {
        self.with(|state| {
            let author = check_email("author", &input.author)?;
            let text = check_text("text", &input.text)?;
            let ticket = find_mut(&mut state.tickets, "ticket", &input.id)?;
            ticket.comments.push(Comment { author, text, created_at: TODAY.to_owned() });
            ticket.updated_at = TODAY.to_owned();
            Ok(ticket.clone())
        })
    }

    #[tool(
        title = "Escalate a ticket",
        description = "Escalate a support ticket to the second line and make it urgent. Refused for closed tickets.",
        annotations(
            title = "Escalate a ticket",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:write", &[])
    )]
    fn tickets_escalate(
        &self,
        Parameters(input): Parameters<EscalateTicket>,
    ) -> Result<Json<Ticket>, Failure> {
        self.with(|state| {
            let ticket = not_closed(state, &input.id, "escalated")?;
            ticket.escalated = true;
            ticket.priority = "urgent".to_owned();
            Ok(ticket.clone())
        })
    }

    #[tool(
        title = "Close a ticket",
        description = "Close a support ticket: mark it as resolved. It can be opened again with tickets_update.",
        annotations(
            title = "Close a ticket",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:write", &[(
            "Answer a ticket, then close it",
            "const id = 'tkt_0011';\nawait callTool('support:tickets_comment', { id, author: 'sofia@support.example', text: 'There is 10% above fifty seats.' });\nconst ticket = await callTool('support:tickets_close', { id });\nreturn { id: ticket.id, status: ticket.status, comments: ticket.comments.length };",
        )])
    )]
    fn tickets_close(&self, Parameters(input): Parameters<CloseTicket>) -> Result<Json<Ticket>, Failure> {
        self.with(|state| {
            let ticket = find_mut(&mut state.tickets, "ticket", &input.id)?;
            ticket.status = "closed".to_owned();
            ticket.updated_at = TODAY.to_owned();
            Ok(ticket.clone())
        })
    }

    #[tool(
        title = "Notify the requester of a ticket",
        description = "Notify the person who opened a support ticket, by e-mail, of how it stands. At most three notifications a minute.",
        annotations(
            title = "Notify the requester of a ticket",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = true
        ),
        meta = hints("support:write", &[])
    )]
    fn tickets_notify(
        &self,
        Parameters(input): Parameters<NotifyRequester>,
    ) -> Result<Json<Notification>, Failure> {
        self.with(|state| {
            check_text("message", &input.message)?;
            let ticket = state.ticket(&input.id)?;
            let sent_to = state.user(&ticket.requester_id)?.email.clone();
            let ticket_id = ticket.id.clone();
            state.spend("tickets_notify")?;
            Ok(Notification { ticket_id, sent_to, sent_at: TODAY })
        })
    }

    #[tool(
        title = "Ticket statistics",
        description = "Statistics of the support desk: how many tickets there are in each status, of each priority and for each agent, and how many wait for an assignee.",
        annotations(
            title = "Ticket statistics",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:read", &[])
    )]
    fn tickets_stats(
        &self,
        Parameters(Nothing {}): Parameters<Nothing>,
    ) -> Result<Json<Statistics>, Failure> {
        self.with(|state| Ok(statistics(state)))
    }
}

fn not_closed<'s>(state: &'s mut State, id: &str, verb: &str) -> Result<&'s mut Ticket, Failure> {
    let ticket = find_mut(&mut state.tickets, "ticket", id)?;
    if ticket.status == "closed" {
        return Failure::invalid(format!(
            "The ticket {} is closed and cannot be {verb}. Use tickets_update to open it again.",
            ticket.id
        ));
    }
    ticket.updated_at = TODAY.to_owned();
    Ok(ticket)
}

fn statistics(state: &State) -> Statistics {
    let tickets = || state.tickets.values();
    let tally = |keys: &mut dyn Iterator<Item = &str>| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        keys.for_each(|key| *counts.entry(key.to_owned()).or_default() += 1);
        counts
    };
    Statistics {
        total: tickets().count(),
        unassigned: tickets().filter(|row| row.assignee.is_none() && row.status != "closed").count(),
        by_status: tally(&mut tickets().map(|row| row.status.as_str())),
        by_priority: tally(&mut tickets().map(|row| row.priority.as_str())),
        by_assignee: tally(&mut tickets().filter_map(|row| row.assignee.as_deref())),
    }
}
