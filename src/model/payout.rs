//! Payouts for the posts of a collection: a calculation in integers, exact to the currency's smallest unit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{MAX_BONUSES, MAX_MONEY_DIGITS};

/// Decimals of a rate, and of the unit in which amounts are added up.
const MICRO_DECIMALS: u32 = 6;
const MICROS: i128 = 10_i128.pow(MICRO_DECIMALS);

/// Which views are paid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PayoutCount {
    /// The latest counter.
    #[default]
    Lifetime,
    /// Gains of the window.
    Window,
}

/// How posts of a collection are paid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Payout {
    /// Currency (ISO 4217).
    #[schemars(length(min = 3, max = 3), extend("examples" = ["EUR"]))]
    pub currency: String,
    /// Views that are paid: the latest counters, or the gains of the window.
    #[serde(default)]
    pub count: PayoutCount,
    /// Amount for a thousand views, with up to six decimals.
    #[schemars(length(max = MAX_MONEY_DIGITS), extend("x-nullable" = true, "examples" = ["4.50"]))]
    pub per_thousand_views: Option<String>,
    /// Amounts for views that a post reaches; those of all reached ones are added. Only with `lifetime`.
    #[serde(default)]
    #[schemars(length(max = MAX_BONUSES), extend("x-deferred" = true))]
    pub bonuses: Vec<Bonus>,
    /// Views below which a post earns nothing.
    #[schemars(range(min = 0, max = i64::MAX), extend("x-nullable" = true, "examples" = [1_000]))]
    pub minimum_views: Option<i64>,
    /// The most that a post earns, bonuses included.
    #[schemars(length(max = MAX_MONEY_DIGITS), extend("x-nullable" = true, "examples" = ["500"]))]
    pub maximum_per_video: Option<String>,
}

/// An amount for reaching a number of views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bonus {
    /// Views to reach.
    #[schemars(range(min = 1, max = i64::MAX), extend("examples" = [100_000]))]
    pub views: i64,
    /// Amount.
    #[schemars(length(max = MAX_MONEY_DIGITS), extend("examples" = ["50"]))]
    pub amount: String,
}

/// A sum of money in the currency's smallest unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money {
    pub minor_units: i128,
    pub decimals: u32,
}

/// Why a post earns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnpaidReason {
    /// Excluded from the collection by hand.
    Excluded,
    /// The platform does not show it.
    Unavailable,
    /// Fewer views than `minimum_views`.
    BelowMinimum,
}

/// A payout whose amounts are parsed.
#[derive(Debug, Clone)]
pub struct PayoutTerms {
    pub count: PayoutCount,
    decimals: u32,
    minimum_views: Option<i64>,
    /// In micros for a thousand views.
    rate: i128,
    /// Views, and the amount in micros.
    bonuses: Vec<(i64, i128)>,
    maximum: Option<i128>,
}

impl Money {
    /// Adds an amount of the same currency.
    pub const fn plus(self, other: Money) -> Money {
        Money { minor_units: self.minor_units + other.minor_units, ..self }
    }
}

impl UnpaidReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            UnpaidReason::Excluded => "excluded",
            UnpaidReason::Unavailable => "unavailable",
            UnpaidReason::BelowMinimum => "below_minimum",
        }
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_i128.pow(self.decimals);
        let (whole, part) = (self.minor_units / unit, self.minor_units % unit);
        match self.decimals {
            0 => write!(f, "{whole}"),
            decimals => write!(f, "{whole}.{part:0width$}", width = decimals as usize),
        }
    }
}

/// Reads `digits[.digits]` with up to `decimals` decimals, in micros.
fn parse_micros(text: &str, decimals: u32) -> Option<i128> {
    let (whole, part) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, part)) => (whole, part),
        None => (text, ""),
    };
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_valid = !whole.is_empty()
        && whole.len() <= MAX_MONEY_DIGITS - 1 - MICRO_DECIMALS as usize
        && part.len() <= decimals as usize
        && is_number(whole)
        && is_number(part);
    if !is_valid {
        return None;
    }
    let part: i128 = format!("{part:0<width$}", width = MICRO_DECIMALS as usize).parse().ok()?;
    Some(whole.parse::<i128>().ok()? * MICROS + part)
}

