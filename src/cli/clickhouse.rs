//! `tidemark clickhouse`: the server of `chdb_http` with Tidemark's variables, user names and advice.

use std::env;
use std::path::PathBuf;

use chdb_http::{EngineError, LIBCHDB_VERSION, ServerError, ServerOptions};

use super::error::CommandError;
use crate::store::clickhouse::logins;

/// Run embedded ClickHouse: libchdb behind ClickHouse's HTTP interface
///
/// For one machine without a ClickHouse server. Ordinary clients connect to it. The first start creates users with passwords
/// in credentials.json beside the data.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("data", |arg| {
        arg.env("TIDEMARK_CLICKHOUSE_DATA").required(false).default_value(".tidemark/clickhouse")
    }),
    mut_arg("listen", |arg| arg.env("TIDEMARK_CLICKHOUSE_LISTEN")),
    mut_arg("libchdb", |arg| {
        arg.env("TIDEMARK_LIBCHDB").help("Path of libchdb.so; default: where make libchdb installs it")
    }),
    mut_arg("max_memory", |arg| arg.env("TIDEMARK_CLICKHOUSE_MAX_MEMORY")),
    mut_arg("max_queries", |arg| arg.env("TIDEMARK_CLICKHOUSE_MAX_QUERIES")),
    mut_arg("max_body", |arg| arg.env("TIDEMARK_CLICKHOUSE_MAX_BODY")),
    mut_arg("allow_remote", |arg| arg.env("TIDEMARK_CLICKHOUSE_ALLOW_REMOTE"))
)]
pub(super) struct ClickhouseCommandArgs {
    #[command(flatten)]
    server: ServerOptions,
    /// Database of the service, whose views the users of `tidemark clickhouse-user` read
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_DATABASE", default_value = "tidemark", value_name = "NAME")]
    database: String,
    /// Exit when standard input closes, as it does when the parent process exits
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_EXIT_WITH_STDIN")]
    exit_with_stdin: bool,
}

/// Where `make libchdb` installs the library.
pub(super) fn default_libchdb() -> Option<PathBuf> {
    let path = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")))?;
    Some(cache.join(format!("tidemark/libchdb-{LIBCHDB_VERSION}/libchdb.so")))
}

pub(super) async fn run(args: ClickhouseCommandArgs) -> Result<(), CommandError> {
    let mut options = args.server;
    options.libchdb = options.libchdb.or_else(default_libchdb);
    if options.libchdb.is_none() {
        return Err(CommandError::new("HOME and XDG_CACHE_HOME are not set: set TIDEMARK_LIBCHDB"));
    }
    options.logins = Some(logins::rights(&args.database, &format!("{}_public", args.database)));
    options.user = "tidemark".to_owned();
    options.readonly_user = "analyst".to_owned();
    options.display_name = "tidemark".to_owned();
    chdb_http::run(options, args.exit_with_stdin).await.map_err(with_advice)
}

fn with_advice(error: ServerError) -> CommandError {
    let advice = match &error {
        ServerError::Engine(EngineError::LibraryMissing(_) | EngineError::LibraryInvalid(..)) => {
            "run `make libchdb`, or set TIDEMARK_LIBCHDB"
        }
        ServerError::Engine(EngineError::DataInUse(..)) => {
            "stop that process, or choose another folder with --data"
        }
        ServerError::DataDirectory(..) => "choose another with --data",
        ServerError::AddressInUse(_) => "stop that process, or choose another address with --listen",
        ServerError::Listen(..) => "choose another address with --listen",
        ServerError::RemoteAddress(_) => "listen on a loopback address, or add --allow-remote",
        _ => return error.into(),
    };
    CommandError::new(format!("{error}: {advice}"))
}
