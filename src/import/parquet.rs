//! Parquet as rows of values: by column names, of every type that can mean one of our columns.
//!
//! The columns are read side by side, page by page, so that memory holds a page of each and a few thousand rows
//! however large the file's row groups are. Columns that are none of ours are never read.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::Error;
use super::column::{Column, RawRow, Value};
use super::read::Line;

/// Rows that are taken out of the columns at a time.
const ROWS: usize = 4_096;
const SECONDS_IN_DAY: i64 = 86_400;

/// Whether a file's first bytes are those of Parquet.
pub fn is_parquet(beginning: &[u8]) -> bool {
    beginning.starts_with(b"PAR1")
}

/// How many rows a file says that it has.
pub fn count(path: &Path) -> Result<u64, Error> {
    let reader = open(path)?;
    Ok(reader.metadata().file_metadata().num_rows().max(0).cast_unsigned())
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, Error> {
    let file = File::open(path).map_err(|error| Error::File(path.to_owned(), error))?;
    SerializedFileReader::new(file).map_err(|error| Error::Parquet(path.to_owned(), error))
}

/// Reads a file from its beginning, row by row, until `take` has had enough. A row's number stands for its line.
pub fn rows(path: &Path, bytes: &AtomicU64, take: &mut dyn FnMut(Line<'_>) -> bool) -> Result<(), Error> {
    let reader = open(path)?;
    let columns = columns(path, &reader)?;
    let broken = |error| Error::Parquet(path.to_owned(), error);
    let mut number = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(broken)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        let size = group.metadata().compressed_size().max(0).cast_unsigned();
        let mut cells = Vec::with_capacity(columns.len());
        for &(leaf, column) in &columns {
            let reader = group.get_column_reader(leaf).map_err(broken)?;
            cells.push((column, typed(reader, &group.metadata().schema_descr().column(leaf))));
        }
        let mut done = 0;
        while done < rows {
            let some = ROWS.min(rows - done);
            for (column, cells) in &mut cells {
                let read = cells.fill(some).map_err(broken)?;
                if read != some {
                    let lacks = format!("the column {} ends before its row group does", column.as_str());
                    return Err(broken(ParquetError::General(lacks)));
                }
            }
            for row in 0..some {
                number += 1;
                let mut raw = RawRow::default();
                for (column, cells) in &cells {
                    raw.set(*column, cells.value(row));
                }
                if !take(Line { number, row: Ok(raw) }) {
                    return Ok(());
                }
            }
            done += some;
            bytes.fetch_add(size * some as u64 / rows as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// The columns of ours that the file has, by the number of each among the leaves of its schema.
fn columns(path: &Path, reader: &SerializedFileReader<File>) -> Result<Vec<(usize, Column)>, Error> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns = Vec::new();
    for (leaf, described) in schema.columns().iter().enumerate() {
        let Some(column) = Column::of_header(schema.get_column_root(leaf).name()) else { continue };
        if described.path().parts().len() > 1 || described.max_rep_level() > 0 {
            let nested = format!("the column {} is nested: give it single values", column.as_str());
            return Err(Error::Parquet(path.to_owned(), ParquetError::General(nested)));
        }
        columns.push((leaf, column));
    }
    if !columns.iter().any(|(_, column)| *column == Column::Platform) {
        return Err(Error::Header(path.to_owned()));
    }
    Ok(columns)
}

/// What the numbers or bytes of a column mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Plain,
    Unsigned,
    /// Days since 1970.
    Day,
    /// So many units of a second since 1970; without a zone it is UTC.
    Time(i64),
    /// A whole number of so many decimal places.
    Decimal(u32),
    Unreadable,
}

const UNREADABLE: &str = "has a type that no column of a row has";

fn meaning(described: &ColumnDescriptor) -> Meaning {
    let places = |scale: i32| u32::try_from(scale).map_or(Meaning::Unreadable, Meaning::Decimal);
    match described.logical_type_ref() {
        Some(LogicalType::Date) => Meaning::Day,
        Some(LogicalType::Timestamp(time)) => Meaning::Time(match time.unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        }),
        Some(LogicalType::Integer(integer)) if !integer.is_signed => Meaning::Unsigned,
        Some(LogicalType::Decimal(decimal)) => places(decimal.scale),
        Some(LogicalType::String | LogicalType::Enum | LogicalType::Json | LogicalType::Integer(_)) => {
            Meaning::Plain
        }
        Some(LogicalType::Unknown) => Meaning::Plain,
        Some(_) => Meaning::Unreadable,
        None => match described.converted_type() {
            ConvertedType::DATE => Meaning::Day,
            ConvertedType::TIMESTAMP_MILLIS => Meaning::Time(1_000),
            ConvertedType::TIMESTAMP_MICROS => Meaning::Time(1_000_000),
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Meaning::Unsigned,
            ConvertedType::DECIMAL => places(described.type_scale()),
            ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::BSON
            | ConvertedType::INTERVAL => Meaning::Unreadable,
            _ => Meaning::Plain,
        },
    }
}

/// A column under way.
trait Cells {
    /// Takes the next rows; returns how many there were.
    fn fill(&mut self, rows: usize) -> Result<usize, ParquetError>;
    /// What the column says in one of the rows taken last.
    fn value(&self, row: usize) -> Value<'_>;
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// The level of a row that has a value; zero where every row has.
    full: i16,
    levels: Vec<i16>,
    values: Vec<T::T>,
    /// Where each row's value stands.
    places: Vec<Option<u32>>,
    meaning: Meaning,
    read: for<'a> fn(&'a T::T, Meaning) -> Value<'a>,
}

impl<T: DataType> Cells for Typed<T> {
    fn fill(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.levels.clear();
        self.values.clear();
        let (read, ..) = self.reader.read_records(rows, Some(&mut self.levels), None, &mut self.values)?;
        self.places.clear();
        let mut next = 0..;
        let full = self.full;
        let levels = &self.levels;
        self.places.extend(
            (0..read).map(|row| if full == 0 || levels.get(row) == Some(&full) { next.next() } else { None }),
        );
        Ok(read)
    }

    fn value(&self, row: usize) -> Value<'_> {
        let place = self.places.get(row).copied().flatten();
        match place.and_then(|place| self.values.get(place as usize)) {
            None => Value::Unknown,
            Some(_) if self.meaning == Meaning::Unreadable => Value::Bad(UNREADABLE),
            Some(value) => (self.read)(value, self.meaning),
        }
    }
}

