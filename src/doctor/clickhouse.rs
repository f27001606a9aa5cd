//! Whether ClickHouse is reachable, its user has the required privileges, and its disks have space.

use clickhouse::Client;
use clickhouse::error::Error;

use super::report::{Report, Status, TIMEOUT, format_bytes, with_timeout};
use crate::config::ClickhouseArgs;
use crate::store::clickhouse::{client, diagnosis};
use crate::store::clickhouse_error_code;
use crate::store::migrate::supported_releases::CLICKHOUSE;
use crate::store::migrate::{self, SchemaState};

/// Merges write a second copy before they remove the first.
const LOW_DISK_SHARE: f64 = 0.2;
const CRITICAL_DISK_SHARE: f64 = 0.05;
/// Inserts become slow at three times as many parts per partition.
const MAX_PARTS_PER_PARTITION: u64 = 300;

/// Returns a client for other checks if the schema is usable.
pub(super) async fn check(report: &mut Report, args: &ClickhouseArgs) -> Option<Client> {
    let address = address(&args.clickhouse_url);
    let client = client::connect(args);
    let server = client.clone().with_database("default");
    match with_timeout(diagnosis::fetch_version(&server)).await {
        Ok(version) => report.check_release("clickhouse", CLICKHOUSE, &version, &address),
        Err(error) => {
            report_error(report, "clickhouse", &address, args, error);
            return None;
        }
    }
    if let Ok(now) = with_timeout(diagnosis::fetch_time(&server)).await {
        report.compare_clock("clickhouse-clock", "ClickHouse", now);
    }
    let is_usable = check_schema(report, args, &address, &client).await;
    check_disks(report, &server).await;
    if !is_usable {
        return None;
    }
    check_privileges(report, args, &client).await;
    if let Ok(parts) = with_timeout(diagnosis::max_parts_per_partition(&client)).await {
        let (check, state) = ("clickhouse-parts", format!("at most {parts} parts in a partition"));
        if parts > MAX_PARTS_PER_PARTITION {
            report.warn(check, format!("{state}, merges are too slow"), "add processors or a faster disk");
        } else {
            report.ok(check, state);
        }
    }
    Some(client)
}

/// Returns whether the schema is usable.
async fn check_schema(report: &mut Report, args: &ClickhouseArgs, address: &str, client: &Client) -> bool {
    let check = "clickhouse-schema";
    let schema = match with_timeout(migrate::fetch_clickhouse_state(client)).await {
        Ok(schema) => schema,
        Err(None) => {
            report.fail(check, format!("ClickHouse at {address} stopped responding"), "read its log");
            return false;
        }
        Err(error) => {
            report_error(report, check, address, args, error);
            return false;
        }
    };
    if let Err(error) = schema.check_usable("clickhouse") {
        report.add(Status::Fail, check, error.to_string());
        return false;
    }
    report.ok(
        check,
        match schema {
            SchemaState::Newer => "ClickHouse was migrated by a newer, compatible version",
            _ => "ClickHouse has all tables of this version",
        },
    );
    true
}

async fn check_disks(report: &mut Report, server: &Client) {
    match with_timeout(diagnosis::list_disks(server)).await {
        Ok(disks) => {
            for (name, free, total) in disks {
                check_disk(report, &name, free, total);
            }
        }
        Err(Some(error)) => report.warn(
            "clickhouse-disk",
            format!("free space is unknown ({error})"),
            "grant the user select on system.disks",
        ),
        Err(None) => {}
    }
}

fn check_disk(report: &mut Report, name: &str, free: u64, total: u64) {
    let free_share = free as f64 / total as f64;
    let state = format!("{} of {} free on ClickHouse's disk {name}", format_bytes(free), format_bytes(total));
    if free_share < CRITICAL_DISK_SHARE {
        report.fail("clickhouse-disk", state, "add space before inserts fail");
    } else if free_share < LOW_DISK_SHARE {
        report.warn("clickhouse-disk", state, "add space, merges need it for copies");
    } else {
        report.ok("clickhouse-disk", state);
    }
}

