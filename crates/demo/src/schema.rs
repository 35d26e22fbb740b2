//! The JSON Schemas of the demo tools, so that input, rows and pages read alike everywhere.

use serde_json::{Value, json};

/// An object with exactly these properties.
pub(crate) fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// An object with exactly these properties, all present.
pub(crate) fn record(properties: Value) -> Value {
    let names: Vec<String> =
        properties.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

/// The id of a row, with an example that exists in the seeded data.
pub(crate) fn id(what: &str, example: &str) -> Value {
    json!({ "type": "string", "description": format!("Id of the {what}, such as {example}"), "examples": [example] })
}

/// Input of a tool that takes only the id of a row.
pub(crate) fn by_id(what: &str, example: &str) -> Value {
    object(json!({ "id": id(what, example) }), &["id"])
}

pub(crate) fn text(description: &str, example: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 2000, "description": description, "examples": [example] })
}

pub(crate) fn email(description: &str, example: &str) -> Value {
    json!({ "type": "string", "format": "email", "description": description, "examples": [example] })
}

pub(crate) fn date(description: &str, example: &str) -> Value {
    json!({ "type": "string", "format": "date", "description": description, "examples": [example] })
}

pub(crate) fn choice(description: &str, values: &[&str]) -> Value {
    json!({ "type": "string", "enum": values, "description": description })
}

pub(crate) fn plain(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(crate) fn count(description: &str) -> Value {
    json!({ "type": "integer", "minimum": 0, "description": description })
}

/// Input of a list: the filters given, and `limit` and `cursor`.
pub(crate) fn list_input(mut filters: Value, required: &[&str]) -> Value {
    filters["limit"] = json!({
        "type": "integer", "minimum": 1, "maximum": 100, "default": 20, "description": "Most rows to return",
    });
    filters["cursor"] = plain("nextCursor of the page before; leave out for the first page");
    object(filters, required)
}

/// Output of a list: `items`, `total` and, when there is more, `nextCursor`.
pub(crate) fn page_of(item: Value) -> Value {
    object(
        json!({
            "items": { "type": "array", "items": item },
            "total": count("Rows that match, on all pages"),
            "nextCursor": plain("Pass it as cursor to get the next page; absent on the last page"),
        }),
        &["items", "total"],
    )
}

pub(crate) const PLANS: [&str; 3] = ["free", "team", "enterprise"];
pub(crate) const ACCOUNT_STATUS: [&str; 3] = ["trial", "active", "churned"];
pub(crate) const ROLES: [&str; 4] = ["admin", "billing", "member", "viewer"];
pub(crate) const ORDER_STATUS: [&str; 5] = ["pending", "paid", "shipped", "delivered", "cancelled"];
pub(crate) const INVOICE_STATUS: [&str; 5] = ["draft", "sent", "overdue", "paid", "void"];
pub(crate) const TICKET_STATUS: [&str; 3] = ["open", "pending", "closed"];
pub(crate) const PRIORITIES: [&str; 4] = ["low", "normal", "high", "urgent"];
pub(crate) const CATEGORIES: [&str; 4] = ["licence", "service", "hardware", "supplies"];

pub(crate) fn account() -> Value {
    record(json!({
        "id": plain("Account id"),
        "name": plain("Company name"),
        "industry": plain("What the company does"),
        "plan": choice("Plan the account pays for", &PLANS),
        "status": choice("Whether the customer tries, pays or has left", &ACCOUNT_STATUS),
        "country": plain("ISO 3166 code of the country"),
        "createdAt": plain("Day the account was opened"),
    }))
}

pub(crate) fn user() -> Value {
    record(json!({
        "id": plain("User id"),
        "accountId": plain("Account the user belongs to"),
        "name": plain("Full name"),
        "email": { "type": "string", "format": "email", "description": "E-mail address, unique" },
        "role": choice("What the user may do", &ROLES),
        "active": { "type": "boolean", "description": "Whether the user can sign in" },
        "createdAt": plain("Day the user was added"),
    }))
}

pub(crate) fn product() -> Value {
    record(json!({
        "id": plain("Product id"),
        "name": plain("Product name"),
        "category": choice("Kind of product", &CATEGORIES),
        "priceCents": count("Price of one, in cents"),
        "currency": plain("ISO 4217 code"),
        "stock": count("Pieces left"),
    }))
}

pub(crate) fn order() -> Value {
    let item = record(json!({
        "productId": plain("Product ordered"),
        "quantity": count("How many"),
        "unitPriceCents": count("Price of one when ordered, in cents"),
    }));
    record(json!({
        "id": plain("Order id"),
        "accountId": plain("Account that ordered"),
        "userId": plain("User who placed the order"),
        "status": choice("How far the order is", &ORDER_STATUS),
        "items": { "type": "array", "items": item },
        "totalCents": count("Sum of all items, in cents"),
        "currency": plain("ISO 4217 code"),
        "createdAt": plain("Day of the order"),
    }))
}

pub(crate) fn invoice() -> Value {
    record(json!({
        "id": plain("Invoice id"),
        "accountId": plain("Account to pay it"),
        "orderId": plain("Order it is for"),
        "status": choice("Whether it was sent, is late, is paid or is void", &INVOICE_STATUS),
        "amountCents": count("Amount, in cents"),
        "currency": plain("ISO 4217 code"),
        "issuedAt": plain("Day it was written"),
        "dueAt": plain("Day it is to be paid by"),
        "paidAt": { "type": ["string", "null"], "description": "Day it was paid, or null" },
    }))
}

pub(crate) fn ticket() -> Value {
    let comment = record(json!({
        "author": plain("Who wrote it"),
        "text": plain("What was written"),
        "createdAt": plain("Day it was written"),
    }));
    record(json!({
        "id": plain("Ticket id"),
        "accountId": plain("Account of the requester"),
        "requesterId": plain("User who asked for help"),
        "subject": plain("What it is about"),
        "body": plain("The request in the customer's words"),
        "status": choice("Open, waiting for the customer, or closed", &TICKET_STATUS),
        "priority": choice("How much it hurries", &PRIORITIES),
        "assignee": { "type": ["string", "null"], "description": "E-mail of the agent, or null" },
        "escalated": { "type": "boolean", "description": "Whether the second line has it" },
        "comments": { "type": "array", "items": comment },
        "createdAt": plain("Day it was opened"),
        "updatedAt": plain("Day it last changed"),
    }))
}
