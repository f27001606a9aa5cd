//! Writes rows as Parquet, compressed with zstd. Memory holds one row group.

use std::io::{self, Write};
use std::sync::Arc;

use chrono::NaiveDate;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::model::field::{FieldType, FieldValue};

/// After which a row group ends: many rows compress well and are read fast, but all are held in memory.
#[derive(Debug, Clone, Copy)]
pub struct RowGroupLimits {
    pub rows: usize,
    /// Bytes of text.
    pub text_bytes: usize,
}

/// Writes rows as row groups.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    limits: RowGroupLimits,
    columns: Vec<ColumnBuffer>,
    rows: usize,
    text_bytes: usize,
}

/// A column of the current row group: whether each row has a value, and the values.
struct ColumnBuffer {
    levels: Vec<i16>,
    values: ColumnValues,
}

enum ColumnValues {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Decimal(Vec<f64>),
    Boolean(Vec<bool>),
    Time(Vec<i64>),
    Date(Vec<i32>),
}

/// Returns what readers call the type of a column.
pub const fn type_name(field_type: FieldType) -> &'static str {
    match field_type {
        FieldType::Integer => "int64",
        FieldType::Decimal => "double",
        FieldType::Boolean => "boolean",
        FieldType::Time => "timestamp in UTC",
        FieldType::Date => "date32",
        FieldType::Text | FieldType::Uuid | FieldType::Json | FieldType::Texts => "string",
    }
}

impl ColumnValues {
    /// Returns no values of a type, and how Parquet stores them.
    fn empty(field_type: FieldType) -> (Self, Physical, Option<LogicalType>) {
        match field_type {
            FieldType::Integer => (ColumnValues::Integer(Vec::new()), Physical::INT64, None),
            FieldType::Decimal => (ColumnValues::Decimal(Vec::new()), Physical::DOUBLE, None),
            FieldType::Boolean => (ColumnValues::Boolean(Vec::new()), Physical::BOOLEAN, None),
            FieldType::Time => {
                let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                (ColumnValues::Time(Vec::new()), Physical::INT64, Some(logical))
            }
            FieldType::Date => (ColumnValues::Date(Vec::new()), Physical::INT32, Some(LogicalType::Date)),
            FieldType::Text | FieldType::Uuid | FieldType::Json | FieldType::Texts => {
                (ColumnValues::Text(Vec::new()), Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
        }
    }

    /// Adds a known value. Returns how many bytes of text it has.
    fn add(&mut self, value: FieldValue<'_>) -> Result<usize, ParquetError> {
        match (self, value) {
            (ColumnValues::Integer(values), FieldValue::Integer(number)) => values.push(number),
            (ColumnValues::Decimal(values), FieldValue::Decimal(number)) => values.push(number),
            (ColumnValues::Boolean(values), FieldValue::Boolean(flag)) => values.push(flag),
            (ColumnValues::Time(values), FieldValue::Time(time)) => values.push(time.timestamp_micros()),
            (ColumnValues::Date(values), FieldValue::Date(day)) => {
                values.push((day - NaiveDate::default()).num_days() as i32);
            }
            (
                ColumnValues::Text(values),
                FieldValue::Text(_) | FieldValue::Uuid(_) | FieldValue::Json(_) | FieldValue::Texts(_),
            ) => {
                let text = value.to_text();
                values.push(ByteArray::from(&*text));
                return Ok(text.len());
            }
            (_, value) => return Err(ParquetError::General(format!("{value:?} has another type"))),
        }
        Ok(0)
    }
}

impl<W: Write + Send> ParquetWriter<W> {
    pub fn new(
        output: W,
        columns: &[(&str, FieldType)],
        limits: RowGroupLimits,
    ) -> Result<Self, ParquetError> {
        let (mut fields, mut buffers) = (Vec::new(), Vec::new());
        for (name, field_type) in columns {
            let (values, physical, logical) = ColumnValues::empty(*field_type);
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()?;
            fields.push(Arc::new(field));
            buffers.push(ColumnBuffer { levels: Vec::new(), values });
        }
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        // Statistics and offsets of pages, of which a column of a row group has few, would be held until the end.
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_created_by(concat!("tidemark ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let file = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetWriter { file, limits, columns: buffers, rows: 0, text_bytes: 0 })
    }

    /// Adds a row of the columns, and writes the row group once it is full.
    pub fn add(&mut self, row: Vec<FieldValue<'_>>) -> Result<(), ParquetError> {
        for (ColumnBuffer { levels, values }, value) in self.columns.iter_mut().zip(row) {
            let is_known = value != FieldValue::Null;
            levels.push(i16::from(is_known));
            if is_known {
                self.text_bytes += values.add(value)?;
            }
        }
        self.rows += 1;
        if self.rows >= self.limits.rows || self.text_bytes >= self.limits.text_bytes {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for ColumnBuffer { levels, values } in &mut self.columns {
            match values {
                ColumnValues::Text(values) => write_column::<_, ByteArrayType>(&mut group, levels, values)?,
                ColumnValues::Integer(values) | ColumnValues::Time(values) => {
                    write_column::<_, Int64Type>(&mut group, levels, values)?;
                }
                ColumnValues::Decimal(values) => write_column::<_, DoubleType>(&mut group, levels, values)?,
                ColumnValues::Boolean(values) => write_column::<_, BoolType>(&mut group, levels, values)?,
                ColumnValues::Date(values) => write_column::<_, Int32Type>(&mut group, levels, values)?,
            }
        }
        group.close()?;
        (self.rows, self.text_bytes) = (0, 0);
        Ok(())
    }

    /// Writes a byte between row groups, which readers skip.
    pub fn pad(&mut self) -> io::Result<()> {
        self.file.write_all(&[0])
    }

    /// Returns the output with all that was written.
    pub fn flush(&mut self) -> io::Result<&mut W> {
        self.file.flush()?;
        Ok(self.file.inner_mut())
    }

    /// Writes the last row group and the footer.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner()
    }
}

fn write_column<W: Write + Send, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
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
