//! Settings of code mode that can change while it serves: limits, policy, visibility and sanitization.

use gatewright_agentscript::{Limits, Sanitizer, ScriptPolicy};

use crate::{CodeCallConfig, meta_tools};

/// One state of the changeable settings. A run keeps the one it began with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: CodeCallConfig,
    pub(crate) limits: Limits,
    pub(crate) policy: ScriptPolicy,
    pub(crate) sanitizer: Sanitizer,
}

impl Settings {
    pub(crate) fn of(config: CodeCallConfig) -> Self {
        Self {
            limits: config.vm.limits(),
            policy: ScriptPolicy::new(config.vm.preset)
                .allow_console(config.vm.console())
                .reserved_tool_prefixes(meta_tools::RESERVED),
            sanitizer: Sanitizer {
                remove_stack_traces: config.sanitization.remove_stack_traces,
                remove_file_paths: config.sanitization.remove_file_paths,
            },
            config,
        }
    }

    /// These settings with what of `new` can change while code mode serves.
    pub(crate) fn changed(&self, new: &CodeCallConfig) -> Self {
        let mut config = self.config.clone();
        config.mode = new.mode;
        config.modes.clone_from(&new.modes);
        config.vm = new.vm.clone();
        config.sanitization = new.sanitization.clone();
        config.shapes = new.shapes;
        config.result = new.result.clone();
        config.embedding.similarity_threshold = new.embedding.similarity_threshold;
        Self::of(config)
    }
}
