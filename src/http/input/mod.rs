//! Reads a request: its path, query and body, as values or as a list of all violations.

pub mod body;
pub mod fields;
pub mod file_body;
pub mod idempotency_key;
pub mod last_event_id;
pub mod list;
pub mod path;
pub mod query;
pub mod query_string;
pub mod ranking;
pub mod reader;
pub mod request_part;
pub mod violations;
pub mod window;

pub use body::{Body, EmptyBody, FromBody};
pub use fields::{field, parse_uuid};
pub use file_body::FileBody;
pub use idempotency_key::IdempotencyKey;
pub use last_event_id::LastEventId;
pub use list::{ListParams, ListQuery, ListSort};
pub use path::Path;
pub use query::Query;
pub use ranking::{PlainRankingQuery, RankingOrder, RankingPage, RankingParams, RankingQuery};
pub use request_part::{Args, RequestContext, RequestPart};
pub use window::WindowParams;
