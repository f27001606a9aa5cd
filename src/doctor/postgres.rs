//! Postgres: whether it is there, whether it is set up so that the service can stand on it, and whether it has room.

use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};

use super::{PATIENCE, Report, within};
use crate::config::PostgresArgs;
use crate::store::migrate::{self, SchemaState};
use crate::store::postgres::diagnosis::{self, OpenTransaction, Server};

/// The oldest version that has all that statements need, and the oldest that tests run on.
const OLDEST: i32 = 140_000;
const TESTED: i32 = 150_000;
/// How long a transaction may be open before it is worth a word, in seconds.
const LONG: i64 = 300;

/// Returns connections for what else is to be looked at, where Postgres has our tables.
pub(super) async fn check(report: &mut Report, args: &PostgresArgs) -> Option<PgPool> {
    let Ok(options) = PgConnectOptions::from_str(args.database_url.reveal()) else {
        report.fail(
            "postgres",
            "TIDEMARK_DATABASE_URL is no URL such as postgres://user:password@host:port/database: correct it",
        );
        return None;
    };
    let place = format!("{}:{}", options.get_host(), options.get_port());
    let mut connection = match within(PgConnection::connect_with(&options)).await {
        Some(Ok(connection)) => connection,
        Some(Err(error)) => {
            report.fail("postgres", refusal(&place, &options, &error));
            return None;
        }
        None => {
            report.fail(
                "postgres",
                format!(
                    "Postgres at {place} does not answer within {} s: see that it runs and that this machine reaches it",
                    PATIENCE.as_secs()
                ),
            );
            return None;
        }
    };
    let looked = within(look(report, args, &place, &mut connection)).await;
    // What was read is read; the server notices that nobody is there any more.
    drop(connection.close().await);
    match looked {
        Some(Ok(true)) => {}
        Some(Ok(false)) => return None,
        Some(Err(error)) => {
            report.fail("postgres", format!("Postgres at {place} cannot be looked at: {error}"));
            return None;
        }
        None => {
            report.fail("postgres", format!("Postgres at {place} does not answer any more: see its log"));
            return None;
        }
    }
    Some(PgPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE).connect_lazy_with(options))
}

/// Looks at everything; whether our tables are there.
async fn look(
    report: &mut Report,
    args: &PostgresArgs,
    place: &str,
    connection: &mut PgConnection,
) -> Result<bool, sqlx::Error> {
    let server = diagnosis::fetch_server(connection).await?;
    of_server(report, args, place, &server);
    report.clock("postgres-clock", "Postgres", server.now);
    let schema = migrate::fetch_postgres_state(connection).await?;
    if let Err(error) = schema.check_usable("postgres") {
        report.fail("postgres-schema", error.to_string());
        return Ok(false);
    }
    report.ok(
        "postgres-schema",
        match schema {
            SchemaState::Newer => "Postgres was migrated by a newer version, which this one works beside",
            _ => "Postgres has all migrations of this version",
        },
    );
    match &diagnosis::inaccessible_tables(connection).await?[..] {
        [] => report.ok("postgres-rights", "the role may read and write every table"),
        closed => report.fail(
            "postgres-rights",
            format!(
                "the role may not read and write {}: run as their owner `grant select, insert, update, delete on all \
                 tables in schema public to` it, and `grant usage, update on all sequences in schema public to` it",
                closed.join(", ")
            ),
        ),
    }
    for index in diagnosis::invalid_indexes(connection).await? {
        report.fail(
            "postgres-indexes",
            format!(
                "the building of index {index} was broken off: run `drop index concurrently {index}`, then create it \
                 again as its migration does"
            ),
        );
    }
    of_transactions(report, &server, diagnosis::find_longest_transaction(connection, LONG).await?.as_ref());
    Ok(true)
}

fn of_server(report: &mut Report, args: &PostgresArgs, place: &str, server: &Server) {
    let Server { version, version_number, encoding, .. } = server;
    match *version_number {
        ..OLDEST => report.fail(
            "postgres",
            format!(
                "Postgres at {place} is {version}, which is too old: upgrade it to {} or newer",
                TESTED / 10_000
            ),
        ),
        OLDEST..TESTED => report.warn(
            "postgres",
            format!(
                "Postgres at {place} is {version}: Tidemark is tested with {} and newer",
                TESTED / 10_000
            ),
        ),
        _ => report.ok("postgres", format!("Postgres {version} answers at {place}")),
    }
    if encoding != "UTF8" {
        report.fail(
            "postgres-settings",
            format!("the database is encoded in {encoding}, which cannot hold every caption: make it with encoding UTF8"),
        );
    } else if server.is_replica {
        report.fail(
            "postgres-settings",
            "this Postgres is a replica, which nobody can write to: name the primary",
        );
    } else if server.is_read_only {
        report.fail(
            "postgres-settings",
            "Postgres only lets itself be read, so writes answer 503: make room on its disk, and what watches it \
             (docs/operating.md) has it take writes again; or reset default_transaction_read_only, if somebody else set it",
        );
    } else if !server.is_durable {
        report.warn(
            "postgres-settings",
            "a loss of power can take committed changes away that ClickHouse has already: set fsync and \
             synchronous_commit on",
        );
    } else {
        report.ok("postgres-settings", "encoding, durability and role of the server are right");
    }
    let free = i64::from(server.max_connections) - server.used_connections;
    // Beside its pool an API process has two for its search index, and a tracker up to two for its places.
    let wanted = i64::from(args.database_connections) + 2;
    let of = format!("{free} of {} connections are free", server.max_connections);
    if free <= 0 {
        report.fail("postgres-connections", format!("{of}: raise max_connections, or run fewer processes"));
    } else if free < wanted {
        report.warn(
            "postgres-connections",
            format!(
                "{of}, and one more process takes up to {wanted}: raise max_connections, or lower \
                 TIDEMARK_DATABASE_CONNECTIONS"
            ),
        );
    } else {
        report.ok("postgres-connections", of);
    }
}

