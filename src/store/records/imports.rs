//! Records that an import writes besides observations: missing accounts, creators and categories.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use sqlx::types::Json;
use uuid::Uuid;

use crate::model::account::Metadata;
use crate::model::account_settings::AccountSettings;
use crate::model::latest::Timestamped;
use crate::model::limits::DEFAULT_SCRAPE_INTERVAL_HOURS;
use crate::model::platform::Platform;
use crate::model::text::fold_case;
use crate::store::observations::AccountRef;
use crate::store::records::creators::{self, NewCreator};
use crate::store::tracking::targets;
use crate::store::{Error, Write};

/// Finds and locks accounts by name, and creates missing ones with their settings, due at `now`. The cap of accounts does not
/// apply.
pub async fn find_or_create_accounts(
    write: &mut Write,
    names: &[(Platform, String)],
    settings: &HashMap<(Platform, String), AccountSettings>,
    is_active: bool,
    now: DateTime<Utc>,
) -> Result<HashMap<(Platform, String), AccountRef>, Error> {
    let mut found = find_and_lock(write, names).await?;
    let missing: Vec<_> = names.iter().filter(|name| !found.contains_key(*name)).collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let ids: Vec<_> = missing.iter().map(|_| Uuid::now_v7()).collect();
    let (platforms, usernames): (Vec<_>, Vec<_>) =
        missing.iter().map(|(platform, username)| (platform.as_str(), username.as_str())).unzip();
    let defaults = AccountSettings::default();
    let settings: Vec<_> = missing.iter().map(|name| settings.get(*name).unwrap_or(&defaults)).collect();
    let are_active: Vec<_> = settings.iter().map(|new| new.is_active.unwrap_or(is_active)).collect();
    let intervals = settings.iter().map(|new| new.scrape_interval_hours);
    let intervals: Vec<_> = intervals.map(|hours| hours.unwrap_or(DEFAULT_SCRAPE_INTERVAL_HOURS)).collect();
    let tags: Vec<_> = settings.iter().map(|new| Json(&new.tags)).collect();
    let created: Vec<(Uuid, i64, Platform, String)> = sqlx::query_as(
        "insert into accounts
            (id, organization_id, platform, username, is_active, scrape_interval_hours, metadata, added_at, updated_at)
         select id, $1, platform, username, is_active, scrape_interval_hours, metadata, $8, $8
         from unnest($2::uuid[], $3::text[], $4::text[], $5::boolean[], $6::integer[], $7::jsonb[])
            as x(id, platform, username, is_active, scrape_interval_hours, metadata)
         on conflict do nothing
         returning id, internal_id, platform, username",
    )
    .bind(write.organization())
    .bind(&ids)
    .bind(&platforms)
    .bind(&usernames)
    .bind(are_active)
    .bind(intervals)
    .bind(tags)
    .bind(Utc::now())
    .fetch_all(write.connection())
    .await?;
    if created.len() < missing.len() {
        return Err(Error::WriteConflict);
    }
    targets::add_accounts(write, &ids, now).await?;
    for (id, subject_id, platform, username) in created {
        write.record_account_change(id);
        found.insert((platform, username), AccountRef { id, subject_id });
    }
    Ok(found)
}

/// Reads the names that accounts of an organization hold.
pub async fn fetch_account_names(pg: &PgPool, organization: Uuid) -> Result<Vec<(Platform, String)>, Error> {
    let names = sqlx::query_as(
        "select platform, username from accounts where organization_id = $1 and holds_username",
    );
    Ok(names.bind(organization).fetch_all(pg).await?)
}

async fn find_and_lock(
    write: &mut Write,
    names: &[(Platform, String)],
) -> Result<HashMap<(Platform, String), AccountRef>, Error> {
    let (platforms, usernames): (Vec<_>, Vec<_>) =
        names.iter().map(|(platform, username)| (platform.as_str(), username.as_str())).unzip();
    let rows: Vec<(Uuid, i64, Platform, String)> = sqlx::query_as(
        "select a.id, a.internal_id, a.platform, a.username
         from unnest($2::text[], $3::text[]) as x(platform, username)
         join accounts a on a.organization_id = $1 and a.platform = x.platform and a.username = x.username
            and a.holds_username
         order by a.id for update of a",
    )
    .bind(write.organization())
    .bind(platforms)
    .bind(usernames)
    .fetch_all(write.connection())
    .await?;
    let account =
        |(id, subject_id, platform, username)| ((platform, username), AccountRef { id, subject_id });
    Ok(rows.into_iter().map(account).collect())
}

