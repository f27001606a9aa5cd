//! The OpenAPI document: its form, checked by a validator and a linter, and whether the service conforms to it.

#![recursion_limit = "256"]

mod clients;
mod conventions;
mod document;
mod exchange;
mod fuzzing;
mod operation;
mod tenant;
mod validators;