fn typed(reader: ColumnReader, described: &ColumnDescriptor) -> Box<dyn Cells> {
    fn boxed<T: DataType>(
        reader: ColumnReaderImpl<T>,
        described: &ColumnDescriptor,
        read: for<'a> fn(&'a T::T, Meaning) -> Value<'a>,
    ) -> Box<dyn Cells> {
        Box::new(Typed {
            reader,
            full: described.max_def_level(),
            levels: Vec::new(),
            values: Vec::new(),
            places: Vec::new(),
            meaning: meaning(described),
            read,
        })
    }
    match reader {
        ColumnReader::BoolColumnReader(reader) => boxed(reader, described, |flag, _| Value::Flag(*flag)),
        ColumnReader::Int32ColumnReader(reader) => {
            boxed(reader, described, |number, meaning| match meaning {
                Meaning::Unsigned => Value::Whole(i64::from(number.cast_unsigned())),
                meaning => number_of(i64::from(*number), meaning),
            })
        }
        ColumnReader::Int64ColumnReader(reader) => {
            boxed(reader, described, |number, meaning| match meaning {
                Meaning::Unsigned => Value::Large(number.cast_unsigned()),
                meaning => number_of(*number, meaning),
            })
        }
        ColumnReader::Int96ColumnReader(reader) => {
            boxed(reader, described, |time: &Int96, _| instant(time.to_micros(), 1_000_000))
        }
        // The shortest decimal that is this float: what was written before it became one.
        ColumnReader::FloatColumnReader(reader) => {
            boxed(reader, described, |number, _| decimal(number.to_string().parse().unwrap_or(f64::NAN)))
        }
        ColumnReader::DoubleColumnReader(reader) => boxed(reader, described, |number, _| decimal(*number)),
        ColumnReader::ByteArrayColumnReader(reader) => {
            boxed(reader, described, |bytes: &ByteArray, meaning| bytes_of(bytes.data(), meaning))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            boxed(reader, described, |bytes: &FixedLenByteArray, meaning| bytes_of(bytes.data(), meaning))
        }
    }
}

