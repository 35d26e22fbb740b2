//! A tool as the gateway knows it: the wire form, the app behind it, and what its author or the operator said.

use std::sync::{Arc, OnceLock};

use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::{
    App, AppEntry, Approval, Audience, Caller, Effects, InputProblem, InputSchema, Paging, PolicyObject,
    PolicyTool, SchemaMode, ToolMeta, reshape::FixedArguments,
};

/// One tool of the registry.
pub struct ToolEntry {
    /// Public name in the colon form: `<app>:<tool>`.
    pub name: Arc<str>,
    /// Its name without that of the app: the app's own, or the one that the operator gave it.
    pub local_name: Arc<str>,
    /// The app's own name for it, which calls of the app use.
    pub upstream_name: Arc<str>,
    /// The app's id.
    pub app_id: Arc<str>,
    /// Wire form as listed: public name, without `_meta.gatewright`.
    pub tool: Tool,
    /// Author's and operator's word; its scopes include those of the app.
    pub meta: ToolMeta,
    /// The operator's word on approvals of its calls.
    pub approval: Option<Approval>,
    /// Input schema that whole arguments have to fit, compiled at first use. The listed one may lack parameters that the operator hides.
    pub schema: InputSchema,
    /// Tells tools of one name apart that differ from caller to caller; none for a tool that is the same for everybody.
    pub variant: Option<[u8; 16]>,
    /// Bytes of the description's beginning that most tools of the app share.
    pub(crate) common: usize,
    /// Arguments that the operator fixed.
    pub(crate) arguments: FixedArguments,
    /// The app offers another definition than the approved one, which this is. Calls are refused.
    pub(crate) is_changed: bool,
    pub(crate) owner: AppEntry,
    pub(crate) version: OnceLock<[u8; 16]>,
    /// The schemas as code mode reads them.
    pub(crate) read_schemas: OnceLock<ReadSchemas>,
}

/// The schemas of a tool as code mode reads them.
#[derive(Debug, Clone)]
pub struct ReadSchemas {
    /// The output schema, unless it says nothing.
    pub output: Option<ReadOutput>,
    /// Part of the input schema accepts any object, any array or any value.
    pub is_input_open: bool,
}

/// An output schema that says something about the results.
#[derive(Debug, Clone)]
pub struct ReadOutput {
    /// The schema of the value that scripts get.
    pub schema: Arc<JsonObject>,
    /// Results are wrapped in an object with one property.
    pub wraps: bool,
    /// Results are text alone.
    pub is_text: bool,
    /// Part of it accepts any object, any array or any value.
    pub is_open: bool,
}

impl std::fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolEntry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ToolEntry {
    /// Its effects, by its annotations and the defaults of MCP.
    pub fn effects(&self) -> Effects {
        Effects::of(&self.tool)
    }

    /// The object that policies see in it.
    pub fn policy_object(&self) -> PolicyObject<'_> {
        PolicyObject::Tool(PolicyTool {
            app: &self.app_id,
            name: &self.name,
            local: &self.local_name,
            effects: self.effects(),
            approval: self.approval,
            input_schema: self.schema.source(),
        })
    }

    /// The app that answers its calls.
    pub fn app(&self) -> &Arc<dyn App> {
        &self.owner.app
    }

    /// Pages of its results.
    pub fn paging(&self) -> Paging {
        self.owner.app.paging(&self.upstream_name)
    }

    /// The description, or an empty text.
    pub fn description(&self) -> &str {
        self.tool.description.as_deref().unwrap_or_default()
    }

    /// The description without the sentences with which most tools of the app begin theirs.
    pub fn own_description(&self) -> &str {
        self.description().get(self.common..).unwrap_or_default()
    }

    /// A hash of name, description and schemas: the same for a tool that did not change, in any process.
    pub fn version(&self) -> [u8; 16] {
        *self.version.get_or_init(|| {
            let parts = (&*self.name, self.description(), &self.tool.input_schema, &self.tool.output_schema);
            let text = serde_json::to_vec(&parts).unwrap_or_default();
            let mut version = [0; 16];
            version.copy_from_slice(&Sha256::digest(text)[..16]);
            version
        })
    }

    /// The callers who share this tool, its data included, with `caller`: everyone, unless its app keeps a connection for each caller.
    pub fn audience(&self, caller: &Caller) -> Audience {
        self.owner.app.per_caller().map_or(Audience::Everyone, |own| own.audience(caller))
    }

    /// Input schema as listed.
    pub fn input_schema(&self) -> &Arc<JsonObject> {
        &self.tool.input_schema
    }

    /// The words of the app's server about itself.
    pub fn about_app(&self) -> Option<String> {
        self.owner.app.catalog().about.clone()
    }

    /// Returns `true` if a call with `arguments` would fit the schema.
    pub fn accepts(&self, arguments: &Value) -> bool {
        let mut whole = arguments.clone();
        if let Value::Object(arguments) = &mut whole {
            self.arguments.fill(arguments);
        }
        self.schema.check(&whole).is_ok()
    }

    /// Fills in the operator's arguments, and the defaults that the gateway sends for required properties, which are none where it does not check
    /// arguments.
    pub fn fill_defaults(&self, arguments: &mut JsonObject) {
        self.arguments.fill(arguments);
        if self.owner.options.schema_mode == SchemaMode::Strict {
            self.schema.fill_defaults(arguments);
        }
    }

    /// The work of [`Self::input_problems`], as a number of bytes for [`crate::off_thread`].
    pub fn input_work(&self) -> usize {
        match self.owner.options.schema_mode {
            SchemaMode::Strict => self.schema.bulk(),
            SchemaMode::Off => 0,
        }
    }

    /// Returns `true` if the gateway refuses arguments that the schema refuses.
    pub fn checks_input(&self) -> bool {
        self.owner.options.schema_mode == SchemaMode::Strict
    }

    /// At most `most` problems for which the gateway would refuse `arguments`; none where it does not check them.
    pub fn input_problems(&self, arguments: &Value, most: usize) -> Vec<InputProblem> {
        match self.owner.options.schema_mode {
            SchemaMode::Strict => self.schema.problems(arguments, most),
            SchemaMode::Off => Vec::new(),
        }
    }

    /// The schemas as `read` reads them, which is called once in the life of the tool.
    pub fn schemas_read_once(&self, read: impl FnOnce(&Tool) -> ReadSchemas) -> &ReadSchemas {
        self.read_schemas.get_or_init(|| read(&self.tool))
    }

    /// Output schema, when the tool has one.
    pub fn output_schema(&self) -> Option<Value> {
        self.tool.output_schema.as_ref().map(|schema| Value::Object((**schema).clone()))
    }
}
