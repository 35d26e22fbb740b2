//! Code mode: four meta-tools instead of a list of every tool.
//!
//! An agent finds tools with `codecall:search`, reads their schemas with `codecall:describe`, and runs one AgentScript
//! plan over many of them with `codecall:execute`, or calls a single one with `codecall:invoke`. Every call takes the
//! gateway's one path to a tool, with the caller's own principal. Results are never cached.
#![forbid(unsafe_code)]

mod advice;
mod call_log;
mod calls;
mod code_call;
mod config;
mod config_embedding;
mod config_result;
mod content;
mod declare;
mod describe;
mod examples;
mod execute;
mod hints;
mod host;
mod invoke;
mod lenient;
mod live_index;
mod lookup;
mod meta_tools;
mod nesting;
mod pages;
mod plan_check;
mod plans;
mod plugin;
mod progress;
mod references;
mod result_shape;
mod results;
mod rounds;
mod runs;
mod search;
mod semantic;
mod sent;
mod settings;
mod shapes;
#[cfg(test)]
mod testing;
mod tool_result;
mod unwrap;
mod usage;
mod visibility;

pub use call_log::CallLog;
pub use code_call::CodeCall;
pub use config::{Adapter, CodeCallConfig, SanitizationConfig, VmConfig, WorkerConfig};
pub use config_embedding::{EmbeddingConfig, ModelSource, StoreConfig, Strategy};
pub use config_result::{MaxBytes, Meaning, ResultConfig, SearchConfig, ShapeLearning, UsageRanking};
pub use gatewright_core::Secret;
pub use meta_tools::{ALL as META_TOOLS, MOST_ALLOWED_TOOLS, MOST_APP_IDS, MOST_TOOL_NAMES};
pub use plans::{PlanChanges, PlanReport, PlanSources, SavedPlans};
pub use runs::{NotRecorded, RecordedCall, RecordedOutcome, RecordedRun, Replayed, Verdict};
pub use visibility::{Mode, ModeRule};