/// The decimals of a currency's amounts; `None` for an unknown one.
pub fn currency_decimals(currency: &str) -> Option<u32> {
    let contains = |codes: &str| codes.split(' ').any(|code| code == currency);
    match currency {
        _ if contains(WITHOUT_DECIMALS) => Some(0),
        _ if contains(WITH_TWO_DECIMALS) => Some(2),
        _ if contains(WITH_THREE_DECIMALS) => Some(3),
        _ if contains(WITH_FOUR_DECIMALS) => Some(4),
        _ => None,
    }
}

const WITHOUT_DECIMALS: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
const WITH_TWO_DECIMALS: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN \
    BWP BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD \
    GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP \
    MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK \
    SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG \
    YER ZAR ZMW ZWG";
const WITH_THREE_DECIMALS: &str = "BHD IQD JOD KWD LYD OMR TND";
const WITH_FOUR_DECIMALS: &str = "CLF UYW";

impl Payout {
    /// The fields that are invalid, and why. Without any, [`Payout::terms`] has a value.
    pub fn violations(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let decimals = currency_decimals(&self.currency);
        if decimals.is_none() {
            found.push(("currency".to_owned(), "must be an ISO 4217 code in upper case, as EUR".to_owned()));
        }
        let mut check = |field: String, text: Option<&String>, max: u32| {
            if text.is_some_and(|text| parse_micros(text, max).is_none()) {
                let example = if max == 0 { "12" } else { "12.5" };
                let message = format!("must be a number with at most {max} decimals, as {example}");
                found.push((field, message));
            }
        };
        // Without a known currency no amount is reported for its decimals.
        let money = decimals.unwrap_or(MICRO_DECIMALS);
        check("per_thousand_views".to_owned(), self.per_thousand_views.as_ref(), MICRO_DECIMALS);
        check("maximum_per_video".to_owned(), self.maximum_per_video.as_ref(), money);
        for (number, bonus) in self.bonuses.iter().enumerate() {
            check(format!("bonuses[{number}].amount"), Some(&bonus.amount), money);
        }
        if self.count == PayoutCount::Window && !self.bonuses.is_empty() {
            let message = "must be empty unless count is lifetime".to_owned();
            found.push(("bonuses".to_owned(), message));
        }
        found
    }

    /// Its terms, if it is valid.
    pub fn terms(&self) -> Option<PayoutTerms> {
        let decimals = currency_decimals(&self.currency)?;
        let optional = |text: &Option<String>, max| match text {
            Some(text) => parse_micros(text, max).map(Some),
            None => Some(None),
        };
        let bonus = |bonus: &Bonus| Some((bonus.views, parse_micros(&bonus.amount, decimals)?));
        Some(PayoutTerms {
            count: self.count,
            decimals,
            minimum_views: self.minimum_views,
            rate: optional(&self.per_thousand_views, MICRO_DECIMALS)?.unwrap_or(0),
            bonuses: self.bonuses.iter().map(bonus).collect::<Option<_>>()?,
            maximum: optional(&self.maximum_per_video, decimals)?,
        })
    }
}

impl PayoutTerms {
    pub const fn zero(&self) -> Money {
        Money { minor_units: 0, decimals: self.decimals }
    }

    /// Why a post earns nothing: the first reason that holds.
    pub fn unpaid_reason(&self, is_excluded: bool, is_unavailable: bool, views: i64) -> Option<UnpaidReason> {
        match () {
            () if is_excluded => Some(UnpaidReason::Excluded),
            () if is_unavailable => Some(UnpaidReason::Unavailable),
            () if self.minimum_views.is_some_and(|minimum| views < minimum) => {
                Some(UnpaidReason::BelowMinimum)
            }
            () => None,
        }
    }

