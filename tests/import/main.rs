//! Imports and exports: accepted rows and file formats, the resulting figures, and export round trips.

mod compressed;
mod exporting;
mod files;
mod foreign;
#[path = "../harness/mod.rs"]
mod harness;
mod large;
mod parquet;
mod rows;
mod setup;
mod unobserved;
