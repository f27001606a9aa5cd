//! Parsers of option values.

use std::error::Error;

/// A parser for an option with a list of values, which help and errors show.
pub(super) fn one_of<T>(
    values: impl Into<clap::builder::PossibleValuesParser>,
) -> impl clap::builder::TypedValueParser<Value = T>
where
    T: std::str::FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    use clap::builder::TypedValueParser;
    values.into().try_map(|value| value.parse::<T>())
}

/// Parses a name with the rules of the API.
pub(super) fn parse_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    match name.chars().count() {
        1..=255 if !name.contains(char::is_control) => Ok(name.to_owned()),
        _ => Err("a name has 1 to 255 characters and no control characters".to_owned()),
    }
}
