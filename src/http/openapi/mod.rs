//! The OpenAPI 3.1 document, generated from the code that serves the API: readers record their parameters and bodies,
//! response types derive their schemas, the router provides the paths.

pub mod document;
mod example;
mod headers;
pub mod operation;
mod problems;
pub mod schema;

pub use document::{ApiInfo, RouteGroup, build_document};
pub use operation::{add_failure, add_success};
