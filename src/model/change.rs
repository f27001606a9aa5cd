//! Figures of a window compared with the previous one, rounded half away from zero.

use schemars::JsonSchema;
use serde::Serialize;

/// A value of the window compared with the previous window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Change<T> {
    /// Value of the window; null if unknown.
    #[schemars(example = 54_000)]
    pub current: T,
    /// Value of the previous window; null if unknown.
    #[schemars(example = 48_000)]
    pub previous: T,
    /// `current` minus `previous`; null if one is unknown.
    #[schemars(example = 6_000)]
    pub change: T,
    /// `change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown.
    #[schemars(example = 12.5)]
    pub change_percent: Option<f64>,
}

impl Change<i64> {
    /// Compares counts.
    pub fn from_counts(current: i64, previous: i64) -> Self {
        let change = current - previous;
        Change { current, previous, change, change_percent: percent(change, previous) }
    }
}

impl Change<Option<i64>> {
    /// Compares levels, which may be unknown.
    pub fn from_levels(current: Option<i64>, previous: Option<i64>) -> Self {
        let change = current.zip(previous).map(|(current, previous)| current - previous);
        let change_percent = change.zip(previous).and_then(|(change, previous)| percent(change, previous));
        Change { current, previous, change, change_percent }
    }
}

impl Change<Option<f64>> {
    /// Compares rates in millionths, as of [`engagement_rate_ppm`].
    pub fn from_rates(current: Option<i64>, previous: Option<i64>) -> Self {
        let Change { change, change_percent, .. } = Change::from_levels(current, previous);
        let decimal = |millionths: Option<i64>| millionths.map(|millionths| millionths as f64 / 1e6);
        Change {
            current: decimal(current),
            previous: decimal(previous),
            change: decimal(change),
            change_percent,
        }
    }
}

/// Returns the engagement per view in millionths; unknown without views.
pub fn engagement_rate_ppm(engagement: i64, views: i64) -> Option<i64> {
    (views > 0).then(|| rounded_quotient(i128::from(engagement) * 1_000_000, views.into()))
}

fn percent(change: i64, previous: i64) -> Option<f64> {
    let tenths =
        (previous != 0).then(|| rounded_quotient(i128::from(change) * 1_000, i128::from(previous).abs()))?;
    Some(tenths as f64 / 10.0)
}

/// Divides by a positive number, rounding half away from zero.
pub(super) fn rounded_quotient(numerator: i128, denominator: i128) -> i64 {
    // Half of an odd denominator may be rounded down: no quotient is exactly in the middle.
    let magnitude = (numerator.abs() + denominator / 2) / denominator;
    i64::try_from(magnitude).unwrap_or(i64::MAX) * numerator.signum() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_to_one_decimal_away_from_zero() {
        assert_eq!(Change::from_counts(150, 100).change_percent, Some(50.0));
        assert_eq!(Change::from_counts(1, 3).change_percent, Some(-66.7));
        assert_eq!(Change::from_counts(20_005, 20_000).change_percent, Some(0.0));
        assert_eq!(Change::from_counts(20_010, 20_000).change_percent, Some(0.1), "0.05 rounds up");
        assert_eq!(Change::from_counts(19_990, 20_000).change_percent, Some(-0.1), "-0.05 rounds down");
        assert_eq!(Change::from_counts(5, -10).change_percent, Some(150.0));
        assert_eq!(Change::from_counts(5, 0).change_percent, None);
    }

    #[test]
    fn unknown_levels_have_no_change() {
        assert_eq!(Change::from_levels(Some(5), None).change, None);
        assert_eq!(
            Change::from_levels(Some(5), Some(0)),
            Change { current: Some(5), previous: Some(0), change: Some(5), change_percent: None }
        );
    }

    #[test]
    fn rates_have_six_decimals_and_need_views() {
        assert_eq!(engagement_rate_ppm(1, 3), Some(333_333));
        assert_eq!(engagement_rate_ppm(-1, 3), Some(-333_333));
        assert_eq!(engagement_rate_ppm(1, 2_000_000), Some(1), "half a millionth rounds away from zero");
        assert_eq!((engagement_rate_ppm(1, 0), engagement_rate_ppm(1, -5)), (None, None));
        let compared = Change::from_rates(engagement_rate_ppm(1, 4), engagement_rate_ppm(1, 2));
        assert_eq!(
            (compared.current, compared.change, compared.change_percent),
            (Some(0.25), Some(-0.25), Some(-50.0))
        );
    }
}
