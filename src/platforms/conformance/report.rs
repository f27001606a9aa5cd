//! The result of every rule.

use serde::Serialize;

use crate::model::platform::Platform;

/// Whether a collector follows a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleOutcome {
    Pass,
    Fail,
    /// The rule could not be checked or does not apply.
    Skip,
}

/// The result of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleResult {
    pub platform: Platform,
    pub rule: &'static str,
    pub outcome: RuleOutcome,
    /// The requirement.
    pub means: &'static str,
    /// Why the rule failed or was skipped, or a remark.
    pub detail: Option<String>,
}

/// The result of a check that found no violation.
pub(super) enum Verdict {
    Pass,
    PassWithRemark(String),
    Skip(String),
}

/// A verdict, or the violation of the rule.
pub(super) type CheckResult = Result<Verdict, String>;

pub(super) fn skip(reason: &str) -> CheckResult {
    Ok(Verdict::Skip(reason.to_owned()))
}

/// The results of one platform.
pub(super) struct RuleReport {
    platform: Platform,
    pub(super) results: Vec<RuleResult>,
}

impl RuleReport {
    pub(super) fn new(platform: Platform) -> Self {
        RuleReport { platform, results: Vec::new() }
    }

    pub(super) fn add(&mut self, rule: &'static str, means: &'static str, result: CheckResult) {
        let (outcome, detail) = match result {
            Ok(Verdict::Pass) => (RuleOutcome::Pass, None),
            Ok(Verdict::PassWithRemark(detail)) => (RuleOutcome::Pass, Some(detail)),
            Ok(Verdict::Skip(detail)) => (RuleOutcome::Skip, Some(detail)),
            Err(detail) => (RuleOutcome::Fail, Some(detail)),
        };
        self.results.push(RuleResult { platform: self.platform, rule, outcome, means, detail });
    }
}
