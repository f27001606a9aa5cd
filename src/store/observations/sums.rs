//! Sums of an account over the latest counters of its discovered videos.

use std::sync::LazyLock;

use uuid::Uuid;

use crate::model::counters::Counters;
use crate::store::{Error, Write};

/// The lateral join reads each account's videos by index; joined together, all videos of the organization would be read.
static UPDATE: LazyLock<String> = LazyLock::new(|| {
    let assignments = Counters::NAMES.map(|name| format!("{name} = s.{name}")).join(", ");
    let sums =
        Counters::NAMES.into_iter().zip(Counters::NULLABLE).map(|(name, is_nullable)| match is_nullable {
            true => format!("sum({name})::bigint as {name}"),
            false => format!("coalesce(sum({name}), 0)::bigint as {name}"),
        });
    format!(
        "update accounts a set total_post_count = s.posts, {assignments}
         from unnest($2::uuid[]) as x(account_id)
         cross join lateral (
            select count(*) as posts, {}
            from videos where organization_id = $1 and account_id = x.account_id
         ) s
         where a.organization_id = $1 and a.id = x.account_id",
        sums.collect::<Vec<_>>().join(", ")
    )
});

/// Recomputes the sums of accounts.
pub(super) async fn refresh(write: &mut Write, accounts: &[Uuid]) -> Result<(), Error> {
    sqlx::query(UPDATE.as_str())
        .bind(write.organization())
        .bind(accounts)
        .execute(write.connection())
        .await?;
    Ok(())
}
