//! Finds the columns of files by their names, or by the foreign names that `--map` gives them.

use std::cell::Cell;
use std::path::Path;
use std::str::FromStr;

use super::column::Column;
use super::error::Error;

/// A foreign name of a column, as `views=view_count`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMapping {
    theirs: String,
    ours: Column,
}

impl FromStr for ColumnMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (theirs, ours) = text
            .rsplit_once('=')
            .map(|(theirs, ours)| (theirs.trim(), ours.trim()))
            .filter(|(theirs, _)| !theirs.is_empty())
            .ok_or("write the file's column, `=`, and the column that it is, as views=view_count")?;
        let ours = Column::from_name(ours)
            .ok_or_else(|| format!("there is no column `{ours}`: choose one of {}", Column::list_names()))?;
        Ok(ColumnMapping { theirs: theirs.to_owned(), ours })
    }
}

/// The names of columns in the files of an import.
pub struct ColumnNames(Vec<MappedColumn>);

struct MappedColumn {
    mapping: ColumnMapping,
    is_found: Cell<bool>,
}

/// The column that a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FoundColumn {
    column: Column,
    /// Whether `--map` names it: then it replaces the file's column of that name.
    is_mapped: bool,
}

impl ColumnNames {
    /// Fails if a name is on the same side of two mappings.
    pub fn new(mappings: &[ColumnMapping]) -> Result<Self, Error> {
        for (n, mapping) in mappings.iter().enumerate() {
            let earlier = &mappings[..n];
            if earlier.iter().any(|other| other.theirs.eq_ignore_ascii_case(&mapping.theirs)) {
                return Err(Error::MappedTwice(mapping.theirs.clone()));
            }
            if earlier.iter().any(|other| other.ours == mapping.ours) {
                return Err(Error::MappedTwice(mapping.ours.name().to_owned()));
            }
        }
        let mapped =
            |mapping: &ColumnMapping| MappedColumn { mapping: mapping.clone(), is_found: false.into() };
        Ok(ColumnNames(mappings.iter().map(mapped).collect()))
    }

    /// Returns the column that a name means; columns of other names are ignored.
    fn find(&self, name: &str) -> Option<FoundColumn> {
        match self.0.iter().find(|mapped| mapped.mapping.theirs.eq_ignore_ascii_case(name)) {
            Some(mapped) => {
                mapped.is_found.set(true);
                Some(FoundColumn { column: mapped.mapping.ours, is_mapped: true })
            }
            None => Some(FoundColumn { column: Column::from_name(name)?, is_mapped: false }),
        }
    }

    /// Returns the column that a field of a row without header means. A column that `--map` names has only its foreign name:
    /// the row may lack that field because its value is unknown.
    pub fn find_field(&self, name: &str) -> Option<Column> {
        let FoundColumn { column, is_mapped } = self.find(name)?;
        let has_foreign_name = self.0.iter().any(|mapped| mapped.mapping.ours == column);
        (is_mapped || !has_foreign_name).then_some(column)
    }

    /// Returns the columns that the names of a header mean, in any case and with spaces around them.
    pub fn find_all<'n>(
        &self,
        path: &Path,
        header: impl Iterator<Item = &'n str>,
    ) -> Result<Vec<Option<Column>>, Error> {
        let found: Vec<_> = header.map(|name| self.find(&name.trim().to_ascii_lowercase())).collect();
        let is_replaced = |own: FoundColumn| {
            !own.is_mapped && found.contains(&Some(FoundColumn { is_mapped: true, ..own }))
        };
        let columns: Vec<_> =
            found.iter().map(|own| own.filter(|own| !is_replaced(*own)).map(|own| own.column)).collect();
        for (n, column) in columns.iter().enumerate() {
            if let Some(duplicate) = column.filter(|column| columns[..n].contains(&Some(*column))) {
                return Err(Error::DuplicateColumn(path.to_owned(), duplicate.name()));
            }
        }
        if columns.contains(&Some(Column::PLATFORM)) {
            Ok(columns)
        } else {
            Err(Error::Header(path.to_owned()))
        }
    }

    /// Fails if no file has one of the mapped columns.
    pub fn check_all_found(&self) -> Result<(), Error> {
        match self.0.iter().find(|mapped| !mapped.is_found.get()) {
            Some(missing) => Err(Error::MappedColumnMissing(missing.mapping.theirs.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(mappings: &[&str]) -> Result<ColumnNames, Error> {
        let mappings: Vec<_> = mappings.iter().map(|mapping| mapping.parse().unwrap()).collect();
        ColumnNames::new(&mappings)
    }

    #[test]
    fn mapped_column_replaces_the_files_column_of_that_name() {
        let names = names(&["Post ID=external_id", "a=b=username", "external_id=description"]).unwrap();
        let find_all = |header: &[&str]| {
            let columns = names.find_all(Path::new("file"), header.iter().copied());
            columns
                .map(|columns| columns.into_iter().map(|column| column.map(Column::name)).collect::<Vec<_>>())
        };
        assert_eq!(
            find_all(&["post id", " A=B", "Platform", "external_id", "description", "username", "x"])
                .unwrap(),
            [Some("external_id"), Some("username"), Some("platform"), Some("description"), None, None, None]
        );
        names.check_all_found().unwrap();
        // A file may also have the column's own name.
        let own = find_all(&["platform", "username", "description"]).unwrap();
        assert_eq!(own, [Some("platform"), Some("username"), Some("description")]);
        let fields = ["Post ID", "external_id", "username", "description", "name", "Name"];
        assert_eq!(
            fields.map(|name| names.find_field(name).map(Column::name)),
            [Some("external_id"), Some("description"), None, None, Some("name"), None]
        );
        assert!(matches!(find_all(&["platform", "name", "name"]), Err(Error::DuplicateColumn(_, "name"))));
        assert!(matches!(find_all(&["username"]), Err(Error::Header(_))));
    }

    #[test]
    fn invalid_mappings_are_rejected() {
        for text in ["views", "=view_count", " =view_count", "views=", "views=viewz"] {
            assert!(text.parse::<ColumnMapping>().is_err(), "{text}");
        }
        assert!("views=viewz".parse::<ColumnMapping>().unwrap_err().contains("view_count"));
        assert!(names(&["a=name", "A=description"]).is_err());
        assert!(names(&["a=name", "b=name"]).is_err());
        assert!(names(&["a=name"]).unwrap().check_all_found().is_err());
    }
}
