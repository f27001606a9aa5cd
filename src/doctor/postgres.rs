//! Whether Postgres is reachable, configured as the service needs it, and has capacity.

use chrono::Utc;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool};

use super::report::{Report, Status, TIMEOUT, with_timeout};
use crate::config::PostgresArgs;
use crate::store::Error;
use crate::store::migrate::supported_releases::POSTGRES;
use crate::store::migrate::{self, SchemaState};
use crate::store::postgres::clock::ClockReading;
use crate::store::postgres::diagnosis::{self, OpenTransaction, PostgresServer};
use crate::store::postgres::session;

const LONG_TRANSACTION_SECONDS: i64 = 300;

/// Returns a pool for other checks if the schema is usable.
pub(super) async fn check(report: &mut Report, args: &PostgresArgs) -> Option<PgPool> {
    let Ok(options) = session::parse_url(args.database_url.reveal()) else {
        report.fail(
            "postgres",
            "TIDEMARK_DATABASE_URL is no URL",
            "set it, for example to postgres://user:password@host:port/database",
        );
        return None;
    };
    let address = format!("{}:{}", options.get_host(), options.get_port());
    let mut connection = match with_timeout(PgConnection::connect_with(&options)).await {
        Ok(connection) => connection,
        Err(error) => {
            let (state, action) = describe_connect_error(&address, &options, error);
            report.fail("postgres", state, action);
            return None;
        }
    };
    let is_usable = match with_timeout(session::are_shared(&options)).await {
        Ok(false) => {
            report.ok("postgres-sessions", "each connection has a Postgres session of its own");
            with_timeout(check_database(report, args, &address, &mut connection)).await
        }
        Ok(true) => {
            report.add(Status::Fail, "postgres-sessions", Error::SharedSession.to_string());
            return None;
        }
        Err(error) => {
            let (state, action) = describe_connect_error(&address, &options, error);
            report.fail("postgres", state, action);
            return None;
        }
    };
    drop(connection.close().await);
    let state = match is_usable {
        Ok(true) => {
            let pool = PgPoolOptions::new().max_connections(2).acquire_timeout(TIMEOUT);
            return Some(pool.connect_lazy_with(options));
        }
        Ok(false) => return None,
        Err(Some(error)) => format!("Postgres at {address} fails ({error})"),
        Err(None) => format!("Postgres at {address} stopped responding"),
    };
    report.fail("postgres", state, "read its log");
    None
}

/// Runs the checks that need a connection. Returns whether the schema is usable.
async fn check_database(
    report: &mut Report,
    args: &PostgresArgs,
    address: &str,
    connection: &mut PgConnection,
) -> Result<bool, sqlx::Error> {
    let server = diagnosis::fetch_server(connection).await?;
    report.check_release("postgres", POSTGRES, &server.version, address);
    check_settings(report, &server);
    check_connections(report, args, &server);
    check_clock(report, &server);
    let schema = migrate::fetch_postgres_state(connection).await?;
    if let Err(error) = schema.check_usable("postgres") {
        report.add(Status::Fail, "postgres-schema", error.to_string());
        return Ok(false);
    }
    report.ok(
        "postgres-schema",
        match schema {
            SchemaState::Newer => "Postgres was migrated by a newer, compatible version",
            _ => "Postgres has all migrations of this version",
        },
    );
    match &diagnosis::list_inaccessible_tables(connection).await?[..] {
        [] => report.ok("postgres-rights", "the role may read and write all tables"),
        tables => report.fail(
            "postgres-rights",
            format!("the role may not read and write {}", tables.join(", ")),
            "run as their owner `grant select, insert, update, delete on all tables in schema public to` it and \
             `grant usage, update on all sequences in schema public to` it",
        ),
    }
    for index in diagnosis::list_invalid_indexes(connection).await? {
        report.fail(
            "postgres-indexes",
            format!("the build of index {index} was interrupted"),
            format!("run `drop index concurrently {index}`, then create it as its migration does"),
        );
    }
    let open = diagnosis::find_longest_transaction(connection, LONG_TRANSACTION_SECONDS).await?;
    check_transactions(report, &server, open.as_ref());
    Ok(true)
}

