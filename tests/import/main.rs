//! Imports and exports: what rows may say in which files, which numbers follow from them, and that an export says the
//! same again.

mod exporting;
mod files;
#[path = "../harness/mod.rs"]
mod harness;
mod many;
mod parquet;
mod rows;
mod setup;
