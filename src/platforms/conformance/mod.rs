//! Whether a collector keeps to the open contract of `docs/http-source.md`: every operation is asked, every answer is
//! held against the OpenAPI document, and each rule is told as kept, broken or not tried.
//!
//! It is stricter than the client, which takes what it can understand.

mod validating_client;
mod post_rules;
mod account_rules;
mod schema;

use serde::Serialize;
use url::Url;

use self::validating_client::{Asker, CODES, DOCUMENTED, JSON, TIMELY};
use super::http_client::RequestLimits;
use crate::model::platform::Platform;
use crate::model::secret::Secret;

/// The collector to be checked.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The address below which `/v1/…` lies.
    pub base: Url,
    pub token: Option<Secret>,
    pub limits: RequestLimits,
}

/// What the collector has of a platform, as far as whoever checks it knows.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    pub username: Option<String>,
    /// The platform's id of the account.
    pub account_id: Option<String>,
    /// The platform's id of a post.
    pub post_id: Option<String>,
    pub shortcode: Option<String>,
}

/// How a rule fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleOutcome {
    Pass,
    Fail,
    /// It could not be tried, or does not apply.
    Skip,
}

/// One rule of the contract, and whether it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleResult {
    pub platform: Platform,
    pub rule: &'static str,
    pub outcome: RuleOutcome,
    /// The rule in words.
    pub means: &'static str,
    /// What is wrong, why the rule was not tried, or what else is worth to know.
    pub detail: Option<String>,
}

/// What a rule came to.
enum Verdict {
    Kept,
    /// Kept, with something to know.
    But(String),
    Broken(String),
    Untried(String),
}

/// The findings so far.
struct Findings {
    platform: Platform,
    list: Vec<RuleResult>,
}

impl Findings {
    fn add(&mut self, rule: &'static str, means: &'static str, verdict: Verdict) {
        let (outcome, detail) = match verdict {
            Verdict::Kept => (RuleOutcome::Pass, None),
            Verdict::But(detail) => (RuleOutcome::Pass, Some(detail)),
            Verdict::Broken(detail) => (RuleOutcome::Fail, Some(detail)),
            Verdict::Untried(detail) => (RuleOutcome::Skip, Some(detail)),
        };
        self.list.push(RuleResult { platform: self.platform, rule, outcome, means, detail });
    }
}

/// Asks a collector everything that it may be asked about a platform, and tells rule by rule how it fares.
pub async fn check(
    collector: &Collector,
    platform: Platform,
    known: &Samples,
) -> Result<Vec<RuleResult>, String> {
    let mut asker = Asker::new(collector, platform)?;
    let mut findings = Findings { platform, list: Vec::new() };
    account_rules::accounts(&mut asker, known, &mut findings).await;
    post_rules::token(&mut asker, collector, &mut findings).await;
    let mut general = Findings { platform, list: Vec::new() };
    for (rule, means) in [
        (TIMELY, "every request is answered in time and without a redirect, with at most 16 MiB"),
        (JSON, "every answer is a JSON object, of the type application/json"),
        (DOCUMENTED, "every answer with data has the shape of http-source.openapi.json"),
        (CODES, "every refusal has a code of the contract, the status that belongs to it, and a message"),
    ] {
        let verdict = match asker.told(rule) {
            (0, _) => Verdict::Untried("there was no such answer".to_owned()),
            (_, []) => Verdict::Kept,
            (_, faults) => Verdict::Broken(faults.join("; ")),
        };
        general.add(rule, means, verdict);
    }
    general.list.append(&mut findings.list);
    Ok(general.list)
}
