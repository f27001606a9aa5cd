//! The loops beside the requests.

pub mod indexer;
