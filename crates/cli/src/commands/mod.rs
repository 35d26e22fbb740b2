//! One file per command.

pub mod add;
pub mod api_key;
pub mod audit;
pub mod check;
pub mod client;
pub mod completions;
pub mod connect;
pub mod consent;
pub mod demo;
pub mod eval;
pub mod executions;
pub mod health;
pub mod init;
pub mod key;
pub mod login;
pub mod man;
pub mod mock;
pub mod pins;
pub mod policy;
pub mod reference;
pub mod schema;
pub mod serve;
pub mod test;
pub mod token;
pub mod tools;
pub mod user;
