//! A sink that records what it is given, and files to give it.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};

use table_file::{Cells, Decision, Error, Note, ReadOptions, Sink, Table, Value};
use zip::write::SimpleFileOptions;

/// The values of a row that are not blank by name, or why they were not read.
pub type RecordedRow = Result<BTreeMap<String, String>, String>;

/// Reads tables that have a column `id`, and leaves those that have a column `leave`.
#[derive(Debug, Default)]
pub struct Recorder {
    columns: Vec<String>,
    pub tables: Vec<(Option<String>, Vec<String>)>,
    /// Each row by its line.
    pub rows: Vec<(u64, RecordedRow)>,
    pub unknown: Vec<(Option<String>, Vec<String>)>,
    pub notes: Vec<String>,
    pub ends: usize,
    pub samples: usize,
}

/// Rows that are recorded, and characters of a value.
const MAX_ROWS: usize = 60_000;
const MAX_CHARS: usize = 100;

fn show(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => text.chars().take(MAX_CHARS).collect(),
        other => format!("{other:?}"),
    }
}

impl Sink for Recorder {
    type Error = Error;

    fn table(&mut self, table: &Table<'_>) -> Result<Decision, Error> {
        if table.columns.iter().any(|name| name.ends_with("leave")) {
            return Ok(Decision::Leave);
        }
        if !table.columns.iter().any(|name| name.trim() == "id" || name.ends_with(".id")) {
            return Ok(Decision::NoHeader);
        }
        self.samples = table.sample.len();
        self.columns = table.columns.to_vec();
        self.tables.push((table.part.map(str::to_owned), table.columns.to_vec()));
        Ok(Decision::Read)
    }

    fn column(&mut self, name: &str) {
        self.columns.push(name.to_owned());
    }

    fn row(&mut self, line: u64, cells: Result<Cells<'_>, String>) -> Result<(), Error> {
        let name = |column: usize| self.columns[column].trim().to_owned();
        let row = cells.map(|cells| match cells {
            Cells::Fields(record) => record
                .iter()
                .enumerate()
                .filter(|(_, field)| !field.is_empty())
                .map(|(column, field)| (name(column), show(&Value::Text(String::from_utf8_lossy(field)))))
                .collect(),
            Cells::Sparse(values) => {
                values.iter().map(|(column, value)| (name(*column), show(value))).collect()
            }
        });
        if self.rows.len() < MAX_ROWS {
            self.rows.push((line, row));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.ends += 1;
        Ok(())
    }

    fn unknown(&mut self, table: &Table<'_>) -> Result<(), Error> {
        self.unknown.push((table.part.map(str::to_owned), table.columns.to_vec()));
        Ok(())
    }

    fn note(&mut self, note: Note<'_>) {
        self.notes.push(format!("{note:?}"));
    }
}

impl Recorder {
    /// The values of a column in all rows; a missing one is empty.
    pub fn values(&self, column: &str) -> Vec<String> {
        let value = |row: &Result<BTreeMap<String, String>, String>| match row {
            Ok(row) => row.get(column).cloned().unwrap_or_default(),
            Err(reason) => format!("! {reason}"),
        };
        self.rows.iter().map(|(_, row)| value(row)).collect()
    }

    pub fn lines(&self) -> Vec<u64> {
        self.rows.iter().map(|(line, _)| *line).collect()
    }
}

pub const LIMIT: u64 = 8 << 20;

pub fn try_read(name: &str, contents: impl AsRef<[u8]>) -> (Recorder, Result<(), Error>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), contents).unwrap();
    let mut recorder = Recorder::default();
    let options = ReadOptions { max_unpacked_bytes: LIMIT, on_bytes: &|_| {} };
    let result = table_file::read(file.path(), name, &options, &mut recorder);
    (recorder, result)
}

#[track_caller]
pub fn read(contents: impl AsRef<[u8]>) -> Recorder {
    let (recorder, result) = try_read("file", contents);
    result.unwrap();
    recorder
}

pub fn zip(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, contents) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(contents).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

pub fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

const SPREADSHEET: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const RELATIONSHIPS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE_RELATIONSHIPS: &str = "http://schemas.openxmlformats.org/package/2006/relationships";

/// A workbook of sheets, each given by its rows in XML, with other files.
pub fn workbook(sheets: &[(&str, &str)], others: &[(&str, &[u8])]) -> Vec<u8> {
    let numbered = || sheets.iter().enumerate().map(|(n, sheet)| (n + 1, sheet));
    let list: String = numbered()
        .map(|(n, (name, _))| format!("<sheet name=\"{name}\" sheetId=\"{n}\" r:id=\"rId{n}\"/>"))
        .collect();
    let book = format!(
        "<workbook xmlns=\"{SPREADSHEET}\" xmlns:r=\"{RELATIONSHIPS}\"><sheets>{list}</sheets></workbook>"
    );
    let targets: String = numbered()
        .map(|(n, _)| {
            format!("<Relationship Id=\"rId{n}\" Type=\"{RELATIONSHIPS}/worksheet\" Target=\"worksheets/sheet{n}.xml\"/>")
        })
        .collect();
    let targets = format!("<Relationships xmlns=\"{PACKAGE_RELATIONSHIPS}\">{targets}</Relationships>");
    let root = format!(
        "<Relationships xmlns=\"{PACKAGE_RELATIONSHIPS}\"><Relationship Id=\"rId1\" Type=\"{RELATIONSHIPS}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
    );
    let contents: Vec<_> = numbered()
        .map(|(n, (_, rows))| {
            let xml = format!("<worksheet xmlns=\"{SPREADSHEET}\"><sheetData>{rows}</sheetData></worksheet>");
            (format!("xl/worksheets/sheet{n}.xml"), xml)
        })
        .collect();
    let mut members: Vec<(&str, &[u8])> = vec![
        ("_rels/.rels", root.as_bytes()),
        ("xl/workbook.xml", book.as_bytes()),
        ("xl/_rels/workbook.xml.rels", targets.as_bytes()),
    ];
    members.extend(contents.iter().map(|(name, xml)| (name.as_str(), xml.as_bytes())));
    members.extend(others);
    zip(&members)
}
