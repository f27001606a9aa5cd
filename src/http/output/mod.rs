//! Responses: envelopes, pages, cached responses and problems.

pub mod cached;
pub mod cursor;
pub mod envelope;
pub mod page;
pub mod problem;
pub mod problem_kind;
mod static_file;

pub use cached::{Cached, CachedPage, Records};
pub use envelope::{Created, Data, FoundOrCreated, NoContent, WindowMeta, WithMeta};
pub use page::{Collection, Ranking};
pub use problem::Problem;
pub use static_file::StaticFile;
