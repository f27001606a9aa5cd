//! Responses: envelopes, pages and problems.

pub mod batch;
mod csv_format;
pub mod cursor;
pub mod envelope;
mod export_file;
pub(in crate::http) mod key_watch;
pub mod page;
mod parquet_format;
pub mod problem;
pub mod problem_kind;
mod server_sent_events;
mod static_file;

pub use batch::{BatchItemResult, BatchResponse};
pub use csv_format::CsvFile;
pub use envelope::{
    Accepted, AcceptedAt, Created, Data, FoundOrCreated, NoContent, Replayable, WindowMeta, WithMeta,
};
pub use export_file::RowSource;
pub use page::{Collection, Ranking};
pub use parquet_format::ParquetFile;
pub use problem::Problem;
pub use server_sent_events::{EventSource, ServerSentEvents};
pub use static_file::{StaticFile, Uncompressed};
