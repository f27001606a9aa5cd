//! Logs a panic as one line, with the request id of the running request.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};

use tracing_subscriber::filter::Directive;

use crate::model::key;

/// Replaces the standard library's panic hook, whose lines have no log format.
pub(super) fn install_hook() {
    panic::set_hook(Box::new(log_panic));
}

/// Returns the filter directive that enables panics, whatever else the filter excludes.
pub(super) fn log_directive() -> Option<Directive> {
    concat!(module_path!(), "=error").parse().ok()
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    // Captured only with RUST_BACKTRACE.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    // The message may quote what a client sent.
    let reason = key::redact(panic.payload_as_str().unwrap_or_default());
    tracing::error!(reason = &*reason, location, backtrace, "panicked: this is a bug");
}
