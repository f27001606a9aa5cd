//! Counters of the Graph API, which are in an array: each element of `insights.data` has a name and a value.

use std::collections::BTreeMap;

use super::raw_row::RawValue;

const ARRAY: &str = "insights.data.";
const PERIOD: RawValue<'static> = RawValue::Invalid(
    "is of a period, which is no counter: request the insights of the post with `lifetime`",
);

/// What a field of an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Name,
    Period,
    Value,
}

/// A field of an element of the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InsightField {
    element: usize,
    part: Part,
}

impl InsightField {
    /// Parses the normalized name of a column, as `insights.data.0.values.0.value`.
    pub fn parse(name: &str) -> Option<Self> {
        let (element, field) = name.strip_prefix(ARRAY)?.split_once('.')?;
        let part = match field {
            "name" => Part::Name,
            "period" => Part::Period,
            "values.0.value" | "total_value.value" => Part::Value,
            _ => return None,
        };
        Some(InsightField { element: element.parse().ok()?, part })
    }
}

#[derive(Debug, Default)]
struct Insight<'r> {
    name: Option<String>,
    is_of_period: bool,
    value: RawValue<'r>,
}

/// The insights of a row.
#[derive(Debug, Default)]
pub struct Insights<'r>(BTreeMap<usize, Insight<'r>>);

impl<'r> Insights<'r> {
    pub fn add(&mut self, field: InsightField, value: RawValue<'r>) {
        let insight = self.0.entry(field.element).or_default();
        let text = |raw: RawValue<'_>| raw.into_text().ok().flatten().map(|text| text.to_lowercase());
        match field.part {
            Part::Name => insight.name = text(value),
            Part::Period => insight.is_of_period = text(value).is_some_and(|period| period != "lifetime"),
            Part::Value => insight.value = value,
        }
    }

    /// Returns the values, each with the name of its column, as `insights.views`.
    pub fn into_values(self) -> impl Iterator<Item = (String, RawValue<'r>)> {
        self.0.into_values().filter_map(|Insight { name, is_of_period, value }| {
            Some((format!("insights.{}", name?), if is_of_period { PERIOD } else { value }))
        })
    }
}
