//! The columns of a table: its format, and what each column is.

use std::collections::HashMap;

use table_file::{Cells, Table};

use super::column::Column;
use super::formats::{Columns, Format, Header, OWN, normalize_name, recognize, split_platform};
use super::insights::{InsightField, Insights};
use super::mapping::ColumnMapping;
use super::raw_row::{RawRow, RawValue, Target};

/// How ClickHouse and MySQL write an unknown value in CSV.
const CSV_NULL: &[u8] = b"\\N";
const NESTED: RawValue<'static> = RawValue::Invalid(
    "is an object or a list: it must be a single value; --map THEIRS.FIELD=OURS names a field of an object",
);

pub struct Layout {
    pub format: &'static Format,
    mappings: Vec<ColumnMapping>,
    /// Normalized names of the columns.
    names: Vec<String>,
    targets: Vec<Option<Target>>,
    /// Columns of ours that have objects or lists instead of values, by the column of a field.
    nested: HashMap<usize, Target>,
    insights: HashMap<usize, InsightField>,
    known_names: HashMap<String, Target>,
    /// Whether later rows can have no other columns.
    pub has_all_columns: bool,
}

/// Two columns of one name.
#[derive(Debug, PartialEq, Eq)]
pub struct DuplicateColumn(pub &'static str);

impl Layout {
    /// Recognizes a table, also by columns that are mapped to ours. `None`: its columns are unknown.
    pub fn recognize(table: &Table<'_>, mappings: &[ColumnMapping]) -> Option<Self> {
        let header = Header::new(table.columns, table.sample);
        let format = recognize(&header).or_else(|| {
            let ours =
                mappings.iter().filter(|mapping| header.has(&mapping.theirs)).map(|mapping| mapping.ours);
            let names: Vec<_> = ours.map(|column| column.name().to_owned()).collect();
            (OWN.recognize)(&Header::new(&names, &[])).then_some(&OWN)
        })?;
        let mut layout = Layout {
            format,
            mappings: mappings.to_vec(),
            names: table.columns.iter().map(|name| normalize_name(name)).collect(),
            targets: Vec::new(),
            nested: HashMap::new(),
            insights: HashMap::new(),
            known_names: known_names(format),
            has_all_columns: table.has_all_columns,
        };
        layout.find_targets();
        Some(layout)
    }

    /// Adds a column that appears in a later row.
    pub fn add(&mut self, name: &str) {
        self.names.push(normalize_name(name));
        let number = self.names.len() - 1;
        if self.mappings.iter().any(|mapping| mapping.theirs == self.names[number]) {
            self.find_targets();
        } else {
            self.add_target(number);
        }
    }

    /// Fails if a column of ours has two columns of the same name.
    pub fn check_unique(&self) -> Result<(), DuplicateColumn> {
        for (n, target) in self.targets.iter().enumerate() {
            if let Some(target) = target
                && self.names[..n].contains(&self.names[n])
            {
                return Err(DuplicateColumn(target.column.name()));
            }
        }
        Ok(())
    }

    /// Whether the table has values for a column.
    pub fn has(&self, column: Column) -> bool {
        self.targets.iter().flatten().any(|target| target.column == column)
    }

    /// Returns the numbers of the columns that have values for one of ours.
    pub fn find(&self, column: Column) -> impl Iterator<Item = usize> {
        let targets = self.targets.iter().enumerate();
        targets
            .filter(move |(_, target)| target.is_some_and(|target| target.column == column))
            .map(|(n, _)| n)
    }

    /// Returns the mappings whose names the table has.
    pub fn found_mappings(&self) -> impl Iterator<Item = &ColumnMapping> {
        self.mappings.iter().filter(|mapping| self.names.contains(&mapping.theirs))
    }

    /// Returns the names of columns that are not read.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        let names = self.names.iter().zip(&self.targets);
        names.filter(|(name, target)| target.is_none() && !name.is_empty()).map(|(name, _)| name.as_str())
    }

    fn find_targets(&mut self) {
        self.targets.clear();
        self.nested.clear();
        (0..self.names.len()).for_each(|number| self.add_target(number));
    }

    /// Adds what the next column is.
    fn add_target(&mut self, number: usize) {
        let name = self.names[number].as_str();
        let target = self.target(number, name);
        if target.is_none() {
            if let Some(field) = InsightField::parse(name) {
                self.insights.insert(number, field);
            } else if let Some(outer) = self.outer_target(number, name) {
                self.nested.insert(number, outer);
            }
        }
        self.targets.push(target);
    }

    fn target(&self, number: usize, name: &str) -> Option<Target> {
        if let Some(mapping) = self.mappings.iter().find(|mapping| mapping.theirs == name) {
            return Some(Target::first(mapping.ours));
        }
        // A mapped column replaces the file's own one.
        self.own_target(number, name).filter(|target| {
            let mut mapped = self.mappings.iter().filter(|mapping| mapping.ours == target.column);
            !mapped.any(|mapping| self.names.contains(&mapping.theirs))
        })
    }

    /// Returns the column of ours of which this is a field.
    fn outer_target(&self, number: usize, name: &str) -> Option<Target> {
        if self.has_all_columns {
            return None;
        }
        let mut dots = name.match_indices('.');
        let target = dots.find_map(|(end, _)| self.target(number, &name[..end]))?;
        let is_mapped = target.rank == 0;
        (is_mapped || std::ptr::eq(self.format, &raw const OWN)).then_some(target)
    }

    fn own_target(&self, number: usize, name: &str) -> Option<Target> {
        match self.format.columns {
            Columns::Positional(columns) => {
                let column = columns.get(number).copied().flatten().and_then(Column::from_name);
                column.map(Target::first)
            }
            Columns::Named(_) => self.known_names.get(name).copied(),
        }
    }

    /// Assigns the values of a row to columns.
    pub fn assign<'r>(&self, cells: Cells<'r>) -> Result<RawRow<'r>, String> {
        let mut row = RawRow::default();
        match cells {
            Cells::Fields(record) => {
                for (target, field) in self.targets.iter().zip(record) {
                    let Some(target) = target.filter(|_| !field.is_empty() && field != CSV_NULL) else {
                        continue;
                    };
                    let text = std::str::from_utf8(field).map_err(|_| {
                        format!("{}: is not UTF-8: save the file as UTF-8", target.column.name())
                    })?;
                    row.set(target, RawValue::text(text));
                }
            }
            Cells::Sparse(values) => {
                let mut insights = Insights::default();
                for (column, value) in values {
                    if let Some(Some(target)) = self.targets.get(*column) {
                        row.set(*target, RawValue::from(value));
                    } else if let Some(target) = self.nested.get(column) {
                        row.set(*target, NESTED);
                    } else if let Some(field) = self.insights.get(column) {
                        insights.add(*field, RawValue::from(value));
                    }
                }
                for (name, value) in insights.into_values() {
                    if let Some(target) = self.known_names.get(&name) {
                        row.set(*target, value);
                    }
                }
            }
        }
        Ok(row)
    }

    /// Returns what each column is, for files that have columns of their own types.
    pub fn targets(&self) -> &[Option<Target>] {
        &self.targets
    }
}

