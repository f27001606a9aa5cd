//! A CSV, JSON Lines or Parquet file of rows, under a temporary name until it is complete.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::error::Error;
use crate::model::field::FieldValue;
use crate::model::file_row::{Columns, FileColumns};
use crate::parquet_writer::{ParquetWriter, RowGroupLimits};

/// Few row groups of many rows.
const ROW_GROUPS: RowGroupLimits = RowGroupLimits { rows: 50_000, text_bytes: 16 << 20 };

/// The format of exported files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// Comma-separated values with a header
    Csv,
    /// One JSON object per line
    Jsonl,
    /// Parquet, compressed with zstd
    Parquet,
}

impl ExportFormat {
    pub const fn extension(self) -> &'static str {
        match self {
            ExportFormat::Csv => "csv",
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Parquet => "parquet",
        }
    }
}

/// A file that is being written; dropping it before [`HistoryFile::publish`] removes it.
pub struct HistoryFile {
    path: PathBuf,
    temporary: PathBuf,
    columns: Columns,
    /// `None` once the file is complete.
    writer: Option<FormatWriter>,
    pub rows: u64,
}

enum FormatWriter {
    Csv(Box<csv::Writer<File>>),
    Jsonl(BufWriter<File>),
    Parquet(Box<ParquetWriter<File>>),
}

impl HistoryFile {
    pub fn create(path: PathBuf, format: ExportFormat, columns: Columns) -> Result<Self, Error> {
        let mut file_name = path.file_name().unwrap_or_default().to_owned();
        file_name.push(format!(".{}.part", uuid::Uuid::now_v7()));
        let temporary = path.with_file_name(file_name);
        let failed = |error| Error::file(&temporary, error);
        let file = File::create_new(&temporary).map_err(failed)?;
        let mut history = HistoryFile { path, temporary: temporary.clone(), columns, writer: None, rows: 0 };
        history.writer = Some(match format {
            ExportFormat::Csv => {
                let mut csv = csv::WriterBuilder::new().buffer_capacity(1 << 18).from_writer(file);
                csv.write_record(history.columns.iter().map(|(name, _)| name))
                    .map_err(|error| failed(io::Error::other(error)))?;
                FormatWriter::Csv(Box::new(csv))
            }
            ExportFormat::Jsonl => FormatWriter::Jsonl(BufWriter::with_capacity(1 << 18, file)),
            ExportFormat::Parquet => FormatWriter::Parquet(Box::new(
                ParquetWriter::new(file, &history.columns, ROW_GROUPS)
                    .map_err(|error| failed(io::Error::other(error)))?,
            )),
        });
        Ok(history)
    }

    /// Adds a row of the columns.
    pub fn add(&mut self, row: &impl FileColumns) -> Result<(), Error> {
        self.rows += 1;
        let values = row.values();
        let written = match &mut self.writer {
            Some(FormatWriter::Csv(csv)) => write_csv(csv, values),
            Some(FormatWriter::Jsonl(file)) => write_json(file, &self.columns, values),
            Some(FormatWriter::Parquet(parquet)) => parquet.add(values).map_err(io::Error::other),
            None => Ok(()),
        };
        written.map_err(|error| Error::file(&self.temporary, error))
    }

    /// Flushes all rows to the temporary file.
    pub fn complete(&mut self) -> Result<(), Error> {
        let completed = match self.writer.take() {
            Some(FormatWriter::Csv(csv)) => (*csv).into_inner().map_err(|error| error.into_error()),
            Some(FormatWriter::Jsonl(file)) => file.into_inner().map_err(io::IntoInnerError::into_error),
            Some(FormatWriter::Parquet(parquet)) => parquet.finish().map_err(io::Error::other),
            None => return Ok(()),
        };
        completed.and_then(|file| file.sync_all()).map_err(|error| Error::file(&self.temporary, error))
    }

    /// Renames the complete file, which replaces an earlier one.
    pub fn publish(mut self) -> Result<PathBuf, Error> {
        self.complete()?;
        std::fs::rename(&self.temporary, &self.path).map_err(|error| Error::file(&self.path, error))?;
        Ok(self.path.clone())
    }
}

impl Drop for HistoryFile {
    fn drop(&mut self) {
        // A published file has been renamed.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn write_csv(csv: &mut csv::Writer<File>, values: Vec<FieldValue<'_>>) -> io::Result<()> {
    for value in values {
        csv.write_field(value.to_text().as_bytes()).map_err(io::Error::other)?;
    }
    csv.write_record(None::<&[u8]>).map_err(io::Error::other)
}

fn write_json(file: &mut BufWriter<File>, columns: &Columns, values: Vec<FieldValue<'_>>) -> io::Result<()> {
    let mut before = b'{';
    for ((name, _), value) in columns.iter().zip(values) {
        // Importing a row without a posting time would complete it.
        if value != FieldValue::Null || *name == "create_time" {
            file.write_all(&[before])?;
            write!(file, "\"{name}\":")?;
            match value {
                FieldValue::Time(_) => serde_json::to_writer(&mut *file, &value.to_text())?,
                value => serde_json::to_writer(&mut *file, &value)?,
            }
            before = b',';
        }
    }
    file.write_all(b"}\n")
}
