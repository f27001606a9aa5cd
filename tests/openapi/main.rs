//! The API's document (OpenAPI) and whether the service keeps it: its form, judged by programs of others, and every
//! operation of it, tried from outside.

#![recursion_limit = "256"]

#[path = "../harness/mod.rs"]
mod harness;

mod conventions;
mod document;
mod exchange;
mod fuzzing;
mod operation;
mod programs;
mod tenant;
