//! A server as the main task of a process: the ready line, signals, and standard input as parent liveness.

use std::io::{self, Read as _, Write as _};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::ffi;
use crate::server::{Server, ServerError, ServerOptions};

/// Serves until SIGTERM, SIGINT or, with `exit_with_stdin`, the end of standard input.
///
/// Prints `{"event":"ready","url":"http://…"}` on standard output once requests are accepted.
pub async fn run(options: ServerOptions, exit_with_stdin: bool) -> Result<(), ServerError> {
    let server = Server::open(options).await?;
    // After the engine opened, because its first connection resets signal handlers.
    let shutdown = shutdown_request(exit_with_stdin).map_err(ServerError::Setup)?;
    let ready = serde_json::json!({ "event": "ready", "url": server.url() });
    let mut stdout = io::stdout().lock();
    if writeln!(stdout, "{ready}").and_then(|()| stdout.flush()).is_err() {
        tracing::warn!("standard output is closed: the ready line is lost");
    }
    drop(stdout);
    match server.serve(shutdown).await {
        Err(ServerError::StatementsRunning) => {
            tracing::warn!("statements were still running at shutdown");
            ffi::exit_now(0);
        }
        result => result,
    }
}

/// Resolves at a signal or at the end of standard input.
fn shutdown_request(exit_with_stdin: bool) -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (stdin_open, stdin_closed) = oneshot::channel::<()>();
    if exit_with_stdin {
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            let mut input = io::stdin().lock();
            let mut ignored = [0; 256];
            while !matches!(input.read(&mut ignored), Ok(0) | Err(_)) {}
            drop(stdin_open);
        })?;
    } else {
        std::mem::forget(stdin_open);
    }
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = stdin_closed => {}
        }
    })
}
