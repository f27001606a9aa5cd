//! Counters as tools and spreadsheets write them.

use super::raw_row::RawValue;
use crate::model::counters::Counters;

/// How tools write that they do not know a value, in lower case.
const UNKNOWN: [&str; 8] = ["", "--", "-", "nan", "n/a", "null", "undefined", "\\n"];
/// How sources write a hidden counter.
const HIDDEN: i64 = -1;
/// Digits between separators of thousands.
const GROUP_DIGITS: usize = 3;

/// Why a value is no counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidCount {
    /// `1.2K`
    Rounded,
    /// `1.234`
    Ambiguous,
    Negative,
    NoInteger,
}

/// Whether a counter or a time is written as unknown.
pub fn is_unknown(text: &str) -> bool {
    let text = text.trim();
    text.len() <= "undefined".len() && UNKNOWN.iter().any(|unknown| text.eq_ignore_ascii_case(unknown))
}

/// Parses a counter; `None` is unknown.
pub fn parse_count(value: &RawValue<'_>) -> Result<Option<i64>, InvalidCount> {
    let number = match value {
        RawValue::Unknown => return Ok(None),
        RawValue::Text(text) => match parse_text(text)? {
            Some(number) => number,
            None => return Ok(None),
        },
        other => other.to_integer().ok_or(InvalidCount::NoInteger)?,
    };
    match number {
        HIDDEN => Ok(None),
        0..=Counters::MAX_VALUE => Ok(Some(number)),
        ..0 => Err(InvalidCount::Negative),
        _ => Err(InvalidCount::NoInteger),
    }
}

fn parse_text(text: &str) -> Result<Option<i64>, InvalidCount> {
    if let Ok(number) = text.parse() {
        return Ok(Some(number));
    }
    let text = text.trim();
    if is_unknown(text) {
        return Ok(None);
    }
    let Some(number) = remove_groups(text) else {
        return Err(if is_rounded(text) { InvalidCount::Rounded } else { InvalidCount::NoInteger });
    };
    if number.split_once('.').is_some_and(|(_, fraction)| is_group(fraction)) {
        return Err(InvalidCount::Ambiguous);
    }
    let number = number.parse().ok().or_else(|| RawValue::Decimal(number.parse().ok()?).to_integer());
    number.map(Some).ok_or(InvalidCount::NoInteger)
}

/// Removes separators of thousands. `None` if these are not between groups of three digits, or if it is no number.
fn remove_groups(text: &str) -> Option<String> {
    let (integer, fraction) = text.find(['.', 'e', 'E']).map_or((text, ""), |end| text.split_at(end));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) {
        // Groups divided by dots.
        return None;
    }
    let digits = integer.strip_prefix('-').unwrap_or(integer);
    let separator = digits.chars().find(|letter| !letter.is_ascii_digit());
    let Some(separator) = separator else { return Some(text.to_owned()) };
    let mut groups = digits.split(separator);
    let first = groups.next()?;
    let is_valid = [',', ' ', '\u{a0}', '\u{202f}'].contains(&separator)
        && (1..=GROUP_DIGITS).contains(&first.len())
        && first.bytes().all(|byte| byte.is_ascii_digit())
        && groups.all(is_group);
    is_valid.then(|| text.replace(separator, ""))
}

fn is_group(text: &str) -> bool {
    text.len() == GROUP_DIGITS && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is a number followed by a letter or a word, as `48.5M` and `3,4 Mio.`.
fn is_rounded(text: &str) -> bool {
    let word = text.trim_start_matches(|letter: char| {
        letter.is_ascii_digit() || letter.is_whitespace() || matches!(letter, '.' | ',')
    });
    let is_number = text.starts_with(|letter: char| letter.is_ascii_digit());
    let letters = word.trim_end_matches(['.', '+']);
    is_number && !letters.is_empty() && letters.chars().all(|letter| letter.is_alphabetic() || letter == ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Result<Option<i64>, InvalidCount> {
        parse_count(&RawValue::text(text))
    }

    #[test]
    fn counters_of_tools_are_parsed() {
        for (text, expected) in [
            ("1234", 1_234),
            (" 1234 ", 1_234),
            ("1,234", 1_234),
            ("1 234", 1_234),
            ("1\u{a0}234\u{202f}567".replace('\u{202f}', "\u{a0}").as_str(), 1_234_567),
            ("12\u{202f}345", 12_345),
            ("1,234,567", 1_234_567),
            ("25.0", 25),
            ("25.00", 25),
            ("1,234.0", 1_234),
            ("1.2e+01", 12),
            ("0", 0),
        ] {
            assert_eq!(count(text), Ok(Some(expected)), "{text}");
        }
        for unknown in
            ["", " ", "--", "-", "NAN", "NaN", "n/a", "N/A", "NULL", "undefined", "\\N", "-1", "-1.0"]
        {
            assert_eq!(count(unknown), Ok(None), "{unknown}");
        }
        assert_eq!(parse_count(&RawValue::Decimal(-1.0)), Ok(None));
        assert_eq!(parse_count(&RawValue::Decimal(12.0)), Ok(Some(12)));
    }

    #[test]
    fn unclear_counters_are_refused() {
        use InvalidCount::{Ambiguous, Negative, NoInteger, Rounded};
        for (text, expected) in [
            ("1.234", Ambiguous),
            ("12.000", Ambiguous),
            ("1.2K", Rounded),
            ("48.5M", Rounded),
            ("3,4 Mio.", Rounded),
            ("12万", Rounded),
            ("1,2 тыс.", Rounded),
            ("2 mil", Rounded),
            ("10K+", Rounded),
            ("-2", Negative),
            ("-1,234", Negative),
            ("1.5", NoInteger),
            ("1,23", NoInteger),
            ("1,2345", NoInteger),
            ("1234,567", NoInteger),
            ("1.234.567", NoInteger),
            ("1,234 567", NoInteger),
            ("x", NoInteger),
            ("K", NoInteger),
            ("1 2", NoInteger),
            ("99999999999999999999", NoInteger),
            ("1e30", NoInteger),
        ] {
            assert_eq!(count(text), Err(expected), "{text}");
        }
    }
}
