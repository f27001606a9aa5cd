//! The quota usage that the Graph API reports in headers.

use chrono::TimeDelta;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::platforms::coerce;

/// Requests slow down from this share of the quota on.
const SLOWDOWN_PERCENT: i64 = 80;
const MAX_REGAIN_MINUTES: i64 = 24 * 60;

/// The highest usage over all counted resources.
pub(super) struct QuotaUsage {
    percent: i64,
    /// How long until a used-up quota is available again.
    pub(super) regain_after: Option<TimeDelta>,
}

impl QuotaUsage {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let parse =
            |name: &str| -> Option<Value> { serde_json::from_slice(headers.get(name)?.as_bytes()).ok() };
        let mut usage = QuotaUsage { percent: 0, regain_after: None };
        if let Some(app) = parse("x-app-usage") {
            usage.add(&app);
        }
        if let Some(Value::Object(accounts)) = parse("x-business-use-case-usage") {
            accounts.values().filter_map(Value::as_array).flatten().for_each(|entry| usage.add(entry));
        }
        usage
    }

    fn add(&mut self, entry: &Value) {
        for name in ["call_count", "total_time", "total_cputime"] {
            self.percent = self.percent.max(coerce::count(entry.get(name)).unwrap_or(0));
        }
        let minutes = coerce::count(entry.get("estimated_time_to_regain_access")).unwrap_or(0);
        if minutes > 0 {
            let regain_after = TimeDelta::minutes(minutes.min(MAX_REGAIN_MINUTES));
            self.regain_after = self.regain_after.max(Some(regain_after));
        }
    }

    /// Returns the pause before the next request: the reported one, else from 80 percent on one that grows with the usage.
    pub(super) fn cooldown(&self) -> Option<TimeDelta> {
        let slowdown = (self.percent >= SLOWDOWN_PERCENT)
            .then(|| TimeDelta::seconds(30) * (self.percent.min(120) - SLOWDOWN_PERCENT + 1) as i32);
        self.regain_after.or(slowdown)
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn cooldown_starts_at_80_percent_or_is_the_reported_one() {
        let cooldown = |name: &'static str, value: &'static str| {
            let headers =
                HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            QuotaUsage::from_headers(&headers).cooldown().map(|cooldown| cooldown.num_seconds())
        };
        assert_eq!(cooldown("x-app-usage", r#"{"call_count":28,"total_time":25,"total_cputime":25}"#), None);
        assert_eq!(cooldown("x-app-usage", r#"{"call_count":28,"total_time":80}"#), Some(30));
        assert_eq!(cooldown("x-app-usage", r#"{"call_count":100}"#), Some(630));
        assert_eq!(cooldown("x-app-usage", "nonsense"), None);
        let entries =
            r#"{"178":[{"type":"instagram","call_count":100,"estimated_time_to_regain_access":7}]}"#;
        assert_eq!(cooldown("x-business-use-case-usage", entries), Some(420));
    }
}