fn check_settings(report: &mut Report, server: &PostgresServer) {
    let (check, encoding) = ("postgres-settings", &server.encoding);
    if encoding != "UTF8" {
        report.fail(
            check,
            format!("the database's encoding {encoding} cannot store every caption"),
            "create it with encoding UTF8",
        );
    } else if server.is_replica {
        report.fail(check, "this Postgres is a replica", "use the primary");
    } else if server.is_read_only {
        report.fail(
            check,
            "Postgres is read-only, writes are answered with 503",
            "free disk space, then the disk guard (docs/operating.md) allows writes; or reset \
             default_transaction_read_only if something else set it",
        );
    } else if !server.is_durable {
        report.warn(
            check,
            "a power failure can lose committed changes that ClickHouse has",
            "turn fsync and synchronous_commit on",
        );
    } else {
        report.ok(check, "encoding and durability are as required, and the server is a primary");
    }
}

fn check_connections(report: &mut Report, args: &PostgresArgs, server: &PostgresServer) {
    let check = "postgres-connections";
    let free = i64::from(server.max_connections) - server.used_connections;
    // Besides its pool, an API process uses two for the search indexer, a tracker up to three for its locks.
    let needed = i64::from(args.database_connections) + 3;
    let state = format!("{free} of {} connections are free", server.max_connections);
    if free <= 0 {
        report.fail(check, state, "raise max_connections or run fewer processes");
    } else if free < needed {
        report.warn(
            check,
            format!("{state}, one more process uses up to {needed}"),
            "raise max_connections or lower TIDEMARK_DATABASE_CONNECTIONS",
        );
    } else {
        report.ok(check, state);
    }
}

fn check_clock(report: &mut Report, server: &PostgresServer) {
    let check = "postgres-clock";
    let skew = ClockReading::new(Utc::now()).skew(server.now);
    if skew.is_excessive() {
        let action = "synchronize both by NTP: until then `tidemark track` does not start here";
        report.fail(check, format!("this machine's clock is {skew}"), action);
    } else {
        report.compare_clock(check, "Postgres", server.now);
    }
}

fn check_transactions(report: &mut Report, server: &PostgresServer, open: Option<&OpenTransaction>) {
    let (check, role, minutes) = ("postgres-transactions", &server.role, LONG_TRANSACTION_SECONDS / 60);
    match open {
        Some(OpenTransaction { pid, application_name, seconds, has_written }) => {
            let effect = if *has_written {
                "search does not find changes since then"
            } else {
                "migrations may wait for it, and data deleted since then stays in the files"
            };
            report.warn(
                check,
                format!("a transaction of {application_name} is open for {} minutes: {effect}", seconds / 60),
                format!("unless it is a backup, end it with `select pg_terminate_backend({pid})`"),
            );
        }
        None if server.sees_all_sessions => {
            report.ok(check, format!("no transaction is open for more than {minutes} minutes"));
        }
        None => report.warn(
            check,
            format!("the role {role} does not see transactions of other roles"),
            format!(
                "run `grant pg_read_all_stats to {role}` as a superuser, or read pg_stat_activity as one"
            ),
        ),
    }
}

