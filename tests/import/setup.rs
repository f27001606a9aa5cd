//! Input files in temporary folders, and helpers to import them.

use std::path::{Path, PathBuf};

use harness::Organization;
use tidemark::export::{self, ExportFormat, ExportOptions, ExportSummary};
use tidemark::import::{self, ImportOptions, ImportSummary};

pub const HEADER: &str = "platform,username,external_id,observed_at,create_time,description,view_count,like_count,\
    comment_count,share_count,saved_count,follower_count,creator,category,name";

/// A file in its own temporary folder.
pub struct InputFile {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl InputFile {
    pub fn csv(rows: &[&str]) -> Self {
        Self::create("history.csv", format!("{HEADER}\n{}\n", rows.join("\n")))
    }

    pub fn create(name: &str, text: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        InputFile { folder, path }
    }

    /// The default path of the report of refused rows.
    pub fn report(&self) -> PathBuf {
        self.folder.path().join("history.csv.refused.jsonl")
    }
}

/// A file in the shape that a tool writes.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/fixtures").join(name)
}

pub async fn load(organization: &Organization, path: &Path) -> ImportSummary {
    load_with(organization, path, &ImportOptions::default()).await
}

pub async fn load_with(organization: &Organization, path: &Path, options: &ImportOptions) -> ImportSummary {
    try_load(organization, vec![path.to_owned()], options).await.unwrap()
}

pub async fn try_load(
    organization: &Organization,
    files: Vec<PathBuf>,
    options: &ImportOptions,
) -> Result<ImportSummary, import::Error> {
    import::load(&organization.stack.databases, organization.id, files, options).await
}

/// Why a file is refused whole.
pub async fn refusal(organization: &Organization, path: &Path) -> String {
    match try_load(organization, vec![path.to_owned()], &ImportOptions::default()).await {
        Ok(mut summary) => {
            let report = summary.files.remove(0);
            report.error.clone().unwrap_or_else(|| panic!("{} was read: {report:?}", path.display()))
        }
        Err(error) => error.to_string(),
    }
}

pub async fn export(organization: &Organization, format: ExportFormat, output: PathBuf) -> ExportSummary {
    let options = ExportOptions { format, output, progress: false };
    export::write_files(&organization.stack.databases, organization.id, &options).await.unwrap()
}

/// The line and the reason of each refused row.
pub fn refused_rows(summary: &ImportSummary) -> Vec<(u64, String)> {
    let report = std::fs::read_to_string(summary.report_file.as_ref().unwrap()).unwrap();
    let entry = |line: &str| {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        (entry["line"].as_u64().unwrap(), entry["reason"].as_str().unwrap().to_owned())
    };
    report.lines().map(entry).collect()
}
