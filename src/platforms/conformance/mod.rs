//! Checks whether a collector follows the contract of `docs/http-source.md`: requests every operation and validates every
//! response against the OpenAPI document and the rules of that page.
//!
//! It is stricter than the client of the `http` source, which accepts what it can read.

mod account_reader;
mod account_rules;
mod post_rules;
mod report;
mod schema;
mod validating_client;

pub use self::account_reader::Samples;
use self::report::RuleReport;
pub use self::report::{RuleOutcome, RuleResult};
pub use self::validating_client::Collector;
use self::validating_client::ValidatingClient;
use crate::model::platform::Platform;

/// Checks every rule on one platform. Rules that need more than `samples` has are skipped.
pub async fn check(
    collector: &Collector,
    platform: Platform,
    samples: &Samples,
) -> Result<Vec<RuleResult>, String> {
    let mut client = ValidatingClient::for_platform(collector, platform)?;
    let mut operations = RuleReport::new(platform);
    let account = account_rules::check_accounts(&mut client, samples, &mut operations).await;
    post_rules::check_posts(&mut client, samples, account.as_ref(), &mut operations).await;
    account_rules::check_token(&mut client, &mut operations).await;
    let mut report = RuleReport::new(platform);
    client.report_response_rules(&mut report);
    report.results.append(&mut operations.results);
    Ok(report.results)
}
