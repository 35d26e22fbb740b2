//! Apps, the registry of what they offer, and the one path to a tool.
//!
//! An [`App`] is a bundle of tools, resources and prompts: Rust code in the process ([`LocalApp`]) or a server behind a
//! connection. The [`Registry`] shows all apps as one catalog, to each caller as its [`View`] of it, which decides on everything
//! that the caller may use; the [`Invoker`] is the only way to a tool; the [`Gateway`] speaks MCP in front of them. HTTP, stdio and authentication live in other crates.
#![forbid(unsafe_code)]
#![expect(deprecated, reason = "the older era still has logging, which SEP-2577 marks as deprecated")]

mod access;
mod address_filter;
mod answer_room;
mod app;
mod approvals;
mod authenticator;
mod bulk;
mod catalog;
pub mod codes;
mod connection_thread;
mod content;
mod credentials;
pub mod cursor;
mod defaults;
mod down_reason;
mod error;
mod files;
mod free_memory;
mod gateway;
mod hidden_text;
mod invalid_field;
mod invoker;
mod json_budget;
mod lines;
mod link;
mod listable;
mod local_app;
mod lookups;
mod masking;
mod memory;
mod names;
mod network;
mod observe;
mod own_places;
mod pace;
mod page_decision;
mod paging;
mod pins;
mod plugin;
mod policy;
mod principal;
mod progress;
mod protocol;
mod questions;
mod records;
mod registry;
mod request_flow;
mod reshape;
mod schema;
mod secret;
mod share;
mod sign_in;
mod state_home;
mod template;
mod tool;
mod tool_settings;
mod trace;
mod unavailable;

pub use access::{
    AccessMode, Audience, CallContext, Caller, Completion, Denied, Endpoint, EndpointAudience,
    EndpointConfig, EndpointName, Endpoints, KnownSince, Listed, MAIN_ENDPOINT, OwnPaths, Permit, Permitted,
    PermittedTool, PromptItem, RecordSealer, ResourceItem, Roots, ScopeRule, SealKey, SessionRef, TaskItem,
    UriPattern, View, WholeApp, check_endpoint_name, fits_tool,
};
pub use address_filter::{AddressError, AddressFilter, Lookup, is_public_address, is_this_machine};
pub use answer_room::{AnswerRoom, Reserved};
pub use app::{App, AppEvent, AppFuture, AppHealth, Paging, PerCaller};
pub use approvals::{
    ApprovalDuration, ApprovalEvent, ApprovalEventKind, ApprovalExpired, ApprovalListener, ApprovalRecord,
    ApprovalRequest, ApprovalState, ApprovalStore, Approver, CannotDecide, NotRequested, Rehearsed,
    ScriptStep, SettledRun,
};
pub use authenticator::{AuthRefusal, Authenticator, WorkTerms};
pub use bulk::{begin_off_thread, bulk, bulk_of, off_thread};
pub use catalog::{Catalog, CatalogError, CatalogLimit};
pub use connection_thread::ConnectionThread;
pub use credentials::{Authorize, BearerToken, UserCredentials};
pub use down_reason::DownReason;
pub use error::{InvokeError, REQUEST_CANCELLED, whole_seconds};
pub use files::read_file;
pub use free_memory::FreeMemory;
pub use gateway::{Gateway, GatewayConfig, METHODS, SessionLogLevel, shed_unused};
pub use gatewright_json::{Measured, Unreadable, count_values, measure, read_json, read_unique, value_bytes};
pub use hidden_text::{HiddenText, hidden_in, show_hidden};
pub use invalid_field::InvalidField;
pub use invoker::{Invoker, RateLimiter, RestsOn, ResultListener, RetryAfter};
pub use json_budget::JsonBudget;
pub use lines::{Line, LineReader, LineRoom, write_line};
pub use link::CatalogLink;
pub use listable::CatalogFinding;
pub use local_app::LocalApp;
pub use masking::{CredentialPatterns, MASK};
pub use memory::{MemoryTransport, memory_transport};
pub use names::{ToolNames, check_app_id, check_tool_name, nearest_name};
pub use network::{
    BodyTimeout, CountedNetwork, HOP_BY_HOP, Network, caller_address, counted_networks, proxied_over_https,
};
pub use observe::{
    Arrival, CallRecord, CallerAddress, Ending, ExchangeNote, Execution, HttpExchange, HttpTrail, MOST_CALLS,
    NetworkTransport, Observer, Operation, PlanFacts, PlanWatch, ScriptFacts, Subject, Trail,
};
pub use own_places::OwnPlaces;
pub use pace::Rereads;
pub use paging::{PageGate, Paginate};
pub use pins::{DefinitionChange, DefinitionChanges, PinState, Pins};
pub use plugin::{DirectAccess, Plugin, PluginTasks};
pub use policy::{
    Approval, Approvals, Approved, Decision, Effects, Forbidden, MatchedPolicy, Policies, PolicyEngine,
    PolicyObject, PolicyRequest, PolicyResource, PolicyTool, RequestDigest, RequestObject, ScriptRun,
};
pub use principal::{Groups, Principal, Scopes};
pub use progress::ProgressSink;
pub use protocol::{Era, Revision};
pub use questions::{
    AnsweredLater, AnswersByRetry, AskedAtOnce, CannotAnswer, CannotAsk, CountedBefore, DigestPart,
    MOST_OPEN, MOST_QUESTION_BYTES, MOST_QUESTIONS, MOST_ROUNDS, PlanQuestion, PlanQuestions, Presence,
    Questions, Unasked, WaitingPlan, ask, ask_client, caller_peer, can_answer, declare_questions,
    digest_of_parts, is_web_address, outline, question_capabilities,
};
pub use records::{MemoryRecords, NewRecord, RecordsError, RecordsFuture, SharedRecords};
pub use registry::{
    AppEntry, AppOptions, Change, Notice, Owned, Registry, ResourceUpdate, SharedUri, Snapshot,
};
pub use reshape::{Contradiction, contradictions};
pub use schema::{BrokenRule, InputProblem, InputSchema, LeftOut, SchemaMode, pattern_instructions};
pub use secret::Secret;
pub use share::{Claimant, NoShare, Portion, Share, Shares, in_turns};
pub use sign_in::{SIGN_IN_QUESTION, URL_ELICITATION_REQUIRED, ask_to_sign_in, sign_in_error};
pub use state_home::{PassedOn, StateHome};
pub use tool::{ReadOutput, ReadSchemas, ToolEntry};
pub use tool_settings::{ToolMeta, ToolOverride, UsageExample};
pub use trace::{Incoming, TraceContext};
pub use unavailable::{Unavailable, UnavailableApp};

pub use rmcp;
