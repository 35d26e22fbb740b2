//! Upstream servers that behave, and servers that do not.

#[cfg(test)]
mod bad_servers;
#[cfg(test)]
mod closed_connections;
#[cfg(test)]
mod down_reasons;
#[cfg(test)]
mod error_texts;
#[cfg(test)]
mod first_connection;
#[cfg(test)]
mod forgotten_sessions;
#[cfg(test)]
mod http_servers;
mod own_requests;
#[cfg(test)]
mod pass_through;
#[cfg(test)]
mod per_caller;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod questions;
#[cfg(test)]
mod sse_server;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod unread_answers;
#[cfg(test)]
mod updates;
