//! A panic as a line of the log like any other: its message, its place, and the request in whose work it was.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{self, PanicHookInfo};

use tracing_subscriber::filter::Directive;

use crate::model::key;

/// Has the log tell of panics, instead of the standard library, whose lines have no form.
pub(super) fn heard() {
    panic::set_hook(Box::new(tell));
}

/// Lets panics through whatever else a filter leaves out: nobody else says them.
pub(super) fn always() -> Option<Directive> {
    concat!(module_path!(), "=error").parse().ok()
}

fn tell(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    // Only there where RUST_BACKTRACE asks for it.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    // It may quote a text that a client sent.
    let reason = key::redact(panic.payload_as_str().unwrap_or_default());
    tracing::error!(reason = &*reason, place, backtrace, "panicked: this is a fault of the program");
}
