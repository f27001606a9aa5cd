//! The reads of history over HTTP: every number against a model in plain loops, and every rule of their requests.

#[path = "../harness/mod.rs"]
mod harness;

mod agree;
mod agreement;
mod batches;
mod bounds;
mod course;
mod courses;
mod data_page;
mod examples;
mod kept;
mod model;
mod posts;
mod retention;
mod scale;
mod steps;
mod sums;
mod upkeep;
mod views;
mod windows;
