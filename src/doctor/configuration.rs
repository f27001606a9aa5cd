//! The configuration, read as the processes read it: by the very options of `serve` and `track`, from the environment.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use url::Url;

use super::Report;
use crate::app::Clock;
use crate::config::{ClickhouseArgs, PostgresArgs, SearchArgs, StoreArgs};
use crate::model::network::is_loopback;
use crate::platforms::SourceArgs;
use crate::server::ServeArgs;
use crate::telemetry::{LogArgs, MetricsArgs};
use crate::worker::TrackArgs;

/// How long a sandbox may take to tell the time.
const CLOCK: Duration = Duration::from_secs(1);
/// Variables of ours that no option reads: those of tests, and those of Grafana, of the load tests and of `make audit`.
const BESIDE: [&str; 3] = ["TIDEMARK_TEST_", "TIDEMARK_BENCH_", "TIDEMARK_FAILPOINTS"];
const OF_OTHERS: [&str; 6] = [
    "TIDEMARK_PROMETHEUS_URL",
    "TIDEMARK_TEMPO_URL",
    "TIDEMARK_BASE_URL",
    "TIDEMARK_API_KEY",
    "TIDEMARK_LOADTEST_RESULTS",
    "TIDEMARK_ADVISORY_DB",
];

/// What could be read; what is missing was found to be wrong.
pub(super) struct Settings {
    pub(super) postgres: Option<PostgresArgs>,
    pub(super) clickhouse: Option<ClickhouseArgs>,
    pub(super) search: Option<PathBuf>,
    pub(super) sources: Option<SourceArgs>,
    pub(super) metrics_listen: Option<SocketAddr>,
    clock_url: Option<String>,
}

impl Settings {
    pub(super) fn read(report: &mut Report, known: &BTreeSet<String>) -> Self {
        let mut wrong = BTreeSet::new();
        // The whole of each process says everything that is wrong, its parts what is right all the same.
        let _ = (read::<ServeArgs>(&mut wrong), read::<TrackArgs>(&mut wrong), read::<LogArgs>(&mut wrong));
        let mut ignored = BTreeSet::new();
        let settings = Settings {
            postgres: read(&mut ignored),
            clickhouse: read(&mut ignored),
            search: read::<SearchArgs>(&mut ignored).map(|args| args.search_index),
            sources: read(&mut ignored),
            metrics_listen: read::<MetricsArgs>(&mut ignored).and_then(|args| args.metrics_listen),
            clock_url: read::<StoreArgs>(&mut ignored).and_then(|args| args.clock_url),
        };
        wrong.extend(ignored);
        for sentence in &wrong {
            report.fail("configuration", sentence);
        }
        let unknown = unknown(known);
        for name in &unknown {
            report.warn("configuration", format!("nothing reads {name}: correct its name, or remove it"));
        }
        let careless = settings.careless();
        for sentence in &careless {
            report.warn("configuration", sentence);
        }
        if wrong.is_empty() && unknown.is_empty() && careless.is_empty() {
            report.ok("configuration", "every TIDEMARK_ variable that is set can be used");
        }
        settings
    }

