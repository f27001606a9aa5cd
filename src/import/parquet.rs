//! Reads Parquet files as rows, of every type that can be converted to a column's.
//!
//! All columns are read page by page at the same time, so memory does not depend on the size of row groups. Unknown columns
//! are not read.

use std::fs::File;
use std::path::Path;

use chrono::{DateTime, Utc};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use table_file::{Decision, Table};

use super::error::Error;
use super::raw_row::{MAX_ROW_BYTES, RawRow, RawValue, Target};
use super::row_sink::RowSink;

/// Rows that are decoded at a time.
const CHUNK_ROWS: usize = 1_024;
const SECONDS_PER_DAY: i64 = 86_400;

pub fn is_parquet(start: &[u8]) -> bool {
    start.starts_with(b"PAR1")
}

/// Returns the number of rows according to the metadata.
pub fn count_rows(path: &Path) -> Result<u64, Error> {
    let reader = open(path)?;
    Ok(reader.metadata().file_metadata().num_rows().max(0).cast_unsigned())
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, Error> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    SerializedFileReader::new(file).map_err(|error| Error::parquet(path, error))
}

/// Passes the rows of a file on. The line number is the number of the row.
pub fn read_rows(path: &Path, on_bytes: &dyn Fn(u64), sink: &mut impl RowSink) -> Result<(), Error> {
    let file = open(path)?;
    let names: Vec<_> = {
        let schema = file.metadata().file_metadata().schema_descr();
        schema.root_schema().get_fields().iter().map(|field| field.name().to_owned()).collect()
    };
    let table = Table { part: None, columns: &names, has_all_columns: true, sample: &[] };
    match sink.table(&table)? {
        Decision::Read => {}
        Decision::NoHeader => return sink.unknown(&table),
        Decision::Leave => return Ok(()),
    }
    if let Some(layout) = sink.columns() {
        let columns = find_columns(path, layout.targets(), &file)?;
        read_columns(path, &file, &columns, on_bytes, sink)?;
    }
    sink.end()
}

fn read_columns(
    path: &Path,
    file: &SerializedFileReader<File>,
    columns: &[(usize, Target)],
    on_bytes: &dyn Fn(u64),
    sink: &mut impl RowSink,
) -> Result<(), Error> {
    let failed = |error| Error::parquet(path, error);
    let mut line = 0;
    for number in 0..file.num_row_groups() {
        let group = file.get_row_group(number).map_err(failed)?;
        let mut readers = Vec::with_capacity(columns.len());
        for &(leaf, _) in columns {
            readers.push(group.get_column_reader(leaf).map_err(failed)?);
        }
        let schema = group.metadata().schema_descr();
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or_default();
        let size = group.metadata().compressed_size().max(0).cast_unsigned();
        let mut left = rows;
        while left > 0 {
            let chunk_rows = CHUNK_ROWS.min(left);
            let mut chunk = Vec::with_capacity(columns.len());
            for (reader, &(leaf, target)) in readers.iter_mut().zip(columns) {
                let values = read_chunk(reader, &schema.column(leaf), chunk_rows).map_err(failed)?;
                if values.len() != chunk_rows {
                    let text = format!("the column {} ends before its row group", target.column.name());
                    return Err(failed(ParquetError::General(text)));
                }
                chunk.push((target, values.into_iter()));
            }
            for _ in 0..chunk_rows {
                line += 1;
                let mut raw = RawRow::default();
                for (target, values) in &mut chunk {
                    raw.set(*target, values.next().unwrap_or_default());
                }
                let row = match raw.text_bytes() {
                    ..=MAX_ROW_BYTES => Ok(raw),
                    _ => Err(format!("has more than {MAX_ROW_BYTES} bytes of text: shorten it")),
                };
                sink.raw_row(line, row)?;
            }
            left -= chunk_rows;
            on_bytes(size * chunk_rows as u64 / rows as u64);
        }
    }
    Ok(())
}

/// Returns the known columns of a file, each with its number in the schema.
fn find_columns(
    path: &Path,
    targets: &[Option<Target>],
    reader: &SerializedFileReader<File>,
) -> Result<Vec<(usize, Target)>, Error> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut leaves = Vec::new();
    for (leaf, descriptor) in schema.columns().iter().enumerate() {
        let Some(target) = targets.get(schema.get_column_root_idx(leaf)).copied().flatten() else { continue };
        if descriptor.path().parts().len() > 1 || descriptor.max_rep_level() > 0 {
            let nested = format!("the column {} is nested: it must have single values", target.column.name());
            return Err(Error::parquet(path, ParquetError::General(nested)));
        }
        leaves.push((leaf, target));
    }
    Ok(leaves)
}