async fn check_privileges(report: &mut Report, args: &ClickhouseArgs, client: &Client) {
    let (check, user) = ("clickhouse-rights", &args.clickhouse_user);
    let mut denied = Vec::new();
    for table in diagnosis::WRITTEN_TABLES {
        if with_timeout(diagnosis::check_insert_privilege(client, table)).await.is_err() {
            denied.push(table);
        }
    }
    let sees_processes = with_timeout(diagnosis::check_processes_privilege(client)).await.is_ok();
    if denied.is_empty() && sees_processes {
        report.ok(check, format!("the user {user} may read and write all tables"));
    }
    if !denied.is_empty() {
        report.fail(
            check,
            format!("the user {user} may not write {}", denied.join(", ")),
            format!("grant it select, insert and alter delete on {}.*", args.clickhouse_database),
        );
    }
    if !sees_processes {
        report.fail(
            check,
            format!("the user {user} may not read running statements"),
            "grant it select on system.processes and system.mutations",
        );
    }
}

/// Returns the host and port of a URL, without its credentials and path.
fn address(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => {
            let port = url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}{port}", url.host_str().unwrap_or("an unknown host"))
        }
        Err(_) => "an invalid URL".to_owned(),
    }
}

/// Reports why ClickHouse failed and what to do; no error is a timeout.
fn report_error(
    report: &mut Report,
    check: &'static str,
    address: &str,
    args: &ClickhouseArgs,
    error: Option<Error>,
) {
    let ClickhouseArgs { clickhouse_user: user, clickhouse_database: database, .. } = args;
    let (state, action) = match (error.as_ref().and_then(clickhouse_error_code), error) {
        (Some(516 | 192 | 193 | 194), _) => (
            format!("ClickHouse at {address} rejects the user {user}"),
            "correct TIDEMARK_CLICKHOUSE_USER and TIDEMARK_CLICKHOUSE_PASSWORD".to_owned(),
        ),
        (Some(81), _) => (
            format!("ClickHouse at {address} has no database {database}"),
            "run `tidemark migrate`, which creates it".to_owned(),
        ),
        (Some(497), _) => (
            format!("the user {user} lacks privileges"),
            format!("grant it select, insert and alter delete on {database}.*"),
        ),
        (_, Some(Error::BadResponse(text))) => {
            let reason = args.clickhouse_password.scrub(text.lines().next().unwrap_or_default());
            (format!("ClickHouse at {address} rejects statements ({reason})"), "read its log".to_owned())
        }
        (_, Some(_)) => (
            format!("ClickHouse at {address} cannot be reached"),
            "start it or correct TIDEMARK_CLICKHOUSE_URL".to_owned(),
        ),
        (_, None) => (
            format!("ClickHouse at {address} does not respond within {} s", TIMEOUT.as_secs()),
            "check that it runs and that this machine reaches it".to_owned(),
        ),
    };
    report.fail(check, state, action);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_disk_space_warns_before_it_fails() {
        for (free, status) in [(500, Status::Ok), (150, Status::Warn), (40, Status::Fail)] {
            let mut report = Report::default();
            check_disk(&mut report, "default", free * 1_000_000_000, 1_000_000_000_000);
            assert_eq!(report.0[0].status, status, "{:?}", report.0);
            assert!(report.0[0].message.contains(&format!("{free}.0 GB of 1000.0 GB")), "{:?}", report.0);
        }
    }

    #[test]
    fn address_contains_no_password() {
        assert_eq!(address("https://user:secret@ch.example/x"), "ch.example:443");
        assert_eq!(address("http://127.0.0.1:8123"), "127.0.0.1:8123");
        assert_eq!(address("secret"), "an invalid URL");
    }
}
