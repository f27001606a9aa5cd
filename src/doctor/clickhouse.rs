//! ClickHouse: whether it is there, whether the service's user may do what the service does, and whether it has room.

use clickhouse::Client;
use clickhouse::error::Error;

use super::{PATIENCE, Report, bytes, within};
use crate::config::ClickhouseArgs;
use crate::store::clickhouse::client;
use crate::store::clickhouse::diagnosis;
use crate::store::clickhouse_error_code;
use crate::store::migrate::{self, SchemaState};

/// The oldest major version that Tidemark was run with.
const TESTED: u32 = 26;
/// The share of a disk that has to be free: merges write a second copy before they remove the first.
const LITTLE: f64 = 0.2;
const NEXT_TO_NOTHING: f64 = 0.05;
/// Parts from which ClickHouse does not merge as fast as is written; at three times as many it slows inserts down.
const MANY_PARTS: u64 = 300;

/// Returns a client for what else is to be looked at, where ClickHouse has our tables.
pub(super) async fn check(report: &mut Report, args: &ClickhouseArgs) -> Option<Client> {
    let place = place(&args.clickhouse_url);
    let client = client::connect(args);
    let server = client.clone().with_database("default");
    match within(diagnosis::version(&server)).await {
        Some(Ok((version, now))) => {
            let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
            if major.is_some_and(|major| major < TESTED) {
                report.warn(
                    "clickhouse",
                    format!("ClickHouse at {place} is {version}: Tidemark is tested with {TESTED} and newer"),
                );
            } else {
                report.ok("clickhouse", format!("ClickHouse {version} answers at {place}"));
            }
            report.clock("clickhouse-clock", "ClickHouse", now);
        }
        Some(Err(error)) => {
            report.fail("clickhouse", refusal(&place, args, &error));
            return None;
        }
        None => {
            report.fail(
                "clickhouse",
                format!(
                    "ClickHouse at {place} does not answer within {} s: see that it runs and that this machine reaches it",
                    PATIENCE.as_secs()
                ),
            );
            return None;
        }
    }
    let is_there = schema(report, args, &place, &client).await;
    disks(report, &server).await;
    if !is_there {
        return None;
    }
    rights(report, args, &client).await;
    if let Some(Ok(parts)) = within(diagnosis::max_parts_per_partition(&client)).await {
        if parts > MANY_PARTS {
            report.warn(
                "clickhouse-parts",
                format!("a table is in {parts} parts, more than are merged in time: give ClickHouse more processors or a faster disk"),
            );
        } else {
            report.ok("clickhouse-parts", format!("tables are in {parts} parts at most"));
        }
    }
    Some(client)
}

/// Whether our tables are there.
async fn schema(report: &mut Report, args: &ClickhouseArgs, place: &str, client: &Client) -> bool {
    let schema = match within(migrate::fetch_clickhouse_state(client)).await {
        Some(Ok(schema)) => {
            schema.check_usable("clickhouse").map(|()| schema).map_err(|error| error.to_string())
        }
        Some(Err(error)) => Err(refusal(place, args, &error)),
        None => Err(format!("ClickHouse at {place} does not answer any more: see its log")),
    };
    let is_usable = schema.is_ok();
    match schema {
        Ok(SchemaState::Newer) => report.ok(
            "clickhouse-schema",
            "ClickHouse was migrated by a newer version, which this one works beside",
        ),
        Ok(_) => report.ok("clickhouse-schema", "ClickHouse has all tables of this version"),
        Err(reason) => report.fail("clickhouse-schema", reason),
    }
    is_usable
}

async fn disks(report: &mut Report, server: &Client) {
    let disks = match within(diagnosis::disks(server)).await {
        Some(Ok(disks)) => disks,
        Some(Err(error)) => {
            return report.warn(
                "clickhouse-disk",
                format!("the user may not read system.disks, so room is not known: {error}"),
            );
        }
        None => return,
    };
    for (name, free, total) in disks {
        of_disk(report, &name, free, total);
    }
}

