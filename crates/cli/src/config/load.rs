//! Reads the configuration that the command line names, with every problem in it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use gatewright_codecall::PlanSources;
use gatewright_findings::{Finding, Format, Lines, escape, unescape, with_lines};
use serde_json::Value;

use super::{
    AppConfig, Config, PinFile, Source, Surroundings, check::auth_finding, file, interpolate, mcp_file,
    pin_file, policies, schema, sections::Sections,
};
use crate::{args::ConfigArgs, environment::environment, exit::BadConfig};

impl Config {
    /// Reads the files that the command line names: at least one of the two.
    ///
    /// # Errors
    /// No file is named, or one has a problem.
    pub fn of(args: &ConfigArgs) -> anyhow::Result<Self> {
        Ok(Self::load(args)?.0)
    }

    /// Like [`Config::of`], with the file's values as they are written.
    ///
    /// # Errors
    /// No file is named, or one has a problem.
    pub fn load(args: &ConfigArgs) -> anyhow::Result<(Self, Source)> {
        let (mut config, source) = match &args.config {
            Some(path) => Self::read(path)?,
            None if args.mcp_config.is_none() => {
                return Err(BadConfig(
                    "nothing to serve: there is no gatewright.yaml in this folder; `gatewright init` writes one from the MCP servers \
                     that your clients have, --config FILE names another file, --mcp-config FILE serves an mcpServers file as it \
                     is, and `gatewright demo` shows sample apps"
                        .to_owned(),
                )
                .into());
            }
            None => (Self::default(), Source::default()),
        };
        if let Some(path) = &args.mcp_config {
            config.add_mcp_servers(path).map_err(|findings| BadConfig::of_file(path, &findings))?;
        }
        if config.apps.is_empty() {
            return Err(BadConfig("the configuration names no app; add one under `apps`".to_owned()).into());
        }
        Ok((config, source))
    }

    /// Reads and checks a file.
    fn read(path: &Path) -> anyhow::Result<(Self, Source)> {
        let (config, findings, source) = Self::examine(path)?;
        match config {
            Some(config) if findings.is_empty() => Ok((config, source)),
            _ => Err(BadConfig::of_file(path, &findings).into()),
        }
    }

    /// Reads the files that the command line names, and returns every problem in them. The configuration is `None` if a part cannot be read.
    ///
    /// # Errors
    /// The file of the configuration cannot be read at all, or its extension names no format.
    pub fn examine_all(args: &ConfigArgs) -> anyhow::Result<(Option<Self>, Vec<Finding>)> {
        let (mut config, mut findings) = match &args.config {
            Some(path) => {
                let (config, findings, _) = Self::examine(path)?;
                (config, findings)
            }
            None => (Some(Self::default()), Vec::new()),
        };
        if let Some(path) = &args.mcp_config {
            // Without the configuration, its apps are not compared with the servers of this file.
            let mut alone = Self::default();
            if let Err(problems) = config.as_mut().unwrap_or(&mut alone).add_mcp_servers(path) {
                findings.extend(problems.into_iter().map(|problem| problem.in_file(path)));
                config = None;
            }
        }
        Ok((config, findings))
    }

    /// Reads a file and returns every problem in it. The configuration is `None` if a section cannot be read.
    ///
    /// # Errors
    /// The file cannot be read at all, or its extension names no format.
    pub fn examine(path: &Path) -> anyhow::Result<(Option<Self>, Vec<Finding>, Source)> {
        let text = file::text(path)?;
        Self::examine_text(path, &text)
    }

    /// Like [`Config::examine`], for a text that is the content of the file at `path`, or is going to be.
    ///
    /// # Errors
    /// The extension of the path names no format.
    pub fn examine_text(path: &Path, text: &str) -> anyhow::Result<(Option<Self>, Vec<Finding>, Source)> {
        let format = file::format_of(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let environment = environment();
        let around = Surroundings { environment: &environment, folder: Some(folder), is_own: true };
        let (mut config, mut findings, mut source) = Self::parse(text, format, around);
        if let Some(config) = &mut config {
            config.find_plans(folder, &mut findings);
            let (policies, problems) = policies::read(&config.policies, folder);
            findings.extend(problems);
            source = source.with_policies(&policies.texts);
            config.policy_files = policies;
            match pin_file::read(config, path) {
                Ok(pins) => config.pin_file = pins,
                Err(finding) => findings.push(finding),
            }
            source = source.with_pins(&PinFile::text(&config.pin_file.pins));
            findings = with_lines(findings, &Lines::of(text, format));
        }
        Ok((config, findings, source))
    }

    /// Adds the lines of the file at `path` to findings about it. A file that is no configuration has none.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn with_lines_of(path: &Path, findings: Vec<Finding>) -> anyhow::Result<Vec<Finding>> {
        let Ok(format) = file::format_of(path) else { return Ok(findings) };
        Ok(with_lines(findings, &Lines::of(&file::text(path)?, format)))
    }

    /// Finds the files of saved plans, whose paths are relative to `folder`.
    fn find_plans(&mut self, folder: &Path, findings: &mut Vec<Finding>) {
        for (id, app) in &mut self.apps {
            app.relative_to(folder);
            if let Some(Err(problem)) = app.plan_sources().map(PlanSources::files) {
                findings.push(Finding::new(&format!("/apps/{}/plans", escape(id)), problem));
            }
        }
    }

