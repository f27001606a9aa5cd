//! Foreign names of columns, as `--map` gives them.

use std::str::FromStr;

use super::column::Column;
use super::error::Error;
use super::formats::normalize_name;

/// A foreign name of a column, as `views=view_count`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMapping {
    /// Normalized.
    pub(super) theirs: String,
    pub(super) ours: Column,
}

impl FromStr for ColumnMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (theirs, ours) = text
            .rsplit_once('=')
            .map(|(theirs, ours)| (normalize_name(theirs), ours.trim()))
            .filter(|(theirs, _)| !theirs.is_empty())
            .ok_or("write the file's column, `=`, and the column that it is, as views=view_count")?;
        let ours = Column::from_name(ours)
            .ok_or_else(|| format!("there is no column `{ours}`: choose one of {}", Column::list_names()))?;
        Ok(ColumnMapping { theirs, ours })
    }
}

/// Fails if a name is on the same side of two mappings.
pub fn check(mappings: &[ColumnMapping]) -> Result<(), Error> {
    for (n, mapping) in mappings.iter().enumerate() {
        let earlier = &mappings[..n];
        if earlier.iter().any(|other| other.theirs == mapping.theirs) {
            return Err(Error::MappedTwice(mapping.theirs.clone()));
        }
        if earlier.iter().any(|other| other.ours == mapping.ours) {
            return Err(Error::MappedTwice(mapping.ours.name().to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_mappings_are_rejected() {
        for text in ["views", "=view_count", " =view_count", "views=", "views=viewz"] {
            assert!(text.parse::<ColumnMapping>().is_err(), "{text}");
        }
        assert!("views=viewz".parse::<ColumnMapping>().unwrap_err().contains("view_count"));
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>();
        check(&parse(&["Post ID=external_id", "a=b=username", "external_id=description"])).unwrap();
        assert!(check(&parse(&["a=name", "A=description"])).is_err());
        assert!(check(&parse(&["a/b=name", "a.b=description"])).is_err());
        assert!(check(&parse(&["a=name", "b=name"])).is_err());
    }
}