/// How to interpret the numbers or bytes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interpretation {
    Plain,
    Unsigned,
    /// Days since 1970.
    Day,
    /// Fractions of a second since 1970, by their number per second; UTC if without a zone.
    Time(i64),
    /// An integer scaled by this number of decimal places.
    Decimal(u32),
    Unsupported,
}

const UNSUPPORTED: &str = "has an unsupported type";

impl Interpretation {
    fn from_descriptor(descriptor: &ColumnDescriptor) -> Self {
        let places = |scale: i32| u32::try_from(scale).map_or(Self::Unsupported, Self::Decimal);
        match descriptor.logical_type_ref() {
            Some(LogicalType::Date) => Self::Day,
            Some(LogicalType::Timestamp(time)) => Self::Time(match time.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000_000_000,
            }),
            Some(LogicalType::Integer(integer)) if !integer.is_signed => Self::Unsigned,
            Some(LogicalType::Decimal(decimal)) => places(decimal.scale),
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Self::Plain,
            Some(LogicalType::Integer(_) | LogicalType::Unknown) => Self::Plain,
            Some(_) => Self::Unsupported,
            None => match descriptor.converted_type() {
                ConvertedType::DATE => Self::Day,
                ConvertedType::TIMESTAMP_MILLIS => Self::Time(1_000),
                ConvertedType::TIMESTAMP_MICROS => Self::Time(1_000_000),
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64 => Self::Unsigned,
                ConvertedType::DECIMAL => places(descriptor.type_scale()),
                ConvertedType::TIME_MILLIS
                | ConvertedType::TIME_MICROS
                | ConvertedType::BSON
                | ConvertedType::INTERVAL => Self::Unsupported,
                _ => Self::Plain,
            },
        }
    }
}

type Values = Result<Vec<RawValue<'static>>, ParquetError>;

/// Decodes the next rows of a column.
fn read_chunk(reader: &mut ColumnReader, descriptor: &ColumnDescriptor, rows: usize) -> Values {
    use Interpretation::Unsigned;
    match reader {
        ColumnReader::BoolColumnReader(reader) => {
            read_values(reader, descriptor, rows, |flag, _| RawValue::Boolean(*flag))
        }
        ColumnReader::Int32ColumnReader(reader) => read_values(reader, descriptor, rows, |number, how| {
            let number = if how == Unsigned { number.cast_unsigned().into() } else { i64::from(*number) };
            convert_integer(number, how)
        }),
        ColumnReader::Int64ColumnReader(reader) => {
            read_values(reader, descriptor, rows, |number, how| match how {
                Unsigned => RawValue::Unsigned(number.cast_unsigned()),
                how => convert_integer(*number, how),
            })
        }
        ColumnReader::Int96ColumnReader(reader) => {
            read_values(reader, descriptor, rows, |time, _| convert_time(time.to_micros(), 1_000_000))
        }
        // The shortest decimal that is this float, which is probably the original number.
        ColumnReader::FloatColumnReader(reader) => read_values(reader, descriptor, rows, |number, _| {
            convert_float(number.to_string().parse().unwrap_or(f64::NAN))
        }),
        ColumnReader::DoubleColumnReader(reader) => {
            read_values(reader, descriptor, rows, |number, _| convert_float(*number))
        }
        ColumnReader::ByteArrayColumnReader(reader) => {
            read_values(reader, descriptor, rows, |bytes, how| convert_bytes(bytes.data(), how))
        }
        ColumnReader::FixedLenByteArrayColumnReader(reader) => {
            read_values(reader, descriptor, rows, |bytes, how| convert_bytes(bytes.data(), how))
        }
    }
}