    /// Parses text; see [`Config::examine`].
    pub fn parse(
        text: &str,
        format: Format,
        around: Surroundings<'_>,
    ) -> (Option<Self>, Vec<Finding>, Source) {
        let lines = Lines::of(text, format);
        let mut value = match file::value(text, format) {
            Ok(value) => value,
            Err(finding) => return (None, with_lines(vec![finding], &lines), Source::default()),
        };
        let environment = around.environment;
        let mut filler = interpolate::Filler::new(around);
        let (filled, mut findings) = filler.apply("", &mut value);
        findings.extend(interpolate::typed(&mut value, &filled, schema::violations));
        let source = Source::of(&value, filled.iter().map(|one| one.pointer.clone()).collect());
        let sections = Sections::read(value.clone());
        let complete = sections.unreadable.is_empty();
        // Reading a section stops at its first bad key: read on without those that are known, to find the rest and what contradicts.
        let Sections { mut config, unreadable, findings: unread } = match complete {
            true => sections,
            false => read_without_bad_keys(value, &findings),
        };
        // The schema explains a value of the wrong type better, and does not show it.
        let explained = Explained::by(&findings);
        findings.extend(unread.into_iter().filter(|finding| !explained.contains(&finding.pointer)));
        if !unreadable.contains("auth") {
            let problems = config.auth.fill_from(|name| environment.get(name).cloned());
            findings.extend(problems.into_iter().map(|problem| auth_finding(&problem.path, problem.message)));
        }
        let bad: Vec<String> = findings.iter().map(|finding| finding.pointer.clone()).collect();
        let explained = Explained::by(&findings);
        let contradictions = config.problems(&unreadable, &bad).into_iter();
        findings.extend(contradictions.filter(|finding| complete || !explained.contains(&finding.pointer)));
        config.share_proxies();
        let mut findings = with_lines(findings, &lines);
        filler.hide(&mut findings);
        (complete.then_some(config), findings, source)
    }

    /// Applies both lists of trusted proxies to the whole server.
    fn share_proxies(&mut self) {
        let mut known: HashSet<String> = self.auth.trusted_proxies.iter().cloned().collect();
        let own = std::mem::take(&mut self.http.trusted_proxies).into_iter();
        self.auth.trusted_proxies.extend(own.filter(|proxy| known.insert(proxy.clone())));
        self.http.trusted_proxies.clone_from(&self.auth.trusted_proxies);
    }

    /// Adds the servers of an `mcpServers` file as apps.
    fn add_mcp_servers(&mut self, path: &Path) -> Result<(), Vec<Finding>> {
        let text = file::contents(path).map_err(|problem| vec![Finding::new("", problem)])?;
        let servers = mcp_file::read(path, &text, &environment())?;
        let taken: Vec<&str> =
            servers.keys().map(String::as_str).filter(|id| self.apps.contains_key(*id)).collect();
        if !taken.is_empty() {
            let taken = taken.join(", ");
            let problem = format!("the configuration already has an app of this name; rename one: {taken}");
            return Err(vec![Finding::new("", problem)]);
        }
        self.apps.extend(servers.into_iter().map(|(id, upstream)| (id, AppConfig::upstream(upstream))));
        Ok(())
    }
}

/// Reads the sections without the keys that have `findings`, and without those that are found bad then. Unreadable are those that stay so.
fn read_without_bad_keys(mut value: Value, findings: &[Finding]) -> Sections {
    /// Bad keys of one section that no schema finds.
    const MOST: usize = 20;
    prune(&mut value, findings);
    let mut found = Vec::new();
    let mut sections = Sections::read(value.clone());
    for _ in 0..MOST {
        if sections.findings.is_empty() {
            break;
        }
        prune(&mut value, &sections.findings);
        found.append(&mut sections.findings);
        sections = Sections::read(value.clone());
        // What is around a key that was taken out may lack it now.
        let explained = Explained::by(&found);
        sections.findings.retain(|finding| !explained.contains(&finding.pointer));
    }
    sections.findings.append(&mut found);
    sections
}

/// Removes the keys with findings.
fn prune(value: &mut Value, findings: &[Finding]) {
    let mut bad: HashMap<&str, HashSet<String>> = HashMap::new();
    for (around, key) in findings.iter().filter_map(|finding| finding.pointer.rsplit_once('/')) {
        bad.entry(around).or_default().insert(unescape(key));
    }
    for (around, keys) in bad {
        if let Some(Value::Object(fields)) = value.pointer_mut(around) {
            fields.retain(|key, _| !keys.contains(key));
        }
    }
}

/// Places at, above and below those of findings.
struct Explained {
    at: HashSet<String>,
    above: HashSet<String>,
}

impl Explained {
    fn by(findings: &[Finding]) -> Self {
        let at: HashSet<String> = findings.iter().map(|finding| finding.pointer.clone()).collect();
        let above = at.iter().flat_map(|pointer| ancestors(pointer)).map(str::to_owned).collect();
        Self { at, above }
    }

    fn contains(&self, pointer: &str) -> bool {
        self.above.contains(pointer) || ancestors(pointer).any(|pointer| self.at.contains(pointer))
    }
}

/// The pointer, and those of everything around its place but the whole file.
fn ancestors(pointer: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(pointer), |pointer| pointer.rsplit_once('/').map(|(around, _)| around))
        .filter(|pointer| !pointer.is_empty())
}
