//! The report of rejected rows: JSON Lines, created with the first rejected row.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::Error;
use super::options::SourceFile;

#[derive(Serialize)]
struct Rejection<'a> {
    file: &'a str,
    line: u64,
    reason: &'a str,
}

pub struct RejectionReport {
    /// `None`: rejected rows are only counted.
    path: Option<PathBuf>,
    file: Option<BufWriter<File>>,
    rejected: u64,
}

impl RejectionReport {
    /// Checks that the report would not overwrite an input file.
    pub fn new(path: Option<PathBuf>, inputs: &[SourceFile]) -> Result<Self, Error> {
        let identity = |file: &Path| file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        if let Some(path) = &path
            && let Ok(existing) = identity(path)
            && inputs.iter().any(|input| identity(&input.path).is_ok_and(|input| input == existing))
        {
            return Err(Error::ReportIsInput(path.clone()));
        }
        Ok(RejectionReport { path, file: None, rejected: 0 })
    }

    pub const fn rejected(&self) -> u64 {
        self.rejected
    }

    pub fn add(&mut self, file: &SourceFile, line: u64, reason: &str) -> Result<(), Error> {
        self.rejected += 1;
        let Some(path) = self.path.clone() else { return Ok(()) };
        let rejection = Rejection { file: &file.name, line, reason };
        self.write(&path, &rejection).map_err(|error| Error::Report(path, error))
    }

    fn write(&mut self, path: &Path, rejection: &Rejection<'_>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(path)?)),
        };
        serde_json::to_writer(&mut *file, rejection)?;
        file.write_all(b"\n")
    }

    /// Returns the number of rejected rows and the path of the report; without rejected rows, removes an earlier report.
    pub fn finish(self) -> Result<(u64, Option<PathBuf>), Error> {
        let Some(path) = self.path else { return Ok((self.rejected, None)) };
        match self.file {
            Some(mut file) => match file.flush() {
                Ok(()) => Ok((self.rejected, Some(path))),
                Err(error) => Err(Error::Report(path, error)),
            },
            None => match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::Report(path, error)),
                _ => Ok((0, None)),
            },
        }
    }
}
