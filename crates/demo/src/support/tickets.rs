//! Tools that find, open and change tickets. Working on them is in `work`.

use rmcp::{
    handler::server::wrapper::{Json, Parameters},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    answer::{Failure, Page, check_text, contains_words, default_limit, hints, matches, page},
    app::App,
    dataset::{Priority, TODAY, Ticket, TicketStatus, find_mut, word},
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListTickets {
    /// Only tickets in this status
    status: Option<TicketStatus>,
    /// Only tickets of this priority
    priority: Option<Priority>,
    /// Id of the account, such as acc_0001
    #[schemars(example = &"acc_0001")]
    account_id: Option<String>,
    /// Only tickets of this agent
    #[schemars(email, example = &"noor@support.example")]
    assignee: Option<String>,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetTicket {
    /// Id of the ticket, such as tkt_0001
    #[schemars(example = &"tkt_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SearchTickets {
    /// Words in the subject or the request
    #[schemars(length(min = 1, max = 2000), example = &"scanner")]
    query: String,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateTicket {
    /// Id of the user, such as usr_0001
    #[schemars(example = &"usr_0001")]
    requester_id: String,
    /// What it is about, in a few words
    #[schemars(length(min = 1, max = 2000), example = &"Cannot export")]
    subject: String,
    /// The request in the customer's words
    #[schemars(length(min = 1, max = 2000), example = &"The export button does nothing.")]
    body: String,
    /// How much it hurries; normal if left out
    priority: Option<Priority>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateTicket {
    /// Id of the ticket, such as tkt_0002
    #[schemars(example = &"tkt_0002")]
    id: String,
    /// New subject
    #[schemars(length(min = 1, max = 2000), example = &"Address on the invoice")]
    subject: Option<String>,
    /// New priority
    priority: Option<Priority>,
    /// New status
    status: Option<TicketStatus>,
}

#[tool_router(router = tickets, vis = "pub(crate)")]
impl App {
    #[tool(
        title = "List tickets",
        description = "List support tickets, page by page, oldest first. Can be narrowed to a status, a priority such as urgent, an account or an assignee.",
        annotations(
            title = "List tickets",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:read", &[(
            "Urgent tickets that are still open, with the names of their customers",
            "const page = await callTool('support:tickets_list', { status: 'open', priority: 'urgent' });\nconst rows = [];\nfor (const ticket of page.items) {\n  const account = await callTool('crm:accounts_get', { id: ticket.accountId });\n  rows.push({ id: ticket.id, subject: ticket.subject, customer: account.name });\n}\nreturn rows;",
        )])
    )]
    fn tickets_list(
        &self,
        Parameters(input): Parameters<ListTickets>,
    ) -> Result<Json<Page<Ticket>>, Failure> {
        self.with(|state| {
            page(&state.tickets, input.limit, input.cursor.as_deref(), |ticket| {
                matches(input.status.as_ref(), &ticket.status)
                    && matches(input.priority.as_ref(), &ticket.priority)
                    && matches(input.account_id.as_ref(), &ticket.account_id)
                    && matches(input.assignee.as_ref(), ticket.assignee.as_deref().unwrap_or_default())
            })
        })
    }

    #[tool(
        title = "Get a ticket",
        description = "Get the details of one support ticket by id: subject, request, status, priority, assignee and the conversation.",
        annotations(
            title = "Get a ticket",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:read", &[])
    )]
    fn tickets_get(&self, Parameters(input): Parameters<GetTicket>) -> Result<Json<Ticket>, Failure> {
        self.with(|state| state.ticket(&input.id).cloned())
    }

    #[tool(
        title = "Search tickets",
        description = "Search support tickets for words in the subject or in the request of the customer. Finds complaints about a subject.",
        annotations(
            title = "Search tickets",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:read", &[])
    )]
    fn tickets_search(
        &self,
        Parameters(input): Parameters<SearchTickets>,
    ) -> Result<Json<Page<Ticket>>, Failure> {
        self.with(|state| {
            check_text("query", &input.query)?;
            page(&state.tickets, input.limit, input.cursor.as_deref(), |ticket| {
                contains_words(&input.query, &[&ticket.subject, &ticket.body])
            })
        })
    }

    #[tool(
        title = "Create a ticket",
        description = "Create a new support ticket: open a case for a user who asks for help or reports a problem. Returns the ticket with its new id.",
        annotations(
            title = "Create a ticket",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        ),
        meta = hints("support:write", &[])
    )]
    fn tickets_create(&self, Parameters(input): Parameters<CreateTicket>) -> Result<Json<Ticket>, Failure> {
        self.with(|state| {
            let subject = check_text("subject", &input.subject)?;
            let body = check_text("body", &input.body)?;
            let requester = state.user(&input.requester_id)?.clone();
            let ticket = Ticket {
                id: state.next_id("tkt"),
                account_id: requester.account_id,
                requester_id: requester.id,
                subject,
                body,
                status: word(TicketStatus::Open),
                priority: word(input.priority.unwrap_or(Priority::Normal)),
                assignee: None,
                escalated: false,
                comments: Vec::new(),
                created_at: TODAY.to_owned(),
                updated_at: TODAY.to_owned(),
            };
            state.tickets.insert(ticket.id.clone(), ticket.clone());
            Ok(ticket)
        })
    }

    #[tool(
        title = "Update a ticket",
        description = "Update a support ticket: change the subject, the priority, or the status (this also reopens a closed ticket). Fields left out stay as they are.",
        annotations(
            title = "Update a ticket",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("support:write", &[])
    )]
    fn tickets_update(&self, Parameters(input): Parameters<UpdateTicket>) -> Result<Json<Ticket>, Failure> {
        self.with(|state| {
            let subject = input.subject.map(|subject| check_text("subject", &subject)).transpose()?;
            let ticket = find_mut(&mut state.tickets, "ticket", &input.id)?;
            ticket.subject = subject.unwrap_or(ticket.subject.clone());
            ticket.priority = input.priority.map_or(ticket.priority.clone(), word);
            ticket.status = input.status.map_or(ticket.status.clone(), word);
            ticket.updated_at = TODAY.to_owned();
            Ok(ticket.clone())
        })
    }
}
