//! What the processes say while they run: one line per event on standard error, for people or for machines.
//!
//! Standard output belongs to the answers of the command line and is never written to from here.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One readable line, coloured on a terminal
    Text,
    /// One JSON object a line
    Json,
}

/// What is logged, and how.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// What to log: error, warn, info, debug or trace, also per module, as in info,tidemark::worker=debug
    #[arg(
        long = "log",
        env = "TIDEMARK_LOG",
        default_value = "info,sqlx=warn,salvo_core=warn",
        value_name = "FILTER",
        global = true
    )]
    pub filter: String,
    /// The form of the lines on standard error
    #[arg(long = "log-format", env = "TIDEMARK_LOG_FORMAT", default_value = "text", global = true)]
    pub format: LogFormat,
}

/// A filter that says nothing tracing understands.
#[derive(Debug, thiserror::Error)]
#[error(
    "--log {filter:?} is no filter: {reason}; use a level such as info, or module=level pairs with commas"
)]
pub struct BadFilter {
    filter: String,
    reason: String,
}

/// Starts logging for the whole process. A second call in one process changes nothing.
pub fn init(args: &LogArgs) -> Result<(), BadFilter> {
    let filter = EnvFilter::try_new(&args.filter)
        .map_err(|error| BadFilter { filter: args.filter.clone(), reason: error.to_string() })?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match args.format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(true).try_init(),
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_filter_is_refused_by_name() {
        let args = LogArgs { filter: "tidemark=loud".into(), format: LogFormat::Text };
        let message = init(&args).unwrap_err().to_string();
        assert!(message.starts_with("--log \"tidemark=loud\" is no filter"), "{message}");
    }
}