/// Returns why connecting failed and what to do, without secrets of the URL; no error is a timeout.
fn describe_connect_error(
    address: &str,
    options: &PgConnectOptions,
    error: Option<sqlx::Error>,
) -> (String, &'static str) {
    let Some(error) = error else {
        let state = format!("Postgres at {address} does not respond within {} s", TIMEOUT.as_secs());
        return (state, "check that it runs and that this machine reaches it");
    };
    let code = error.as_database_error().and_then(|error| error.code());
    let user = options.get_username();
    match code.as_deref() {
        Some("28P01" | "28000") => (
            format!("Postgres at {address} rejects the role {user}"),
            "correct its name and password in TIDEMARK_DATABASE_URL",
        ),
        Some("3D000") => (
            format!("Postgres at {address} has no database {}", options.get_database().unwrap_or(user)),
            "run `tidemark migrate`, which creates it",
        ),
        Some("53300") => (
            format!("Postgres at {address} has no free connection"),
            "raise max_connections or run fewer processes",
        ),
        Some("57P03") => (format!("Postgres at {address} is starting or stopping"), "wait for it"),
        Some(_) => (format!("Postgres at {address} rejects the connection ({error})"), "read its log"),
        None => (
            format!("Postgres at {address} cannot be reached ({error})"),
            "start it or correct TIDEMARK_DATABASE_URL",
        ),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::model::secret::Secret;

    fn statuses(server: &PostgresServer) -> Vec<(Status, &'static str)> {
        let args = PostgresArgs { database_url: Secret::default(), database_connections: 16 };
        let mut report = Report::default();
        report.check_release("postgres", POSTGRES, &server.version, "db:5432");
        check_settings(&mut report, server);
        check_connections(&mut report, &args, server);
        check_clock(&mut report, server);
        report.0.iter().map(|finding| (finding.status, finding.check)).collect()
    }

    fn healthy() -> PostgresServer {
        PostgresServer {
            version: "17.2".to_owned(),
            encoding: "UTF8".to_owned(),
            max_connections: 97,
            used_connections: 20,
            role: "tidemark".to_owned(),
            sees_all_sessions: true,
            is_durable: true,
            is_replica: false,
            is_read_only: false,
            now: Utc::now(),
        }
    }

    #[test]
    fn each_server_problem_has_its_own_finding() {
        use Status::{Fail, Ok, Warn};
        let expected = |version, settings, connections, clock| {
            [
                (version, "postgres"),
                (settings, "postgres-settings"),
                (connections, "postgres-connections"),
                (clock, "postgres-clock"),
            ]
        };
        let ahead = |seconds| Utc::now() + TimeDelta::seconds(seconds);
        for (server, findings) in [
            (healthy(), expected(Ok, Ok, Ok, Ok)),
            (PostgresServer { version: "14.9".to_owned(), ..healthy() }, expected(Fail, Ok, Ok, Ok)),
            (PostgresServer { version: "19beta1".to_owned(), ..healthy() }, expected(Warn, Ok, Ok, Ok)),
            (PostgresServer { encoding: "SQL_ASCII".to_owned(), ..healthy() }, expected(Ok, Fail, Ok, Ok)),
            (PostgresServer { is_replica: true, ..healthy() }, expected(Ok, Fail, Ok, Ok)),
            (PostgresServer { is_read_only: true, ..healthy() }, expected(Ok, Fail, Ok, Ok)),
            (PostgresServer { is_durable: false, ..healthy() }, expected(Ok, Warn, Ok, Ok)),
            (PostgresServer { used_connections: 90, ..healthy() }, expected(Ok, Ok, Warn, Ok)),
            (PostgresServer { used_connections: 97, ..healthy() }, expected(Ok, Ok, Fail, Ok)),
            (PostgresServer { now: ahead(30), ..healthy() }, expected(Ok, Ok, Ok, Warn)),
            (PostgresServer { now: ahead(90), ..healthy() }, expected(Ok, Ok, Ok, Fail)),
            (PostgresServer { now: ahead(-90), ..healthy() }, expected(Ok, Ok, Ok, Fail)),
        ] {
            assert_eq!(statuses(&server), findings, "{server:?}");
        }
    }

    #[test]
    fn open_transaction_is_reported_with_its_effect() {
        let message = |has_written| {
            let application_name = "psql".to_owned();
            let open = OpenTransaction { pid: 42, application_name, seconds: 660, has_written };
            let mut report = Report::default();
            check_transactions(&mut report, &healthy(), Some(&open));
            report.0.remove(0).message
        };
        let written = message(true);
        assert!(written.contains("search does not find"), "{written}");
        assert!(written.contains("psql is open for 11 minutes"), "{written}");
        assert!(written.contains("pg_terminate_backend(42)"), "{written}");
        assert!(!message(false).contains("search"));
    }
}