fn number_of(number: i64, meaning: Meaning) -> Value<'static> {
    match meaning {
        Meaning::Day => match number.checked_mul(SECONDS_IN_DAY) {
            Some(seconds) => instant(seconds, 1),
            None => Value::Bad(NO_TIME),
        },
        Meaning::Time(units) => instant(number, units),
        Meaning::Decimal(places) => scaled(i128::from(number), places),
        Meaning::Plain | Meaning::Unsigned | Meaning::Unreadable => Value::Whole(number),
    }
}

const NO_TIME: &str = "is no time of the calendar";

fn instant(number: i64, units: i64) -> Value<'static> {
    let nanoseconds = number.rem_euclid(units) * (1_000_000_000 / units);
    let time: Option<DateTime<Utc>> = u32::try_from(nanoseconds)
        .ok()
        .and_then(|nanoseconds| DateTime::from_timestamp(number.div_euclid(units), nanoseconds));
    time.map_or(Value::Bad(NO_TIME), Value::Time)
}

/// Not a number is what some programs write for none.
fn decimal(number: f64) -> Value<'static> {
    if number.is_nan() { Value::Unknown } else { Value::Decimal(number) }
}

/// A number of decimal places; a whole one stays exact.
fn scaled(number: i128, places: u32) -> Value<'static> {
    let Some(unit) = 10_i128.checked_pow(places) else { return Value::Bad(UNREADABLE) };
    if number % unit != 0 {
        return Value::Decimal(number as f64 / unit as f64);
    }
    i64::try_from(number / unit).map_or(Value::Bad("is too large"), Value::Whole)
}

fn bytes_of(bytes: &[u8], meaning: Meaning) -> Value<'_> {
    match meaning {
        Meaning::Decimal(places) if bytes.len() <= 16 => {
            let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
            let mut number = [if negative { 0xff } else { 0 }; 16];
            number[16 - bytes.len()..].copy_from_slice(bytes);
            scaled(i128::from_be_bytes(number), places)
        }
        Meaning::Plain => std::str::from_utf8(bytes).map_or(Value::Bad("is not UTF-8"), Value::text),
        _ => Value::Bad(UNREADABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_what_their_column_says() {
        let time = |text: &str| Value::Time(text.parse().unwrap());
        assert_eq!(number_of(20_454, Meaning::Day), time("2026-01-01T00:00:00Z"));
        assert_eq!(number_of(-1, Meaning::Time(1_000)), time("1969-12-31T23:59:59.999Z"));
        assert_eq!(number_of(i64::MAX, Meaning::Time(1_000)), Value::Bad(NO_TIME));
        assert_eq!(number_of(i64::MAX, Meaning::Day), Value::Bad(NO_TIME));
        assert_eq!(number_of(1_200, Meaning::Decimal(2)), Value::Whole(12));
        assert_eq!(number_of(1_250, Meaning::Decimal(2)), Value::Decimal(12.5));
        assert_eq!(bytes_of(&[0xff, 0x38], Meaning::Decimal(0)), Value::Whole(-200));
        assert_eq!(bytes_of(&[1; 17], Meaning::Decimal(0)), Value::Bad(UNREADABLE));
        assert_eq!(bytes_of(b"\xff", Meaning::Plain), Value::Bad("is not UTF-8"));
        assert_eq!(scaled(i128::MAX, 0), Value::Bad("is too large"));
        assert_eq!(decimal(f64::NAN), Value::Unknown);
    }
}
