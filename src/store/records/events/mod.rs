//! Events: the list, and what units of work append to it.

pub mod candidates;

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use sqlx::{PgConnection, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::failpoint;
use crate::model::date_or_time::DateOrTime;
use crate::model::event::{Event, EventData, EventId, EventType};
use crate::store::postgres::keyset::{
    KeysetPosition, List, ListPage, PageRequest, Sort, SortColumn, SortKey,
};
use crate::store::records::collections::membership::{self, Membership};
use crate::store::records::videos;
use crate::store::{Error, Write};

/// An event that a unit of work has found.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    pub event_type: EventType,
    pub account: Option<Uuid>,
    /// Its account is the event's.
    pub video: Option<Uuid>,
    /// What the type says; records are added when it is appended.
    pub data: EventData,
}

impl NewEvent {
    pub const fn of_account(event_type: EventType, account: Uuid, data: EventData) -> Self {
        NewEvent { event_type, account: Some(account), video: None, data }
    }

    pub const fn of_video(event_type: EventType, video: Uuid, data: EventData) -> Self {
        NewEvent { event_type, account: None, video: Some(video), data }
    }

    pub const fn of_import(data: EventData) -> Self {
        NewEvent { event_type: EventType::ImportEnded, account: None, video: None, data }
    }

    pub const fn of_webhook(data: EventData) -> Self {
        NewEvent { event_type: EventType::WebhookDisabled, account: None, video: None, data }
    }
}

/// Appends events with the records they are about. Locks the organization until the commit, after everything else, so the ids
/// of its events follow the order of commits. A deleted organization gets none.
pub(in crate::store) async fn append(
    connection: &mut PgConnection,
    organization: Uuid,
    now: DateTime<Utc>,
    events: Vec<NewEvent>,
) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    let last: Option<Option<Uuid>> = sqlx::query_scalar(
        "select last_event_id from organizations where id = $1 and deleted_at is null for no key update",
    )
    .bind(organization)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(mut last) = last else { return Ok(()) };
    let mut rows = Vec::with_capacity(events.len());
    for NewEvent { event_type, account, video, data } in events {
        let EventId { id, created_at } = EventId::next(last, now);
        rows.push(EventRow { id, event_type, account_id: account, video_id: video, data, created_at });
        last = Some(id);
    }
    sqlx::query(include_str!("append.sql"))
        .bind(organization)
        .bind(Json(rows))
        .bind(last)
        .execute(connection)
        .await?;
    failpoint::reached("events-appended");
    Ok(())
}

/// A row as `append.sql` takes it.
#[derive(Serialize)]
struct EventRow {
    id: Uuid,
    #[serde(rename = "type")]
    event_type: EventType,
    account_id: Option<Uuid>,
    video_id: Option<Uuid>,
    data: EventData,
    created_at: DateTime<Utc>,
}

/// Merges the events of a merged video into those of the remaining one: one of each thing that happened.
pub(in crate::store) async fn merge(write: &mut Write, remaining: Uuid, deleted: Uuid) -> Result<(), Error> {
    for statement in [
        "delete from events d using events r
         where d.organization_id = $1 and d.video_id = $3 and r.organization_id = $1 and r.video_id = $2
           and r.type = d.type and r.data -> 'threshold' is not distinct from d.data -> 'threshold'",
        "update events set video_id = $2, data = jsonb_set(data, '{video,id}', to_jsonb($2))
         where organization_id = $1 and video_id = $3",
    ] {
        sqlx::query(statement)
            .bind(write.organization())
            .bind(remaining)
            .bind(deleted)
            .execute(write.connection())
            .await?;
    }
    Ok(())
}

/// The filter of events. Events that are about no account and no post match none by account, creator and collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventFilter {
    /// Filter by type: events of any of these.
    pub r#type: Option<Vec<EventType>>,
    /// Filter by account, also that of a post.
    pub account_id: Option<Uuid>,
    /// Filter by the creator that the account has now.
    pub creator_id: Option<Uuid>,
    /// Filter by collection: events of posts that are in it now.
    pub collection_id: Option<Uuid>,
    /// Earliest `created_at`: a date, which includes its whole UTC day, or a time.
    pub created_after: Option<DateOrTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventSort {
    CreatedAt,
}

impl Sort for EventSort {
    type Record = Event;

    fn column(self) -> SortColumn {
        SortColumn::required("e.created_at")
    }

    fn position(self, event: &Event) -> KeysetPosition {
        KeysetPosition { key: SortKey::Time(event.created_at), id: event.id }
    }
}

