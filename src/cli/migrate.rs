//! `tidemark migrate`: applies this version's schema.

use crate::config::{ClickhouseArgs, PostgresArgs};
use crate::store;

use super::error::CommandError;

/// Migrate Postgres and ClickHouse to this version's schema
///
/// Creates missing databases. Safe at any time, also from several machines at once.
#[derive(Debug, clap::Args)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    postgres: PostgresArgs,
    #[command(flatten)]
    clickhouse: ClickhouseArgs,
}

pub(super) async fn run(args: MigrateArgs) -> Result<(), CommandError> {
    let applied = store::migrate::run(&args.postgres, &args.clickhouse).await?;
    eprintln!("applied {} migrations to Postgres and {} to ClickHouse", applied.postgres, applied.clickhouse);
    Ok(())
}
