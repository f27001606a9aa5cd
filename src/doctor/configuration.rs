//! Checks the configuration, read from the environment with the options of `serve` and `track`.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use url::Url;

use super::report::{Report, Status};
use crate::app::Clock;
use crate::config::{ClickhouseArgs, PostgresArgs, SearchArgs, StoreArgs};
use crate::model::network::is_loopback;
use crate::platforms::SourceArgs;
use crate::server::ServeArgs;
use crate::telemetry::{LogArgs, MetricsArgs};
use crate::worker::TrackArgs;
use crate::worker::pictures::PictureArgs;

const CLOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Prefixes of variables for tests.
const TEST_PREFIXES: [&str; 3] = ["TIDEMARK_TEST_", "TIDEMARK_BENCH_", "TIDEMARK_FAILPOINTS"];
/// Variables for Grafana, the load tests and `make audit`.
const EXTERNAL_VARIABLES: [&str; 6] = [
    "TIDEMARK_PROMETHEUS_URL",
    "TIDEMARK_TEMPO_URL",
    "TIDEMARK_BASE_URL",
    "TIDEMARK_API_KEY",
    "TIDEMARK_LOADTEST_RESULTS",
    "TIDEMARK_ADVISORY_DB",
];

/// The valid parts of the configuration.
pub(super) struct Configuration {
    pub(super) postgres: Option<PostgresArgs>,
    pub(super) clickhouse: Option<ClickhouseArgs>,
    pub(super) search_index: Option<PathBuf>,
    pub(super) pictures: Option<PictureArgs>,
    pub(super) sources: Option<SourceArgs>,
    pub(super) metrics_listen: Option<SocketAddr>,
    clock_url: Option<String>,
}

impl Configuration {
    pub(super) fn read(report: &mut Report, known_variables: &BTreeSet<String>) -> Self {
        let check = "configuration";
        let mut errors = BTreeSet::new();
        // All options of a process are parsed for their errors; then parts of them, which may be valid nevertheless.
        let _ =
            (parse::<ServeArgs>(&mut errors), parse::<TrackArgs>(&mut errors), parse::<LogArgs>(&mut errors));
        let configuration = Configuration {
            postgres: parse(&mut errors),
            clickhouse: parse(&mut errors),
            search_index: parse::<SearchArgs>(&mut errors).map(|args| args.search_index),
            pictures: parse(&mut errors),
            sources: parse(&mut errors),
            metrics_listen: parse::<MetricsArgs>(&mut errors).and_then(|args| args.metrics_listen),
            clock_url: parse::<StoreArgs>(&mut errors).and_then(|args| args.clock_url),
        };
        for error in &errors {
            report.add(Status::Fail, check, error);
        }
        let unknown = unknown_variables(known_variables);
        for name in &unknown {
            report.warn(check, format!("nothing reads {name}"), "correct its name or remove it");
        }
        let risks = configuration.risks();
        for (risk, action) in &risks {
            report.warn(check, risk, action);
        }
        if errors.is_empty() && unknown.is_empty() && risks.is_empty() {
            report.ok(check, "all TIDEMARK_ variables are valid");
        }
        configuration
    }

