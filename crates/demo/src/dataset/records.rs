//! The rows, as they appear in answers, and the words that some of their fields take. Descriptions of fields are those that clients
//! read in the output schemas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Plan {
    Free,
    Team,
    Enterprise,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum AccountStatus {
    Trial,
    Active,
    Churned,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Role {
    Admin,
    Billing,
    Member,
    Viewer,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum OrderStatus {
    Pending,
    Paid,
    Shipped,
    Delivered,
    Cancelled,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum InvoiceStatus {
    Draft,
    Sent,
    Overdue,
    Paid,
    Void,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum TicketStatus {
    Open,
    Pending,
    Closed,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Priority {
    Low,
    Normal,
    High,
    Urgent,
}

#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Category {
    Licence,
    Service,
    Hardware,
    Supplies,
}

/// Returns a word as it is written in rows and in JSON.
pub(crate) fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        other => unreachable!("words are strings: {other:?}"),
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct Account {
    /// Account id
    pub(crate) id: String,
    /// Company name
    pub(crate) name: String,
    /// What the company does
    pub(crate) industry: String,
    /// Plan the account pays for
    #[schemars(with = "Plan")]
    pub(crate) plan: String,
    /// Whether the customer tries, pays or has left
    #[schemars(with = "AccountStatus")]
    pub(crate) status: String,
    /// ISO 3166 code of the country
    pub(crate) country: String,
    /// Day the account was opened
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct User {
    /// User id
    pub(crate) id: String,
    /// Account the user belongs to
    pub(crate) account_id: String,
    /// Full name
    pub(crate) name: String,
    /// E-mail address, unique
    #[schemars(email)]
    pub(crate) email: String,
    /// What the user may do
    #[schemars(with = "Role")]
    pub(crate) role: String,
    /// Whether the user can sign in
    pub(crate) active: bool,
    /// Day the user was added
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct Product {
    /// Product id
    pub(crate) id: String,
    /// Product name
    pub(crate) name: String,
    /// Kind of product
    #[schemars(with = "Category")]
    pub(crate) category: String,
    /// Price of one, in cents
    pub(crate) price_cents: u64,
    /// ISO 4217 code
    pub(crate) currency: String,
    /// Pieces left
    pub(crate) stock: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct Item {
    /// Product ordered
    pub(crate) product_id: String,
    /// How many
    pub(crate) quantity: u64,
    /// Price of one when ordered, in cents
    pub(crate) unit_price_cents: u64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct Order {
    /// Order id
    pub(crate) id: String,
    /// Account that ordered
    pub(crate) account_id: String,
    /// User who placed the order
    pub(crate) user_id: String,
    /// How far the order is
    #[schemars(with = "OrderStatus")]
    pub(crate) status: String,
    pub(crate) items: Vec<Item>,
    /// Sum of all items, in cents
    pub(crate) total_cents: u64,
    /// ISO 4217 code
    pub(crate) currency: String,
    /// Day of the order
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct Invoice {
    /// Invoice id
    pub(crate) id: String,
    /// Account to pay it
    pub(crate) account_id: String,
    /// Order it is for
    pub(crate) order_id: String,
    /// Whether it was sent, is late, is paid or is void
    #[schemars(with = "InvoiceStatus")]
    pub(crate) status: String,
    /// Amount, in cents
    pub(crate) amount_cents: u64,
    /// ISO 4217 code
    pub(crate) currency: String,
    /// Day it was written
    pub(crate) issued_at: String,
    /// Day it is to be paid by
    pub(crate) due_at: String,
    /// Day it was paid, or null
    pub(crate) paid_at: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct Comment {
    /// Who wrote it
    pub(crate) author: String,
    /// What was written
    pub(crate) text: String,
    /// Day it was written
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct Ticket {
    /// Ticket id
    pub(crate) id: String,
    /// Account of the requester
    pub(crate) account_id: String,
    /// User who asked for help
    pub(crate) requester_id: String,
    /// What it is about
    pub(crate) subject: String,
    /// The request in the customer's words
    pub(crate) body: String,
    /// Open, waiting for the customer, or closed
    #[schemars(with = "TicketStatus")]
    pub(crate) status: String,
    /// How much it hurries
    #[schemars(with = "Priority")]
    pub(crate) priority: String,
    /// E-mail of the agent, or null
    pub(crate) assignee: Option<String>,
    /// Whether the second line has it
    pub(crate) escalated: bool,
    pub(crate) comments: Vec<Comment>,
    /// Day it was opened
    pub(crate) created_at: String,
    /// Day it last changed
    pub(crate) updated_at: String,
}
