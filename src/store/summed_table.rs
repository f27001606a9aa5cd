//! Tables of numbers that transactions change by appending rows (`is_sum = false`), which housekeeping adds to one sum per key.
//!
//! A number is always the sum over all rows of its key, so that writers never wait for each other.

use sqlx::{AssertSqlSafe, PgPool};

use crate::store::Error;

/// A table with the columns of its key, in the order of the unique index of its sums, and its numbers.
pub struct SummedTable {
    pub(in crate::store) name: &'static str,
    pub(in crate::store) key: &'static [&'static str],
    pub(in crate::store) numbers: &'static [&'static str],
}

impl SummedTable {
    /// Merges up to `limit` rows into their sums and returns how many. Processes may run it concurrently.
    pub async fn compact(&self, pg: &PgPool, limit: i64) -> Result<u64, Error> {
        let (table, key) = (self.name, self.key.join(", "));
        let format_numbers = |format: &dyn Fn(&str) -> String| {
            self.numbers.iter().map(|number| format(number)).collect::<Vec<_>>().join(", ")
        };
        let numbers = self.numbers.join(", ");
        let sums = format_numbers(&|number| format!("sum({number})"));
        let additions = format_numbers(&|number| format!("{number} = {table}.{number} + excluded.{number}"));
        let statement = format!(
            "with taken as (
                 delete from {table} where ctid = any(array(
                     select ctid from {table} where not is_sum limit $1 for update skip locked))
                 returning {key}, {numbers}
             ), merged as (
                 insert into {table} ({key}, {numbers}, is_sum)
                 select {key}, {sums}, true from taken group by {key} order by {key}
                 on conflict ({key}) where is_sum do update set {additions}
             )
             select count(*) from taken"
        );
        let merged: i64 = sqlx::query_scalar(AssertSqlSafe(statement)).bind(limit).fetch_one(pg).await?;
        Ok(merged.unsigned_abs())
    }
}