fn of_transactions(report: &mut Report, server: &Server, open: Option<&OpenTransaction>) {
    let (check, role, minutes) = ("postgres-transactions", &server.role, LONG / 60);
    match open {
        Some(open) => report.warn(check, of_transaction(open)),
        None if server.sees_all_sessions => {
            report.ok(check, format!("no transaction is open for more than {minutes} minutes"));
        }
        None => report.warn(
            check,
            format!(
                "the role {role} has no transaction open for more than {minutes} minutes, and sees none of others: run \
                 `grant pg_read_all_stats to {role}` as a superuser, or look at pg_stat_activity as who sees all of it"
            ),
        ),
    }
}

fn of_transaction(open: &OpenTransaction) -> String {
    let OpenTransaction { pid, application_name, seconds, has_written } = open;
    let harm = if *has_written {
        "what is written since is not found by search"
    } else {
        "a migration may have to wait for it, and what was deleted since stays in the files"
    };
    format!(
        "a transaction of {application_name} is open for {} minutes: {harm}; end it with \
         `select pg_terminate_backend({pid})`, unless it is a backup",
        seconds / 60
    )
}

/// Why there is no connection, without what the URL holds besides the place.
fn refusal(place: &str, options: &PgConnectOptions, error: &sqlx::Error) -> String {
    let code = error.as_database_error().and_then(|error| error.code());
    let user = options.get_username();
    match code.as_deref() {
        Some("28P01" | "28000") => format!(
            "Postgres at {place} refuses the role {user}: correct its name and password in TIDEMARK_DATABASE_URL"
        ),
        Some("3D000") => format!(
            "Postgres at {place} has no database {}: run `tidemark migrate`, which makes it",
            options.get_database().unwrap_or(user)
        ),
        Some("53300") => format!(
            "Postgres at {place} has no connection left: raise max_connections, or run fewer processes"
        ),
        Some("57P03") => format!("Postgres at {place} is starting or stopping: wait for it"),
        Some(_) => format!("Postgres at {place} refuses the connection: {error}"),
        None => format!(
            "Postgres at {place} cannot be reached ({error}): start it, or correct TIDEMARK_DATABASE_URL"
        ),
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::super::Status;
    use super::*;
    use crate::model::secret::Secret;

    fn said(server: &Server) -> Vec<(Status, &'static str)> {
        let args = PostgresArgs { database_url: Secret::default(), database_connections: 16 };
        let mut report = Report::default();
        of_server(&mut report, &args, "db:5432", server);
        report.0.iter().map(|finding| (finding.status, finding.check)).collect()
    }

    #[test]
    fn what_is_wrong_with_a_server_is_told_apart() {
        use Status::{Fail, Ok, Warn};
        let right = Server {
            version: "17.2".to_owned(),
            version_number: 170_002,
            encoding: "UTF8".to_owned(),
            max_connections: 97,
            used_connections: 20,
            role: "tidemark".to_owned(),
            sees_all_sessions: true,
            is_durable: true,
            is_replica: false,
            is_read_only: false,
            now: Utc::now(),
        };
        let of = |version, settings, connections| {
            [(version, "postgres"), (settings, "postgres-settings"), (connections, "postgres-connections")]
        };
        assert_eq!(said(&right), of(Ok, Ok, Ok));
        assert_eq!(said(&Server { version_number: 120_011, ..right.clone() }), of(Fail, Ok, Ok));
        assert_eq!(said(&Server { version_number: 140_000, ..right.clone() }), of(Warn, Ok, Ok));
        assert_eq!(said(&Server { encoding: "SQL_ASCII".to_owned(), ..right.clone() }), of(Ok, Fail, Ok));
        assert_eq!(said(&Server { is_replica: true, ..right.clone() }), of(Ok, Fail, Ok));
        assert_eq!(said(&Server { is_read_only: true, ..right.clone() }), of(Ok, Fail, Ok));
        assert_eq!(said(&Server { is_durable: false, ..right.clone() }), of(Ok, Warn, Ok));
        assert_eq!(said(&Server { used_connections: 90, ..right.clone() }), of(Ok, Ok, Warn));
        assert_eq!(said(&Server { used_connections: 97, ..right }), of(Ok, Ok, Fail));
    }

    #[test]
    fn an_open_transaction_is_told_with_what_ends_it() {
        let open =
            OpenTransaction { pid: 42, application_name: "psql".to_owned(), seconds: 660, has_written: true };
        let told = of_transaction(&open);
        assert!(told.contains("not found by search"), "{told}");
        assert!(!of_transaction(&OpenTransaction { has_written: false, ..open.clone() }).contains("search"));
        assert!(
            told.contains("psql is open for 11 minutes") && told.contains("pg_terminate_backend(42)"),
            "{told}"
        );
    }
}