    /// Returns insecure settings, each with what to do.
    fn risks(&self) -> Vec<(&'static str, &'static str)> {
        let mut risks = Vec::new();
        // A host that begins with an escaped slash is the folder of a socket.
        let is_remote = |url: &Url| {
            !is_loopback(url) && url.host_str().is_some_and(|host| !host.is_empty() && !host.starts_with('%'))
        };
        let database = self.postgres.as_ref().and_then(|args| Url::parse(args.database_url.reveal()).ok());
        let is_encrypted = |url: &Url| {
            url.query_pairs().any(|(name, value)| {
                name == "sslmode" && ["require", "verify-ca", "verify-full"].contains(&&*value)
            })
        };
        if database.filter(is_remote).is_some_and(|url| !is_encrypted(&url)) {
            risks.push((
                "connections to Postgres may be unencrypted",
                "add ?sslmode=verify-full to TIDEMARK_DATABASE_URL, unless the network is trusted",
            ));
        }
        if let Some(args) = &self.clickhouse {
            let url = Url::parse(&args.clickhouse_url).ok().filter(is_remote);
            if url.as_ref().is_some_and(|url| url.scheme() == "http") {
                risks.push((
                    "ClickHouse's password and all history are sent unencrypted",
                    "use https in TIDEMARK_CLICKHOUSE_URL, unless the network is trusted",
                ));
            }
            if url.is_some() && args.clickhouse_password.is_empty() {
                risks.push((
                    "ClickHouse is on another machine and has no password",
                    "set TIDEMARK_CLICKHOUSE_PASSWORD",
                ));
            }
        }
        if self.metrics_listen.is_some_and(|address| !address.ip().is_loopback()) {
            risks.push((
                "the metrics port is open to other machines and needs no key",
                "let only Prometheus and the orchestrator reach TIDEMARK_METRICS_LISTEN",
            ));
        }
        risks
    }

    /// Returns the time of the service clock; `None` if it is a sandbox's that does not respond.
    pub(super) async fn service_time(&self, report: &mut Report) -> Option<DateTime<Utc>> {
        let check = "clock";
        let Some(url) = &self.clock_url else { return Some(Utc::now()) };
        let clock = match Clock::remote(url.clone()) {
            Ok(clock) => clock,
            Err(error) => {
                report.add(Status::Fail, check, error.to_string());
                return None;
            }
        };
        match tokio::time::timeout(CLOCK_TIMEOUT, clock.now()).await {
            Ok(now) => {
                let action = "unset TIDEMARK_CLOCK_URL outside of tests";
                report.warn(check, "the service clock is a sandbox's", action);
                Some(now)
            }
            Err(_) => {
                let action = "unset TIDEMARK_CLOCK_URL outside of tests, or start the sandbox";
                report.fail(check, "the sandbox's clock does not respond", action);
                None
            }
        }
    }
}

/// Parses options as a process does, and collects the errors.
fn parse<T: clap::Args>(errors: &mut BTreeSet<String>) -> Option<T> {
    let mut command = T::augment_args(clap::Command::new("tidemark").no_binary_name(true));
    let parsed = command
        .try_get_matches_from_mut(std::iter::empty::<OsString>())
        .and_then(|matches| T::from_arg_matches(&matches));
    match parsed {
        Ok(args) => Some(args),
        Err(error) => {
            errors.extend(variable_errors(&command, &error));
            None
        }
    }
}

/// Rewrites an error of clap about options into messages about variables.
fn variable_errors(command: &clap::Command, error: &clap::Error) -> Vec<String> {
    let options: Vec<_> = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(options)) => options.clone(),
        Some(ContextValue::String(option)) => vec![option.clone()],
        _ => Vec::new(),
    };
    let find_variable = |option: &String| {
        let argument = command.get_arguments().find(|argument| argument.to_string() == *option)?;
        let variable = argument.get_env()?.to_string_lossy().into_owned();
        Some((variable, argument.get_help().map(ToString::to_string).unwrap_or_default()))
    };
    let variables: Vec<_> = options.iter().filter_map(find_variable).collect();
    if error.kind() == ErrorKind::MissingRequiredArgument && !variables.is_empty() {
        return variables
            .into_iter()
            .map(|(variable, help)| format!("{variable} is not set — set it: {help}"))
            .collect();
    }
    let text = error.render().to_string();
    let first_line = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    match variables.first() {
        Some((variable, _)) => vec![format!("{variable} is invalid — {first_line}")],
        None => vec![first_line],
    }
}

/// Returns the variables with the prefix of the service that no command reads.
fn unknown_variables(known_variables: &BTreeSet<String>) -> BTreeSet<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names
        .filter(|name| name.starts_with("TIDEMARK_"))
        .filter(|name| !known_variables.contains(name) && !EXTERNAL_VARIABLES.contains(&name.as_str()))
        .filter(|name| !TEST_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .collect()
}