/// Links accounts without a creator to the oldest creator of a name, which is created if missing. Locks creators before
/// accounts.
pub async fn link_creators(
    write: &mut Write,
    links: &[(Platform, String, Timestamped<String>)],
) -> Result<(), Error> {
    lock_creators(write).await?;
    let mut creators: HashMap<&str, Uuid> = HashMap::new();
    for (_, _, creator) in links {
        let name = creator.value.as_str();
        if !creators.contains_key(name) {
            creators.insert(name, find_or_create_creator(write, name).await?);
        }
    }
    let platforms: Vec<_> = links.iter().map(|(platform, _, _)| platform.as_str()).collect();
    let usernames: Vec<_> = links.iter().map(|(_, username, _)| username.as_str()).collect();
    let ids: Vec<_> = links.iter().map(|(_, _, creator)| creators[creator.value.as_str()]).collect();
    let linked: Vec<Uuid> = sqlx::query_scalar(
        "update accounts a set creator_id = x.creator_id, linked_at = $5, updated_at = $5
         from unnest($2::text[], $3::text[], $4::uuid[]) as x(platform, username, creator_id)
         where a.organization_id = $1 and a.platform = x.platform and a.username = x.username and a.holds_username
           and a.creator_id is null
         returning a.id",
    )
    .bind(write.organization())
    .bind(platforms)
    .bind(usernames)
    .bind(ids)
    .bind(Utc::now())
    .fetch_all(write.connection())
    .await?;
    for account in linked {
        write.record_account_change(account);
        write.record_target_change(account);
    }
    Ok(())
}

/// Creates the creators of names that none has.
pub async fn create_missing_creators(write: &mut Write, names: &[&String]) -> Result<(), Error> {
    lock_creators(write).await?;
    for name in names {
        find_or_create_creator(write, name).await?;
    }
    Ok(())
}

/// Otherwise concurrent imports could both create a creator of the same name.
async fn lock_creators(write: &mut Write) -> Result<(), Error> {
    sqlx::query("select pg_advisory_xact_lock(hashtextextended('creators of ' || $1::text, 0))")
        .bind(write.organization())
        .execute(write.connection())
        .await?;
    Ok(())
}

async fn find_or_create_creator(write: &mut Write, name: &str) -> Result<Uuid, Error> {
    let found: Option<Uuid> = sqlx::query_scalar(
        "select id from creators where organization_id = $1 and name_key = $2 and name = $3
         order by added_at, id limit 1 for share",
    )
    .bind(write.organization())
    .bind(fold_case(name))
    .bind(name)
    .fetch_optional(write.connection())
    .await?;
    match found {
        Some(id) => Ok(id),
        None => {
            let new = NewCreator { name: name.to_owned(), is_active: true, metadata: Metadata::new() };
            creators::create(write, &new).await
        }
    }
}

/// Sets categories of accounts, unless a user or a later observation has set another.
pub async fn set_categories(
    write: &mut Write,
    categories: &[(Platform, String, Timestamped<String>)],
) -> Result<(), Error> {
    let platforms: Vec<_> = categories.iter().map(|(platform, _, _)| platform.as_str()).collect();
    let usernames: Vec<_> = categories.iter().map(|(_, username, _)| username.as_str()).collect();
    let labels: Vec<_> = categories.iter().map(|(_, _, category)| category.value.as_str()).collect();
    let times: Vec<_> = categories.iter().map(|(_, _, category)| category.at).collect();
    let changed: Vec<Uuid> = sqlx::query_scalar(
        "update accounts a set category = x.category, category_observed_at = x.observed_at, updated_at = $6
         from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[]) as x(platform, username, category, observed_at)
         where a.organization_id = $1 and a.platform = x.platform and a.username = x.username and a.holds_username
           and (a.category is null or a.category_observed_at <= x.observed_at)
           and (a.category, a.category_observed_at) is distinct from (x.category, x.observed_at)
         returning a.id",
    )
    .bind(write.organization())
    .bind(platforms)
    .bind(usernames)
    .bind(labels)
    .bind(times)
    .bind(Utc::now())
    .fetch_all(write.connection())
    .await?;
    for account in changed {
        write.record_account_change(account);
    }
    Ok(())
}