fn read_values<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    descriptor: &ColumnDescriptor,
    rows: usize,
    convert: impl Fn(&T::T, Interpretation) -> RawValue<'static>,
) -> Values {
    let interpretation = Interpretation::from_descriptor(descriptor);
    // The definition level of a row with a value; zero if every row has one.
    let value_level = descriptor.max_def_level();
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    let mut values = values.iter();
    let value = |row| {
        let has_value = value_level == 0 || levels.get(row) == Some(&value_level);
        match if has_value { values.next() } else { None } {
            None => RawValue::Unknown,
            Some(_) if interpretation == Interpretation::Unsupported => RawValue::Invalid(UNSUPPORTED),
            Some(value) => convert(value, interpretation),
        }
    };
    Ok((0..read).map(value).collect())
}

fn convert_integer(number: i64, interpretation: Interpretation) -> RawValue<'static> {
    match interpretation {
        Interpretation::Day => {
            let seconds = number.checked_mul(SECONDS_PER_DAY);
            seconds.map_or(RawValue::Invalid(INVALID_TIME), |seconds| convert_time(seconds, 1))
        }
        Interpretation::Time(units) => convert_time(number, units),
        Interpretation::Decimal(places) => convert_decimal(i128::from(number), places),
        Interpretation::Plain | Interpretation::Unsigned | Interpretation::Unsupported => {
            RawValue::Integer(number)
        }
    }
}

const INVALID_TIME: &str = "is not a valid time";

fn convert_time(number: i64, units: i64) -> RawValue<'static> {
    let nanoseconds = number.rem_euclid(units) * (1_000_000_000 / units);
    let time: Option<DateTime<Utc>> = u32::try_from(nanoseconds)
        .ok()
        .and_then(|nanoseconds| DateTime::from_timestamp(number.div_euclid(units), nanoseconds));
    time.map_or(RawValue::Invalid(INVALID_TIME), RawValue::Time)
}

/// Some programs write NaN for unknown.
fn convert_float(number: f64) -> RawValue<'static> {
    if number.is_nan() { RawValue::Unknown } else { RawValue::Decimal(number) }
}

/// Converts a scaled integer, exactly if it is an integer.
fn convert_decimal(number: i128, places: u32) -> RawValue<'static> {
    let Some(unit) = 10_i128.checked_pow(places) else { return RawValue::Invalid(UNSUPPORTED) };
    if number % unit != 0 {
        return RawValue::Decimal(number as f64 / unit as f64);
    }
    i64::try_from(number / unit).map_or(RawValue::Invalid("is too large"), RawValue::Integer)
}

fn convert_bytes(bytes: &[u8], interpretation: Interpretation) -> RawValue<'static> {
    match interpretation {
        Interpretation::Decimal(places) if bytes.len() <= 16 => {
            let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
            let mut number = [if negative { 0xff } else { 0 }; 16];
            number[16 - bytes.len()..].copy_from_slice(bytes);
            convert_decimal(i128::from_be_bytes(number), places)
        }
        Interpretation::Plain => match std::str::from_utf8(bytes) {
            Ok(text) => RawValue::text(text.to_owned()),
            Err(_) => RawValue::Invalid("is not UTF-8"),
        },
        _ => RawValue::Invalid(UNSUPPORTED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_converted_by_column_type() {
        let time = |text: &str| RawValue::Time(text.parse().unwrap());
        assert_eq!(convert_integer(20_454, Interpretation::Day), time("2026-01-01T00:00:00Z"));
        assert_eq!(convert_integer(-1, Interpretation::Time(1_000)), time("1969-12-31T23:59:59.999Z"));
        assert_eq!(convert_integer(i64::MAX, Interpretation::Time(1_000)), RawValue::Invalid(INVALID_TIME));
        assert_eq!(convert_integer(i64::MAX, Interpretation::Day), RawValue::Invalid(INVALID_TIME));
        assert_eq!(convert_integer(1_200, Interpretation::Decimal(2)), RawValue::Integer(12));
        assert_eq!(convert_integer(1_250, Interpretation::Decimal(2)), RawValue::Decimal(12.5));
        assert_eq!(convert_bytes(&[0xff, 0x38], Interpretation::Decimal(0)), RawValue::Integer(-200));
        assert_eq!(convert_bytes(&[1; 17], Interpretation::Decimal(0)), RawValue::Invalid(UNSUPPORTED));
        assert_eq!(convert_bytes(b"\xff", Interpretation::Plain), RawValue::Invalid("is not UTF-8"));
        assert_eq!(convert_decimal(i128::MAX, 0), RawValue::Invalid("is too large"));
        assert_eq!(convert_float(f64::NAN), RawValue::Unknown);
    }
}
