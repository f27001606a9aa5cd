//! Responses: envelopes, pages, cached responses and problems.

pub mod cached;
pub mod cursor;
pub mod envelope;
pub mod page;
pub mod problem;
pub mod problem_kind;

pub use cached::{Cached, Records};
pub use envelope::{Created, Data, FoundOrCreated, NoContent, WindowMeta, WithMeta};
pub use page::Collection;
pub use problem::Problem;
