//! The label names of metrics, and the values that several modules use.

pub const METHOD: &str = "http.request.method";
pub const ROUTE: &str = "http.route";
pub const STATUS: &str = "http.response.status_code";
pub const ORGANIZATION_SIZE: &str = "tidemark.organization.size";
pub const LIMIT: &str = "tidemark.limit";
pub const SYSTEM: &str = "db.system.name";
pub const OPERATION: &str = "db.operation.name";
pub const ERROR_TYPE: &str = "error.type";
pub const POOL: &str = "db.client.connection.pool.name";
pub const STATE: &str = "db.client.connection.state";
pub const PLATFORM: &str = "tidemark.platform";
pub const SOURCE: &str = "tidemark.source";
pub const TARGET: &str = "tidemark.target";
pub const OUTCOME: &str = "tidemark.outcome";
pub const CAUSE: &str = "tidemark.cause";

/// The [`POOL`] of Postgres connections.
pub const POSTGRES_POOL: &str = "postgres";
/// The [`POOL`] of permits for concurrent analytics queries.
pub const ANALYTICS_POOL: &str = "clickhouse";
