//! ClickHouse's HTTP interface over libchdb, which is ClickHouse as a library.
//!
//! libchdb allows one engine per process, so a program that needs several, or that must survive a crash of the engine, starts
//! a [`ChildServer`] instead of a [`Server`].

mod access;
mod body;
mod cancel;
mod child;
mod compressed_blocks;
mod credentials;
mod engine;
mod engine_types;
mod exception;
mod execute;
mod ffi;
mod handler;
mod process;
mod request;
mod server;
mod session;
mod sql;
mod streaming;

pub use child::{ChildError, ChildOptions, ChildServer};
pub use credentials::{Credentials, CredentialsError};
pub use engine::{EngineError, LIBCHDB_VERSION};
pub use process::run;
pub use server::{Server, ServerError, ServerOptions};
