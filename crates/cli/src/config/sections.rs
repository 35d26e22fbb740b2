//! Deserializes the configuration section by section, so that a section that cannot be read does not hide problems elsewhere.

use std::collections::HashSet;

use gatewright_findings::{Finding, escape};
use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{AppConfig, Config, PinFile, PolicyFiles, place::pointer};

/// The sections of a file. Those that cannot be read have their default.
pub(super) struct Sections {
    pub(super) config: Config,
    /// Keys of the sections that cannot be read. Of `apps` only the apps are missing that cannot be read.
    pub(super) unreadable: HashSet<&'static str>,
    /// Reasons why they cannot be read.
    pub(super) findings: Vec<Finding>,
}

impl Sections {
    /// Reads every section of `value`. Unknown keys are left to the schema.
    pub(super) fn read(value: Value) -> Self {
        let Value::Object(fields) = value else { return Reader::default().finish(Config::default()) };
        let mut reader = Reader { fields, ..Reader::default() };
        let config = Config {
            info: reader.section("info"),
            http: reader.section("http"),
            apps: reader.apps(),
            endpoints: reader.section("endpoints"),
            codecall: reader.section("codecall"),
            executions: reader.section("executions"),
            rate_limits: reader.section("rateLimits"),
            policies: reader.section("policies"),
            approvals: reader.section("approvals"),
            policy_files: PolicyFiles::default(),
            pin_file: PinFile::default(),
            admin: reader.section("admin"),
            telemetry: reader.section("telemetry"),
            logging: reader.section("logging"),
            audit: reader.section("audit"),
            auth: reader.section("auth"),
            tool_names: reader.section("toolNames"),
            page_size: reader.section("pageSize"),
        };
        reader.finish(config)
    }
}

#[derive(Default)]
struct Reader {
    fields: Map<String, Value>,
    unreadable: HashSet<&'static str>,
    findings: Vec<Finding>,
}

impl Reader {
    fn section<T: DeserializeOwned + Default>(&mut self, key: &'static str) -> T {
        let Some(value) = self.fields.shift_remove(key) else { return T::default() };
        serde_path_to_error::deserialize(value).unwrap_or_else(|error| {
            let pointer = format!("/{key}{}", pointer(error.path()));
            self.report(key, Finding::new(&pointer, error.into_inner().to_string()));
            T::default()
        })
    }

    fn apps(&mut self) -> IndexMap<String, AppConfig> {
        const KEY: &str = "apps";
        let fields: Map<String, Value> = match self.fields.shift_remove(KEY) {
            None => return IndexMap::new(),
            Some(Value::Object(fields)) => fields,
            Some(_) => {
                self.report(KEY, Finding::new("/apps", "must be an object with an app under each key"));
                return IndexMap::new();
            }
        };
        let mut apps = IndexMap::new();
        for (id, value) in fields {
            match AppConfig::read(value) {
                Ok(app) => drop(apps.insert(id, app)),
                Err((below, problem)) => {
                    let pointer = format!("/{KEY}/{}{below}", escape(&id));
                    self.report(KEY, Finding::new(&pointer, problem));
                }
            }
        }
        apps
    }

    fn report(&mut self, key: &'static str, finding: Finding) {
        self.unreadable.insert(key);
        self.findings.push(finding);
    }

    fn finish(self, config: Config) -> Sections {
        Sections { config, unreadable: self.unreadable, findings: self.findings }
    }
}
