//! Commands for operators: `rebuild` recomputes the rollup through the relay while everything is served, `verify` compares
//! it with an independent computation.

mod compare;
mod error;
mod expected;
mod progress;
pub mod rebuild;
pub mod verify;

pub use error::Error;
