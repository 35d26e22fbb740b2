//! What a probe has found so far: also of a probe that its deadline ends.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::report::{Area, AreaReport, Finding, ProbeReport, grade};
use crate::{base::lock, fuzz::FuzzReport};

/// Findings of one probe; further ones are counted only.
const MOST_FINDINGS: usize = 300;

/// What a probe has found so far.
#[derive(Debug)]
pub(super) struct Notebook {
    started: Instant,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    findings: Vec<Finding>,
    checks: BTreeMap<Area, usize>,
    left_out: BTreeMap<Area, String>,
    server: Value,
    fuzz: Option<FuzzReport>,
    is_reached: bool,
}

impl Notebook {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), pages: Mutex::default() }
    }

    /// Counts a check, and keeps its finding.
    pub(super) fn check(&self, area: Area, finding: Option<Finding>) {
        *lock(&self.pages).checks.entry(area).or_default() += 1;
        finding.into_iter().for_each(|one| self.find(one));
    }

    /// Keeps a finding, unless there is the same.
    pub(super) fn find(&self, finding: Finding) {
        let mut pages = lock(&self.pages);
        let is_known = |one: &Finding| one.area == finding.area && one.problem == finding.problem;
        if pages.findings.len() < MOST_FINDINGS && !pages.findings.iter().any(is_known) {
            pages.findings.push(finding);
        }
    }

    pub(super) fn leave_out(&self, area: Area, reason: impl Into<String>) {
        lock(&self.pages).left_out.insert(area, reason.into());
    }

    /// The server answered a handshake, and describes itself so.
    pub(super) fn reached(&self, server: Value) {
        let mut pages = lock(&self.pages);
        (pages.server, pages.is_reached) = (server, true);
    }

    pub(super) fn describe(&self, key: &str, value: Value) {
        lock(&self.pages).server[key] = value;
    }

    pub(super) fn fuzzed(&self, report: FuzzReport) {
        lock(&self.pages).fuzz = Some(report);
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn report(&self, target: String, stopped: Option<String>) -> ProbeReport {
        let mut pages = std::mem::take(&mut *lock(&self.pages));
        pages
            .findings
            .sort_by(|one, other| one.area.cmp(&other.area).then(other.severity.cmp(&one.severity)));
        let areas: Vec<AreaReport> = Area::ALL
            .into_iter()
            .map(|area| {
                let checks = pages.checks.get(&area).copied().unwrap_or_default();
                let of_area = pages.findings.iter().filter(|one| one.area == area);
                let is_tried = checks > 0 || of_area.clone().next().is_some();
                AreaReport {
                    area,
                    grade: is_tried.then(|| grade(of_area.map(|one| one.severity))),
                    checks,
                    left_out: pages.left_out.get(&area).cloned(),
                }
            })
            .collect();
        ProbeReport {
            target,
            server: pages.server,
            grade: areas.iter().filter_map(|one| one.grade).max().filter(|_| pages.is_reached),
            areas,
            findings: pages.findings,
            fuzz: pages.fuzz,
            seconds: self.started.elapsed().as_secs_f64(),
            stopped,
        }
    }
}
