//! The report of rejected rows: JSON Lines, created with the first rejected row.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::Error;

#[derive(Serialize)]
struct Rejection<'a> {
    file: &'a Path,
    line: u64,
    reason: &'a str,
}

pub struct RejectionReport {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    rejected: u64,
}

impl RejectionReport {
    /// Checks that the report would not overwrite an input file.
    pub fn new(path: PathBuf, inputs: &[PathBuf]) -> Result<Self, Error> {
        let identity = |file: &Path| file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        if let Ok(existing) = identity(&path)
            && inputs.iter().any(|input| identity(input).is_ok_and(|input| input == existing))
        {
            return Err(Error::ReportIsInput(path));
        }
        Ok(RejectionReport { path, file: None, rejected: 0 })
    }

    pub const fn rejected(&self) -> u64 {
        self.rejected
    }

    pub fn add(&mut self, file: &Path, line: u64, reason: &str) -> Result<(), Error> {
        self.rejected += 1;
        self.write(&Rejection { file, line, reason }).map_err(|error| Error::Report(self.path.clone(), error))
    }

    fn write(&mut self, rejection: &Rejection<'_>) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        serde_json::to_writer(&mut *file, rejection)?;
        file.write_all(b"\n")
    }

    /// Returns the number of rejected rows and the path of the report; without rejected rows, removes an earlier report.
    pub fn finish(self) -> Result<(u64, Option<PathBuf>), Error> {
        let failed = |error| Error::Report(self.path.clone(), error);
        match self.file {
            Some(mut file) => {
                file.flush().map_err(failed)?;
                Ok((self.rejected, Some(self.path)))
            }
            None => match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok((0, None)),
            },
        }
    }
}
