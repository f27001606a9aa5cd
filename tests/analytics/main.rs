//! The reads of history over HTTP: every number against a model in plain loops, and every rule of their requests.

#[path = "../harness/mod.rs"]
mod harness;

mod agreement;
mod batches;
mod bounds;
mod examples;
mod kept;
mod model;
mod scale;
mod windows;
