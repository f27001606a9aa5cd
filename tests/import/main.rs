//! Imports and exports: accepted rows and file formats, the resulting figures, and export round trips.

mod compressed;
mod exporting;
mod files;
mod foreign;
mod formats;
mod large;
mod one_post;
mod parquet;
mod post_model;
mod rows;
mod setup;
mod times;
mod unobserved;
mod values;
