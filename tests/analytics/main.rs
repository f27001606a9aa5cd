//! The reads of history over HTTP: every number against a model in plain loops, and every rule of their requests.

#[path = "../harness/mod.rs"]
mod harness;

mod agreement;
mod batches;
mod examples;
mod model;
mod posts;
mod scale;
mod windows;