/// Returns the names of a format's columns. All of ours are known where a format names none of them otherwise.
fn known_names(format: &Format) -> HashMap<String, Target> {
    let Columns::Named(columns) = format.columns else { return HashMap::new() };
    let mut names = HashMap::new();
    for (rank, (theirs, ours)) in (1..).zip(columns) {
        let (ours, platform) = split_platform(ours);
        if let Some(column) = Column::from_name(ours) {
            names.entry(normalize_name(theirs)).or_insert(Target { column, rank, platform });
        }
    }
    if std::ptr::eq(format, &raw const OWN) {
        names.extend(
            Column::all()
                .map(|column| (column.name().to_owned(), Target { rank: 1, ..Target::first(column) })),
        );
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(columns: &[&str], mappings: &[&str]) -> Option<Layout> {
        let columns: Vec<_> = columns.iter().map(|name| (*name).to_owned()).collect();
        let mappings: Vec<_> = mappings.iter().map(|mapping| mapping.parse().unwrap()).collect();
        Layout::recognize(
            &Table { part: None, columns: &columns, has_all_columns: true, sample: &[] },
            &mappings,
        )
    }

    fn names(layout: &Layout) -> Vec<Option<&'static str>> {
        layout.targets.iter().map(|target| target.map(|target| target.column.name())).collect()
    }

    #[test]
    fn mapped_column_replaces_the_files_column_of_that_name() {
        let mappings = ["Post ID=external_id", "a=b=username", "external_id=description"];
        let found = layout(
            &["post id", " A=B", "Platform", "external_id", "description", "username", "x"],
            &mappings,
        );
        assert_eq!(
            names(&found.unwrap()),
            [Some("external_id"), Some("username"), Some("platform"), Some("description"), None, None, None]
        );
        // A file may also have the column's own name.
        let own = layout(&["platform", "username", "description"], &mappings).unwrap();
        assert_eq!(names(&own), [Some("platform"), Some("username"), Some("description")]);
        assert!(layout(&["views", "likes"], &["views=view_count"]).is_none());
        assert!(layout(&["post", "views"], &["post=external_id"]).is_some());
        let duplicate = layout(&["platform", "name", "username", "Name"], &[]).unwrap();
        assert_eq!(duplicate.check_unique(), Err(DuplicateColumn("name")));
        assert_eq!(layout(&["username", "x", "x"], &[]).unwrap().check_unique(), Ok(()));
    }

    #[test]
    fn nested_names_are_mapped_in_every_notation() {
        for (theirs, mapping) in [("a.b", "a/b=name"), ("a/b", "a.b=name"), ("A/B", "a.b=name")] {
            assert_eq!(
                names(&layout(&["username", theirs], &[mapping]).unwrap())[1],
                Some("name"),
                "{theirs}"
            );
        }
        let mut later = layout(&["username", "name"], &["n.n=name"]).unwrap();
        later.add("n.n");
        assert_eq!(names(&later), [Some("username"), None, Some("name")]);
    }
}