    /// What can be used and had better not.
    fn careless(&self) -> Vec<String> {
        let mut found = Vec::new();
        // A host that begins with an escaped slash is a folder with a socket.
        let away = |url: &Url| {
            !is_loopback(url) && url.host_str().is_some_and(|host| !host.is_empty() && !host.starts_with('%'))
        };
        let database = self.postgres.as_ref().and_then(|args| Url::parse(args.database_url.reveal()).ok());
        if let Some(url) = database.filter(away) {
            let is_encrypted = url.query_pairs().any(|(name, value)| {
                name == "sslmode" && ["require", "verify-ca", "verify-full"].contains(&&*value)
            });
            if !is_encrypted {
                found.push(
                    "what is said to Postgres may cross the network unencrypted: add ?sslmode=verify-full to \
                     TIDEMARK_DATABASE_URL, unless the network is trusted"
                        .to_owned(),
                );
            }
        }
        if let Some(args) = &self.clickhouse {
            let url = Url::parse(&args.clickhouse_url).ok().filter(away);
            if url.as_ref().is_some_and(|url| url.scheme() == "http") {
                found.push(
                    "ClickHouse's password and all history cross the network unencrypted: use https in \
                     TIDEMARK_CLICKHOUSE_URL, unless the network is trusted"
                        .to_owned(),
                );
            }
            if url.is_some() && args.clickhouse_password.is_empty() {
                found.push(
                    "ClickHouse is on another machine and has no password: set TIDEMARK_CLICKHOUSE_PASSWORD"
                        .to_owned(),
                );
            }
        }
        if self.metrics_listen.is_some_and(|address| !address.ip().is_loopback()) {
            found.push(
                "the port for metrics can be reached from other machines, and needs no key: see that only Prometheus and \
                 the orchestrator reach TIDEMARK_METRICS_LISTEN"
                    .to_owned(),
            );
        }
        found
    }

    /// The time of tracking; nothing where a sandbox should tell it and does not.
    pub(super) async fn now(&self, report: &mut Report) -> Option<DateTime<Utc>> {
        let Some(url) = &self.clock_url else { return Some(Utc::now()) };
        let clock = match Clock::remote(url.clone()) {
            Ok(clock) => clock,
            Err(error) => {
                report.fail("clock", error.to_string());
                return None;
            }
        };
        match tokio::time::timeout(CLOCK, clock.now()).await {
            Ok(now) => {
                report.warn(
                    "clock",
                    "the time of tracking is that of a sandbox: unset TIDEMARK_CLOCK_URL outside of tests",
                );
                Some(now)
            }
            Err(_) => {
                report.fail(
                    "clock",
                    "the sandbox that should tell the time does not answer: unset TIDEMARK_CLOCK_URL outside of tests, or start it",
                );
                None
            }
        }
    }
}

/// Reads options as a process would; what is wrong with them becomes sentences.
fn read<T: clap::Args>(wrong: &mut BTreeSet<String>) -> Option<T> {
    let mut command = T::augment_args(clap::Command::new("tidemark").no_binary_name(true));
    let read = command
        .try_get_matches_from_mut(std::iter::empty::<OsString>())
        .and_then(|matches| T::from_arg_matches(&matches));
    match read {
        Ok(args) => Some(args),
        Err(error) => {
            wrong.extend(sentences(&command, &error));
            None
        }
    }
}

/// What clap has to say of options, as sentences about variables.
fn sentences(command: &clap::Command, error: &clap::Error) -> Vec<String> {
    let named: Vec<_> = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    };
    let option = |name: &String| {
        let argument = command.get_arguments().find(|known| known.to_string() == *name)?;
        let variable = argument.get_env()?.to_string_lossy().into_owned();
        Some((variable, argument.get_help().map(ToString::to_string).unwrap_or_default()))
    };
    let options: Vec<_> = named.iter().filter_map(option).collect();
    if error.kind() == ErrorKind::MissingRequiredArgument && !options.is_empty() {
        return options
            .into_iter()
            .map(|(variable, help)| format!("{variable} is not set: {help}"))
            .collect();
    }
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    match options.first() {
        Some((variable, _)) => vec![format!("{variable} cannot be used: {first}")],
        None => vec![first],
    }
}

/// The variables that look like ours and that nothing reads.
fn unknown(known: &BTreeSet<String>) -> Vec<String> {
    let set = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = set.filter(|name| name.starts_with("TIDEMARK_"));
    let mut unknown: Vec<_> = ours
        .filter(|name| !known.contains(name) && !OF_OTHERS.contains(&name.as_str()))
        .filter(|name| !BESIDE.iter().any(|start| name.starts_with(start)))
        .collect();
    unknown.sort_unstable();
    unknown
}