/// Lists events. Fails if the account, creator or collection to filter by does not exist.
pub async fn list(
    pg: &PgPool,
    organization: Uuid,
    filter: &EventFilter,
    page: &PageRequest<EventSort>,
) -> Result<ListPage<Event>, Error> {
    videos::require_parents(pg, organization, filter.account_id, filter.creator_id).await?;
    let membership = match filter.collection_id {
        Some(collection) => Some(membership::get(pg, organization, collection).await?),
        None => None,
    };
    let list = build_list(organization, filter, membership.as_ref());
    let query = list_query(organization, filter, membership.as_ref(), page);
    list.fetch_page(pg, page, query).await
}

/// Builds the query that reads a page.
pub fn list_query(
    organization: Uuid,
    filter: &EventFilter,
    membership: Option<&Membership>,
    page: &PageRequest<EventSort>,
) -> QueryBuilder<Postgres> {
    build_list(organization, filter, membership).select_page(page, |query| {
        query.push(
            "select e.id, e.type, e.created_at, e.data from page join events e on e.organization_id = ",
        );
        query.push_bind(organization).push(" and e.id = page.id");
    })
}

fn build_list(
    organization: Uuid,
    filter: &EventFilter,
    membership: Option<&Membership>,
) -> List<impl Fn(&mut QueryBuilder<Postgres>)> {
    let conditions = move |query: &mut QueryBuilder<Postgres>| {
        query.push("e.organization_id = ").push_bind(organization);
        match filter.r#type.as_deref() {
            None => {}
            Some([event_type]) => drop(query.push(" and e.type = ").push_bind(*event_type)),
            Some(types) => drop(query.push(" and e.type = any(").push_bind(types.to_vec()).push(")")),
        }
        if let Some(account) = filter.account_id {
            query.push(" and e.account_id = ").push_bind(account);
        }
        if let Some(creator) = filter.creator_id {
            query.push(" and e.account_id in (select id from accounts where creator_id = ");
            query.push_bind(creator).push(" and organization_id = ").push_bind(organization).push(")");
        }
        if let Some(membership) = membership {
            query.push(" and exists (select from videos v where v.id = e.video_id and v.organization_id = ");
            query.push_bind(organization).push(" and ");
            membership.push_condition(query);
            query.push(")");
        }
        if let Some(after) = filter.created_after {
            query.push(" and e.created_at >= ").push_bind(after.first());
        }
    };
    let custom_plan = filter.created_after.is_some() || membership.is_some();
    List {
        table: "events e",
        id: "e.id",
        conditions,
        parents: None,
        sorted: None,
        text: None,
        tags: None,
        custom_plan,
    }
}

/// What streams of an organization follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct FeedMark {
    pub last_event_id: Option<Uuid>,
    /// Grows with every change of figures.
    pub data_version: i64,
}

/// Reads the marks of organizations.
pub async fn fetch_marks(pg: &PgPool, organizations: &[Uuid]) -> Result<HashMap<Uuid, FeedMark>, Error> {
    #[derive(sqlx::FromRow)]
    struct Marked {
        id: Uuid,
        #[sqlx(flatten)]
        mark: FeedMark,
    }
    // A sum of numbers that only grow (store::outbox::data_version).
    let marks: Vec<Marked> = sqlx::query_as(
        "select o.id, o.last_event_id,
                o.accounts_version + o.videos_version + o.history_generation + c.generation
                    + coalesce(o.history_since - date '2000-01-01', 0) + coalesce((
                        select delivery from history_versions where organization_id = o.id order by day desc limit 1
                    ), 0) as data_version
         from organizations o cross join clickhouse_generation c where o.id = any($1)",
    )
    .bind(organizations)
    .fetch_all(pg)
    .await?;
    Ok(marks.into_iter().map(|marked| (marked.id, marked.mark)).collect())
}

/// Reads up to `limit` events after an id, the first ones.
pub async fn fetch_after(
    pg: &PgPool,
    organization: Uuid,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Event>, Error> {
    let events = sqlx::query_as(
        "select id, type, created_at, data from events where organization_id = $1 and id > $2 order by id limit $3",
    )
    .bind(organization)
    .bind(after)
    .bind(limit)
    .fetch_all(pg)
    .await?;
    Ok(events)
}

/// Deletes up to `limit` events of over 30 days ago, and returns their number.
pub async fn delete_expired(pg: &PgPool, now: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = sqlx::query(
        "delete from events where (organization_id, id) in (
            select organization_id, id from events where created_at <= $1 - interval '30 days'
            order by created_at limit $2 for update skip locked)",
    )
    .bind(now)
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(deleted.rows_affected())
}
