//! The client programs of Postgres, which the server of scripts/install-postgres comes without.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Stack, report_skipped};

/// The folder with psql, pg_dump and pg_restore of the test server's major version: a dump of another one may not be
/// possible, or not be restored. Reports the check as skipped if there is none.
pub async fn postgres_clients(check: &str) -> Option<PathBuf> {
    let query = sqlx::query_scalar("select current_setting('server_version_num')::integer / 10000");
    let major: i32 = query.fetch_one(&Stack::shared().databases.pg).await.unwrap();
    let packaged = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::iter::once(packaged).chain(std::env::split_paths(&path));
    let found = folders.find(|folder| client_major(folder) == Some(major));
    if found.is_none() {
        report_skipped(&format!(
            "{check}: psql, pg_dump and pg_restore of Postgres {major} are not installed"
        ));
    }
    found
}

/// The major version of the folder's programs, if all are there.
fn client_major(folder: &Path) -> Option<i32> {
    if !["pg_dump", "pg_restore"].iter().all(|program| folder.join(program).exists()) {
        return None;
    }
    let output = Command::new(folder.join("psql")).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(2)?.split('.').next()?.parse().ok()
}
