//! ClickHouse's HTTP interface over libchdb, which is ClickHouse as a library.

mod access;
mod body;
mod cancel;
mod compressed_blocks;
mod credentials;
mod engine;
mod engine_types;
mod exception;
mod execute;
mod ffi;
mod formatting;
mod handler;
mod limits;
mod logins;
mod permits;
mod process;
mod request;
mod reuse;
mod server;
mod session;
mod settings;
mod settings_clause;
mod settings_table;
mod sql;
mod streaming;
mod table_filters;

pub use credentials::{Credentials, CredentialsError};
pub use engine::{EngineError, LIBCHDB_VERSION};
pub use logins::{LOGIN_TABLE, LoginRights, VIEW_DEFINER};
pub use process::run;
pub use server::{ServerError, ServerOptions};
