//! The `chdb-http` program.

use std::process::ExitCode;

use chdb_http::ServerOptions;
use clap::Parser;

/// Serve libchdb over ClickHouse's HTTP interface
#[derive(Parser)]
#[command(version, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    server: ServerOptions,
    /// Exit when standard input closes, as it does when the parent process exits
    #[arg(long)]
    exit_with_stdin: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let cli = Cli::parse();
    match chdb_http::run(cli.server, cli.exit_with_stdin).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
