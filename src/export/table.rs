//! A file of rows being written: CSV, JSON Lines or Parquet, under a temporary name until it is whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::Error;

/// How files of an export are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header
    Csv,
    /// An object of JSON a line
    Jsonl,
    /// Parquet, compressed with zstd
    Parquet,
}

impl Format {
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
        }
    }
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Whole,
    Decimal,
    Flag,
    Time,
}

/// A value of a row; `None` is unknown.
#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    Text(Option<&'a str>),
    Whole(Option<i64>),
    Decimal(Option<f64>),
    Flag(Option<bool>),
    Time(Option<DateTime<Utc>>),
}

pub type Columns = &'static [(&'static str, Kind)];

/// A file that is being written. Unless it is finished nothing of it stays.
pub struct Table {
    path: PathBuf,
    temporary: PathBuf,
    columns: Columns,
    writer: Option<Writer>,
    pub rows: u64,
}

enum Writer {
    Csv(csv::Writer<File>),
    Jsonl(BufWriter<File>),
    Parquet(Box<ParquetWriter>),
}

fn time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

impl Table {
    pub fn create(path: PathBuf, format: Format, columns: Columns) -> Result<Self, Error> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", uuid::Uuid::now_v7()));
        let temporary = path.with_file_name(name);
        let failed = |error| Error::File(temporary.clone(), error);
        let file = File::create_new(&temporary).map_err(failed)?;
        let mut table = Table { path, temporary: temporary.clone(), columns, writer: None, rows: 0 };
        table.writer = Some(match format {
            Format::Csv => {
                let mut csv = csv::WriterBuilder::new().buffer_capacity(1 << 18).from_writer(file);
                csv.write_record(columns.iter().map(|(name, _)| name))
                    .map_err(|error| failed(io::Error::other(error)))?;
                Writer::Csv(csv)
            }
            Format::Jsonl => Writer::Jsonl(BufWriter::with_capacity(1 << 18, file)),
            Format::Parquet => Writer::Parquet(Box::new(
                ParquetWriter::new(file, columns).map_err(|error| failed(io::Error::other(error)))?,
            )),
        });
        Ok(table)
    }

    /// Adds a row with a cell for each column.
    pub fn add(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows += 1;
        let written = match &mut self.writer {
            Some(Writer::Csv(csv)) => add_csv(csv, cells),
            Some(Writer::Jsonl(file)) => add_json(file, self.columns, cells),
            Some(Writer::Parquet(parquet)) => parquet.add(cells).map_err(io::Error::other),
            None => Ok(()),
        };
        written.map_err(|error| Error::File(self.temporary.clone(), error))
    }

    /// Writes the rest; the file has all its rows then, still under its temporary name.
    pub fn complete(&mut self) -> Result<(), Error> {
        let completed = match self.writer.take() {
            Some(Writer::Csv(csv)) => csv.into_inner().map_err(|error| error.into_error()),
            Some(Writer::Jsonl(file)) => file.into_inner().map_err(io::IntoInnerError::into_error),
            Some(Writer::Parquet(parquet)) => parquet.finish().map_err(io::Error::other),
            None => return Ok(()),
        };
        completed.and_then(|file| file.sync_all()).map_err(|error| Error::File(self.temporary.clone(), error))
    }

    /// Gives the whole file its name, in place of one that had it.
    pub fn publish(mut self) -> Result<PathBuf, Error> {
        self.complete()?;
        std::fs::rename(&self.temporary, &self.path)
            .map_err(|error| Error::File(self.path.clone(), error))?;
        Ok(self.path.clone())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // It is gone already where it got its name.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

/// Makes the folder of an export.
pub fn make_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|error| Error::File(folder.to_owned(), error))
}