fn of_disk(report: &mut Report, name: &str, free: u64, total: u64) {
    let share = free as f64 / total as f64;
    let of = format!("{} of {} are free on ClickHouse's disk {name}", bytes(free), bytes(total));
    if share < NEXT_TO_NOTHING {
        report.fail("clickhouse-disk", format!("{of}: give it room before writes are refused"));
    } else if share < LITTLE {
        report.warn(
            "clickhouse-disk",
            format!("{of}: merges need room for a copy of what they merge, give it more"),
        );
    } else {
        report.ok("clickhouse-disk", of);
    }
}

async fn rights(report: &mut Report, args: &ClickhouseArgs, client: &Client) {
    let user = &args.clickhouse_user;
    let mut closed = Vec::new();
    for table in diagnosis::WRITTEN_TABLES {
        if !matches!(within(diagnosis::check_insert_privilege(client, table)).await, Some(Ok(()))) {
            closed.push(table);
        }
    }
    let looks = matches!(within(diagnosis::check_processes_privilege(client)).await, Some(Ok(())));
    if closed.is_empty() && looks {
        report.ok("clickhouse-rights", format!("the user {user} may read and write every table"));
    }
    if !closed.is_empty() {
        report.fail(
            "clickhouse-rights",
            format!(
                "the user {user} may not write {}: grant it select, insert and alter delete on {}.*",
                closed.join(", "),
                args.clickhouse_database
            ),
        );
    }
    if !looks {
        report.fail(
            "clickhouse-rights",
            format!("the user {user} may not see what runs: grant it select on system.processes and system.mutations"),
        );
    }
}

/// Where ClickHouse is, without what else may stand in its URL.
fn place(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => {
            let port = url.port_or_known_default().map(|port| format!(":{port}")).unwrap_or_default();
            format!("{}{port}", url.host_str().unwrap_or("nowhere"))
        }
        Err(_) => "an address that is no URL".to_owned(),
    }
}

/// Why it does not do what it is asked.
fn refusal(place: &str, args: &ClickhouseArgs, error: &Error) -> String {
    let ClickhouseArgs { clickhouse_user: user, clickhouse_database: database, .. } = args;
    let text = match error {
        Error::BadResponse(text) => text.as_str(),
        _ => "",
    };
    let code = clickhouse_error_code(error);
    if matches!(code, Some(516 | 192 | 193 | 194)) {
        return format!(
            "ClickHouse at {place} refuses the user {user}: correct TIDEMARK_CLICKHOUSE_USER and TIDEMARK_CLICKHOUSE_PASSWORD"
        );
    }
    if code == Some(81) {
        return format!(
            "ClickHouse at {place} has no database {database}: run `tidemark migrate`, which makes it"
        );
    }
    if code == Some(497) {
        return format!(
            "the user {user} may not do what the service does: grant it select, insert and alter delete on {database}.*"
        );
    }
    let reason = args.clickhouse_password.scrub(text.lines().next().unwrap_or_default());
    match error {
        Error::BadResponse(_) => format!("ClickHouse at {place} refuses what it is asked: {reason}"),
        _ => format!("ClickHouse at {place} cannot be reached: start it, or correct TIDEMARK_CLICKHOUSE_URL"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn a_full_disk_is_told_before_it_is_full() {
        for (free, status) in [(500, Status::Ok), (150, Status::Warn), (40, Status::Fail)] {
            let mut report = Report::default();
            of_disk(&mut report, "default", free * 1_000_000_000, 1_000_000_000_000);
            assert_eq!(report.0[0].status, status, "{:?}", report.0);
            assert!(report.0[0].message.contains(&format!("{free}.0 GB of 1000.0 GB")), "{:?}", report.0);
        }
    }

    #[test]
    fn a_place_holds_no_password() {
        assert_eq!(place("https://user:secret@ch.example/x"), "ch.example:443");
        assert_eq!(place("http://127.0.0.1:8123"), "127.0.0.1:8123");
        assert_eq!(place("secret"), "an address that is no URL");
    }
}
