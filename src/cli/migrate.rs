//! `tidemark migrate`: brings Postgres and ClickHouse to the schema of this version.

use crate::config::{ClickhouseArgs, PostgresArgs};
use crate::store;

use super::Failure;

/// Bring Postgres and ClickHouse to this version's schema
///
/// Makes the databases where they are missing. Safe to run at any time, and from several machines at once.
#[derive(Debug, clap::Args)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    postgres: PostgresArgs,
    #[command(flatten)]
    clickhouse: ClickhouseArgs,
}

pub(super) async fn run(args: MigrateArgs) -> Result<(), Failure> {
    let applied = store::migrate::run(&args.postgres, &args.clickhouse).await?;
    eprintln!("applied {} migrations to Postgres and {} to ClickHouse", applied.postgres, applied.clickhouse);
    Ok(())
}
