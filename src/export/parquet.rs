//! Writes Parquet files, compressed with zstd.

use std::fs::File;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;

use crate::model::field::{FieldType, FieldValue};

/// Rows per row group: columns compress well, and memory stays small.
const MAX_GROUP_ROWS: usize = 50_000;
/// Bytes of text after which a row group ends, whatever its number of rows.
const MAX_GROUP_TEXT_BYTES: usize = 16 << 20;

/// Writes rows as row groups.
pub struct ParquetWriter {
    file: SerializedFileWriter<File>,
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
}

impl ParquetWriter {
    pub fn new(file: File, columns: &[(&str, FieldType)]) -> Result<Self, ParquetError> {
        let (mut fields, mut buffers) = (Vec::new(), Vec::new());
        for (name, field_type) in columns {
            let (physical, logical, values) = match field_type {
                FieldType::Integer => (Physical::INT64, None, ColumnValues::Integer(Vec::new())),
                FieldType::Decimal => (Physical::DOUBLE, None, ColumnValues::Decimal(Vec::new())),
                FieldType::Boolean => (Physical::BOOLEAN, None, ColumnValues::Boolean(Vec::new())),
                FieldType::Time => {
                    let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                    (Physical::INT64, Some(logical), ColumnValues::Integer(Vec::new()))
                }
                _ => (Physical::BYTE_ARRAY, Some(LogicalType::String), ColumnValues::Text(Vec::new())),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()?;
            fields.push(Arc::new(field));
            buffers.push(ColumnBuffer { levels: Vec::new(), values });
        }
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("tidemark ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        Ok(ParquetWriter {
            columns: buffers,
            file: SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?,
            rows: 0,
            text_bytes: 0,
        })
    }

    pub fn add(&mut self, row: Vec<FieldValue<'_>>) -> Result<(), ParquetError> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.levels.push(i16::from(value != FieldValue::Null));
            match (&mut column.values, value) {
                (_, FieldValue::Null) => {}
                (ColumnValues::Integer(values), FieldValue::Integer(number)) => values.push(number),
                (ColumnValues::Integer(values), FieldValue::Time(time)) => {
                    values.push(time.timestamp_micros())
                }
                (ColumnValues::Decimal(values), FieldValue::Decimal(number)) => values.push(number),
                (ColumnValues::Boolean(values), FieldValue::Boolean(flag)) => values.push(flag),
                (ColumnValues::Text(values), FieldValue::Text(text)) => {
                    self.text_bytes += text.len();
                    values.push(ByteArray::from(text));
                }
                (_, value) => return Err(ParquetError::General(format!("{value:?} has another type"))),
            }
        }
        self.rows += 1;
        if self.rows >= MAX_GROUP_ROWS || self.text_bytes >= MAX_GROUP_TEXT_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for ColumnBuffer { levels, values } in &mut self.columns {
            match values {
                ColumnValues::Text(values) => write_column::<ByteArrayType>(&mut group, levels, values)?,
                ColumnValues::Integer(values) => write_column::<Int64Type>(&mut group, levels, values)?,
                ColumnValues::Decimal(values) => write_column::<DoubleType>(&mut group, levels, values)?,
                ColumnValues::Boolean(values) => write_column::<BoolType>(&mut group, levels, values)?,
            }
        }
        group.close()?;
        (self.rows, self.text_bytes) = (0, 0);
        Ok(())
    }

    /// Writes the last row group and the footer.
    pub fn finish(mut self) -> Result<File, ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.into_inner()
    }
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
