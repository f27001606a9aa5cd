//! Changes of stored rows that a version needs, in small units of work, while other processes serve.

use std::collections::BTreeMap;

use chrono::Utc;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::text::search_key;
use crate::store::lifecycle::rewrite;
use crate::store::records::events::candidates;
use crate::store::records::hashtags;
use crate::store::{self, Write, observations, retry_on_conflict};

/// Rows that are read at once. Those of one organization are changed in a unit of work.
const PAGE_ROWS: i64 = 1_000;

/// Makes the changes that this database lacks. A process of an earlier version may write rows in the old form meanwhile: those
/// that are identified by their columns are changed at every run.
pub(super) async fn run(pg: &PgPool) -> Result<(), store::Error> {
    const SEARCH_KEYS: &str = "search_keys";
    if !is_finished(pg, SEARCH_KEYS).await? {
        rewrite_pages(pg, CREATORS, update_creator).await?;
        rewrite_pages(pg, CAPTIONS, update_caption).await?;
        record_finished(pg, SEARCH_KEYS).await?;
    }
    const CANDIDATES: &str = "breakout_candidates";
    if !is_finished(pg, CANDIDATES).await? {
        candidates::add_stored(pg, Utc::now().date_naive()).await?;
        record_finished(pg, CANDIDATES).await?;
    }
    rewrite::skip_if_new(pg).await?;
    observations::complete_ids(pg).await?;
    while hashtags::fill_missing(pg, PAGE_ROWS).await? > 0 {}
    Ok(())
}

async fn is_finished(pg: &PgPool, name: &str) -> Result<bool, store::Error> {
    let found = sqlx::query("select from backfills where name = $1").bind(name).fetch_optional(pg).await?;
    Ok(found.is_some())
}

async fn record_finished(pg: &PgPool, name: &str) -> Result<(), store::Error> {
    sqlx::query("insert into backfills (name, finished_at) values ($1, now()) on conflict do nothing")
        .bind(name)
        .execute(pg)
        .await?;
    tracing::info!(backfill = name, "stored rows are rewritten");
    Ok(())
}

/// A creator's name or a video's caption, and its key as it is stored.
#[derive(Clone, sqlx::FromRow)]
struct SearchedText {
    id: Uuid,
    organization_id: Uuid,
    text: String,
    key: String,
}

/// Rewrites the rows of which `select` reads pages, in the order of their ids, whose key is not [`search_key`].
async fn rewrite_pages(
    pg: &PgPool,
    select: &'static str,
    update: impl AsyncFn(&mut Write, &SearchedText) -> Result<(), store::Error>,
) -> Result<(), store::Error> {
    let mut last = Uuid::nil();
    loop {
        let page: Vec<SearchedText> = sqlx::query_as(select).bind(last).bind(PAGE_ROWS).fetch_all(pg).await?;
        let Some(end) = page.last() else { return Ok(()) };
        last = end.id;
        let mut stale = BTreeMap::<Uuid, Vec<SearchedText>>::new();
        for row in page.into_iter().filter(|row| search_key(&row.text) != row.key) {
            stale.entry(row.organization_id).or_default().push(row);
        }
        for (organization, rows) in stale {
            let rewritten = retry_on_conflict(async || {
                let mut write = Write::begin(pg, organization).await?;
                for row in &rows {
                    update(&mut write, row).await?;
                }
                write.commit().await
            });
            match rewritten.await {
                // Deleted meanwhile.
                Err(store::Error::NotFound(_)) => {}
                other => drop(other?),
            }
        }
    }
}

/// ASCII names and captions have the same key as before.
const CREATORS: &str = "
    select id, organization_id, name as text, coalesce(name_search, name_key) as key
    from creators where id > $1 and name_key ~ '[^\\x01-\\x7f]' order by id limit $2";
const CAPTIONS: &str = "
    select id, organization_id, description as text, description_key as key
    from videos where id > $1 and description_key ~ '[^\\x01-\\x7f]' order by id limit $2";

/// Does nothing to a creator that was renamed meanwhile.
async fn update_creator(write: &mut Write, row: &SearchedText) -> Result<(), store::Error> {
    let updated = sqlx::query(
        "update creators set name_search = nullif($4, name_key) where organization_id = $1 and id = $2 and name = $3",
    )
    .bind(write.organization())
    .bind(row.id)
    .bind(&row.text)
    .bind(search_key(&row.text))
    .execute(write.connection())
    .await?;
    if updated.rows_affected() > 0 {
        write.record_creator_change(row.id);
    }
    Ok(())
}

/// Does nothing to a video whose caption changed meanwhile.
async fn update_caption(write: &mut Write, row: &SearchedText) -> Result<(), store::Error> {
    let updated: Option<i64> = sqlx::query_scalar(
        "update videos set description_key = $4
         where organization_id = $1 and id = $2 and description = $3 returning internal_id",
    )
    .bind(write.organization())
    .bind(row.id)
    .bind(&row.text)
    .bind(search_key(&row.text))
    .fetch_optional(write.connection())
    .await?;
    if let Some(internal_id) = updated {
        write.record_caption_change(internal_id);
        write.record_video_change(row.id);
    }
    Ok(())
}
