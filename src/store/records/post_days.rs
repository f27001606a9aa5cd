//! The table `post_days`, posts per day: commits append changes, which housekeeping merges into one row per day.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::summed_table::SummedTable;

pub static TABLE: SummedTable =
    SummedTable { name: "post_days", key: &["organization_id", "day", "platform"], numbers: &["posts"] };

/// Changes of the numbers of posts per day.
#[derive(Default)]
pub(in crate::store) struct PostDayChanges(BTreeMap<(Platform, NaiveDate), i64>);

impl PostDayChanges {
    /// Adds a number of posts of a time, if it is known.
    pub(in crate::store) fn add(&mut self, platform: Platform, posted: Option<DateTime<Utc>>, posts: i64) {
        if let Some(posted) = posted {
            *self.0.entry((platform, posted.date_naive())).or_default() += posts;
        }
    }

    pub(in crate::store) async fn append(
        mut self,
        connection: &mut PgConnection,
        organization: Uuid,
    ) -> Result<(), Error> {
        self.0.retain(|_, posts| *posts != 0);
        if self.0.is_empty() {
            return Ok(());
        }
        let platforms: Vec<_> = self.0.keys().map(|(platform, _)| platform.as_str()).collect();
        let days: Vec<_> = self.0.keys().map(|(_, day)| *day).collect();
        sqlx::query(
            "insert into post_days (organization_id, platform, day, posts, is_sum)
             select $1, platform, day, posts, false
             from unnest($2::text[], $3::date[], $4::bigint[]) as x(platform, day, posts)",
        )
        .bind(organization)
        .bind(platforms)
        .bind(days)
        .bind(self.0.values().copied().collect::<Vec<_>>())
        .execute(connection)
        .await?;
        Ok(())
    }
}
