//! The report of refused rows: one JSON object a line, made only when there is something to report.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Error;

#[derive(Serialize)]
struct Entry<'a> {
    file: &'a Path,
    line: u64,
    reason: &'a str,
}

/// The refused rows of one run.
pub struct Report {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    refused: u64,
}

impl Report {
    /// A report that is yet to be made. What it would replace must not be one of the files that are loaded.
    pub fn new(path: PathBuf, inputs: &[PathBuf]) -> Result<Self, Error> {
        let identity = |path: &Path| path.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        if let Ok(existing) = identity(&path)
            && inputs.iter().any(|input| identity(input).is_ok_and(|input| input == existing))
        {
            return Err(Error::ReportIsInput(path));
        }
        Ok(Report { path, file: None, refused: 0 })
    }

    pub const fn refused(&self) -> u64 {
        self.refused
    }

    pub fn add(&mut self, file: &Path, line: u64, reason: &str) -> Result<(), Error> {
        self.refused += 1;
        self.write(&Entry { file, line, reason }).map_err(|error| Error::Report(self.path.clone(), error))
    }

    fn write(&mut self, entry: &Entry<'_>) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        serde_json::to_writer(&mut *file, entry)?;
        file.write_all(b"\n")
    }

    /// Says how many rows were refused and where that can be read; the report of an earlier run is removed when
    /// there is nothing to report.
    pub fn finish(self) -> Result<(u64, Option<PathBuf>), Error> {
        let failed = |error| Error::Report(self.path.clone(), error);
        match self.file {
            Some(mut file) => {
                file.flush().map_err(failed)?;
                Ok((self.refused, Some(self.path)))
            }
            None => match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok((0, None)),
            },
        }
    }
}
