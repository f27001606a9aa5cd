//! Responses: envelopes, pages and problems.

pub mod batch;
mod csv_file;
pub mod cursor;
pub mod envelope;
pub(in crate::http) mod key_watch;
pub mod page;
pub mod problem;
pub mod problem_kind;
mod server_sent_events;
mod static_file;

pub use batch::{BatchItemResult, BatchResponse};
pub use csv_file::{CsvFile, CsvSource};
pub use envelope::{
    Accepted, AcceptedAt, Created, Data, FoundOrCreated, NoContent, Replayable, WindowMeta, WithMeta,
};
pub use page::{Collection, Ranking};
pub use problem::Problem;
pub use server_sent_events::{EventSource, ServerSentEvents};
pub use static_file::{StaticFile, Uncompressed};
