//! Reads a request: its path, query and body, as values or as a list of all violations.

pub mod batch;
pub mod body;
pub mod fields;
pub mod idempotency_key;
pub mod list;
pub mod path;
pub mod query;
pub mod query_string;
pub mod ranking;
pub mod request_part;
pub mod violations;
pub mod window;

pub use batch::{BatchItem, BatchRequest, BatchSource};
pub use body::{Body, BodyFields, EmptyBody, FromBody};
pub use fields::{check_range, parse_integer, parse_uuid};
pub use idempotency_key::IdempotencyKey;
pub use list::{ListParams, ListSort};
pub use path::{FromPath, Path, PathParams};
pub use query::{FromQuery, Query, QueryParams};
pub use ranking::RankingParams;
pub use request_part::Args;
pub use window::WindowParams;