fn add_csv(csv: &mut csv::Writer<File>, cells: &[Cell<'_>]) -> io::Result<()> {
    for cell in cells {
        let text;
        let field: &str = match cell {
            Cell::Text(value) => value.unwrap_or_default(),
            Cell::Whole(None) | Cell::Decimal(None) | Cell::Flag(None) | Cell::Time(None) => "",
            Cell::Whole(Some(value)) => {
                text = value.to_string();
                &text
            }
            Cell::Decimal(Some(value)) => {
                text = value.to_string();
                &text
            }
            Cell::Flag(Some(value)) => {
                if *value {
                    "true"
                } else {
                    "false"
                }
            }
            Cell::Time(Some(value)) => {
                text = time(*value);
                &text
            }
        };
        csv.write_field(field).map_err(io::Error::other)?;
    }
    csv.write_record(None::<&[u8]>).map_err(io::Error::other)
}

fn add_json(file: &mut BufWriter<File>, columns: Columns, cells: &[Cell<'_>]) -> io::Result<()> {
    let mut before = b'{';
    for ((name, _), cell) in columns.iter().zip(cells) {
        let value = match cell {
            Cell::Text(value) => serde_json::to_string(value)?,
            Cell::Whole(value) => serde_json::to_string(value)?,
            Cell::Decimal(value) => serde_json::to_string(value)?,
            Cell::Flag(value) => serde_json::to_string(value)?,
            Cell::Time(value) => serde_json::to_string(&value.map(time))?,
        };
        if value != "null" {
            file.write_all(&[before])?;
            write!(file, "\"{name}\":{value}")?;
            before = b',';
        }
    }
    file.write_all(b"}\n")
}

/// Rows of a row group: enough that columns compress well, few enough to keep memory small.
const GROUP_ROWS: usize = 50_000;
/// Bytes of text after which a row group ends, however few rows it has.
const GROUP_TEXT: usize = 16 << 20;

struct ParquetWriter {
    file: SerializedFileWriter<File>,
    columns: Vec<Gathered>,
    rows: usize,
    text: usize,
}

/// A column of the row group in the making: whether each row has a value, and the values.
struct Gathered {
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Decimal(Vec<f64>),
    Flag(Vec<bool>),
}

impl ParquetWriter {
    fn new(file: File, columns: Columns) -> Result<Self, ParquetError> {
        let fields = columns.iter().map(|(name, kind)| {
            let (physical, logical) = match kind {
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Kind::Whole => (Physical::INT64, None),
                Kind::Decimal => (Physical::DOUBLE, None),
                Kind::Flag => (Physical::BOOLEAN, None),
                Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            };
            Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        });
        let schema =
            Type::group_type_builder("rows").with_fields(fields.collect::<Result<_, _>>()?).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("tidemark ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let gathered = columns.iter().map(|(_, kind)| Gathered {
            levels: Vec::new(),
            values: match kind {
                Kind::Text => Values::Text(Vec::new()),
                Kind::Whole | Kind::Time => Values::Whole(Vec::new()),
                Kind::Decimal => Values::Decimal(Vec::new()),
                Kind::Flag => Values::Flag(Vec::new()),
            },
        });
        Ok(ParquetWriter {
            columns: gathered.collect(),
            file: SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?,
            rows: 0,
            text: 0,
        })
    }

    fn add(&mut self, cells: &[Cell<'_>]) -> Result<(), ParquetError> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            let known = match (&mut column.values, *cell) {
                (Values::Text(values), Cell::Text(value)) => {
                    self.text += value.map_or(0, str::len);
                    put(values, value.map(ByteArray::from))
                }
                (Values::Whole(values), Cell::Whole(value)) => put(values, value),
                (Values::Whole(values), Cell::Time(value)) => {
                    put(values, value.map(|time| time.timestamp_micros()))
                }
                (Values::Decimal(values), Cell::Decimal(value)) => put(values, value),
                (Values::Flag(values), Cell::Flag(value)) => put(values, value),
                _ => false,
            };
            column.levels.push(i16::from(known));
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.text >= GROUP_TEXT {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for Gathered { levels, values } in &mut self.columns {
            match values {
                Values::Text(values) => write_column::<ByteArrayType>(&mut group, levels, values)?,
                Values::Whole(values) => write_column::<Int64Type>(&mut group, levels, values)?,
                Values::Decimal(values) => write_column::<DoubleType>(&mut group, levels, values)?,
                Values::Flag(values) => write_column::<BoolType>(&mut group, levels, values)?,
            }
        }
        group.close()?;
        (self.rows, self.text) = (0, 0);
        Ok(())
    }

    fn finish(mut self) -> Result<File, ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner()
    }
}

fn put<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let known = value.is_some();
    values.extend(value);
    known
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    levels: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, Some(levels), None)?;
        column.close()?;
    }
    levels.clear();
    values.clear();
    Ok(())
}
