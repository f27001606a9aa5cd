//! Log lines on standard error, as text or JSON. Standard output is reserved for the results of commands.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, Layer, Registry};

use super::error::TelemetryError;
use super::{panics, trace};

/// The format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// One readable line, coloured on a terminal
    Text,
    /// One JSON object per line, with request_id and trace_id where they exist
    Json,
}

/// The filter and the format of log lines.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// Log level: error, warn, info, debug or trace, also per module, as in info,tidemark::worker=debug
    #[arg(
        long = "log",
        env = "TIDEMARK_LOG",
        default_value = "info,sqlx=warn,salvo_core=warn,clickhouse=warn",
        value_name = "FILTER",
        global = true
    )]
    pub filter: String,
    /// The format of log lines on standard error
    #[arg(
        id = "log-format",
        long = "log-format",
        env = "TIDEMARK_LOG_FORMAT",
        default_value = "text",
        global = true
    )]
    pub format: LogFormat,
}

/// Parses the filter of log lines. It always includes panics and never spans that exist only for collectors.
pub(super) fn filter(args: &LogArgs) -> Result<EnvFilter, TelemetryError> {
    let filter = EnvFilter::try_new(&args.filter).map_err(|error| TelemetryError::BadFilter {
        filter: args.filter.clone(),
        reason: error.to_string(),
    })?;
    let directives = [format!("{}=off", trace::SPAN_TARGET).parse().ok(), panics::log_directive()];
    Ok(directives.into_iter().flatten().fold(filter, EnvFilter::add_directive))
}

/// Creates the layer that writes log lines.
pub(super) fn layer(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    match format {
        LogFormat::Text => {
            let ansi = io::stderr().is_terminal();
            tracing_subscriber::fmt::layer().with_ansi(ansi).with_writer(io::stderr).boxed()
        }
        LogFormat::Json => json_subscriber::layer()
            .with_current_span(false)
            .flatten_span_list_on_top_level(true)
            .flatten_event(true)
            .with_writer(io::stderr)
            .boxed(),
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    fn args(filter: &str) -> LogArgs {
        LogArgs { filter: filter.to_owned(), format: LogFormat::Json }
    }

    #[test]
    fn spans_for_collectors_are_disabled_without_one() {
        let disabled = |level: &str| {
            let filter = filter(&args(level)).unwrap();
            let subscriber = tracing_subscriber::registry().with(layer(LogFormat::Json)).with(filter);
            tracing::subscriber::with_default(subscriber, || {
                let traced = crate::traced!("request", otel.kind = "server");
                (traced.is_disabled(), tracing::info_span!("request").is_disabled())
            })
        };
        assert_eq!(disabled("info"), (true, false));
        assert_eq!(disabled("trace"), (true, false));
    }

    #[test]
    fn invalid_filter_is_quoted_in_the_error() {
        let message = filter(&args("tidemark=loud")).err().unwrap().to_string();
        assert!(message.starts_with("--log \"tidemark=loud\" is no filter"), "{message}");
    }
}