    /// What a post earns that is paid, rounded half up.
    pub fn amount(&self, views: i64) -> Money {
        let reached = self.bonuses.iter().filter(|(bound, _)| views >= *bound);
        let bonuses: i128 = reached.map(|(_, amount)| amount).sum();
        // In thousandths of micros.
        let earned = self.rate * i128::from(views.max(0)) + bonuses * 1_000;
        let earned = self.maximum.map_or(earned, |maximum| earned.min(maximum * 1_000));
        let unit = 1_000 * 10_i128.pow(MICRO_DECIMALS - self.decimals);
        Money { minor_units: (earned + unit / 2) / unit, decimals: self.decimals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payout(currency: &str, rate: Option<&str>) -> Payout {
        Payout {
            currency: currency.to_owned(),
            count: PayoutCount::Lifetime,
            per_thousand_views: rate.map(str::to_owned),
            bonuses: Vec::new(),
            minimum_views: None,
            maximum_per_video: None,
        }
    }

    fn amount(payout: &Payout, views: i64) -> String {
        payout.terms().unwrap().amount(views).to_string()
    }

    #[test]
    fn amounts_are_rounded_half_up_to_the_smallest_unit() {
        for (currency, rate, views, expected) in [
            ("EUR", "4.50", 12_345, "55.55"),
            ("EUR", "4.50", 1_110, "5.00"),
            ("EUR", "5", 1_001, "5.01"),
            ("EUR", "5", 1_000, "5.00"),
            ("EUR", "0.000001", 4_999_999_999, "5.00"),
            ("EUR", "0.000001", 4_994_999_999, "4.99"),
            ("EUR", "0.000001", 4_995_000_000, "5.00"),
            ("JPY", "120", 12_345, "1481"),
            ("JPY", "120", 12_346, "1482"),
            ("KWD", "1.5", 333, "0.500"),
            ("CLF", "0.1", 5, "0.0005"),
            ("EUR", "4.5", -7, "0.00"),
            ("EUR", "999999999999.999999", i64::MAX, "9223372036854775797776627963.15"),
        ] {
            assert_eq!(amount(&payout(currency, Some(rate)), views), expected, "{currency} {rate} {views}");
        }
        assert_eq!(amount(&payout("EUR", None), 1_000_000), "0.00");
    }

    #[test]
    fn bonuses_add_up_to_the_maximum() {
        let bonus = |views, amount: &str| Bonus { views, amount: amount.to_owned() };
        let mut terms = payout("USD", Some("2"));
        terms.bonuses = vec![bonus(10_000, "50"), bonus(100_000, "250.50")];
        assert_eq!(amount(&terms, 9_999), "20.00");
        assert_eq!(amount(&terms, 10_000), "70.00");
        assert_eq!(amount(&terms, 100_000), "500.50");
        terms.maximum_per_video = Some("300".to_owned());
        assert_eq!(amount(&terms, 100_000), "300.00");
    }

    #[test]
    fn every_invalid_field_is_named() {
        let mut terms = payout("euro", Some("4.1234567"));
        terms.maximum_per_video = Some("-1".to_owned());
        terms.bonuses = vec![Bonus { views: 1, amount: "1e3".to_owned() }];
        terms.count = PayoutCount::Window;
        let fields: Vec<_> = terms.violations().into_iter().map(|(field, _)| field).collect();
        assert_eq!(
            fields,
            ["currency", "per_thousand_views", "maximum_per_video", "bonuses[0].amount", "bonuses"]
        );
        for amount in ["", ".", "1.", ".5", "+1", "1,5", " 1", "1234567890123"] {
            assert!(!payout("EUR", Some(amount)).violations().is_empty(), "{amount}");
        }
        let mut yen = payout("JPY", Some("0.5"));
        assert_eq!(yen.violations(), []);
        yen.maximum_per_video = Some("0.5".to_owned());
        assert_eq!(yen.violations()[0].1, "must be a number with at most 0 decimals, as 12");
    }

    #[test]
    fn first_reason_holds() {
        let mut terms = payout("EUR", None);
        terms.minimum_views = Some(100);
        let reason =
            |excluded, unavailable, views| terms.terms().unwrap().unpaid_reason(excluded, unavailable, views);
        assert_eq!(reason(true, true, 1), Some(UnpaidReason::Excluded));
        assert_eq!(reason(false, true, 1), Some(UnpaidReason::Unavailable));
        assert_eq!(reason(false, false, 99), Some(UnpaidReason::BelowMinimum));
        assert_eq!(reason(false, false, 100), None);
    }
}
