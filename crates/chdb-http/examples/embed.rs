//! Opens an engine in this process, serves it, and queries it with the `clickhouse` crate:
//!
//!     cargo run -p chdb-http --example embed -- /path/to/libchdb.so

use std::error::Error;
use std::path::PathBuf;

use chdb_http::{Server, ServerOptions};
use clap::Parser;
use clickhouse::Client;
use tokio::sync::oneshot;

#[derive(Parser)]
struct Cli {
    libchdb: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let server = Server::open(ServerOptions {
        libchdb: Cli::parse().libchdb,
        listen: "127.0.0.1:0".parse()?,
        ..ServerOptions::new(data.path())
    })
    .await?;
    let credentials = server.credentials();
    let client = Client::default()
        .with_url(server.url())
        .with_user(&credentials.user)
        .with_password(&credentials.password);

    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
    let squares: Vec<u64> =
        client.query("SELECT number * number FROM numbers(?)").bind(10).fetch_all().await?;
    println!("{squares:?}");
    drop(stop);
    serving.await??;
    Ok(())
}
