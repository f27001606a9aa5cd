//! Who has a target in hand: due targets are leased to one tracker process, organization by organization in turns.
//!
//! Leases run by the database's clock, which every process shares and which no sandbox moves; what is due follows
//! the service's clock.

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;

/// How long a target stays in hand without a sign of life: a killed tracker's work is taken over within a minute.
const LEASE: PgInterval = PgInterval { months: 0, days: 0, microseconds: 45_000_000 };

/// How many other accounts one answer serves at most; they are recorded one after the other, and the rest is read again.
const SHARED: i64 = 100;

/// What kind of thing a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum TargetKind {
    Account,
    Video,
}

/// A target that one tracker process has in hand until its lease ends.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct LeasedTarget {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub platform: Platform,
    pub kind: TargetKind,
    pub failures: i32,
    pub not_found_runs: i32,
    /// How the platform is asked for an account.
    pub username: Option<String>,
    pub platform_id: Option<String>,
}

impl LeasedTarget {
    /// Whether one answer of the platform serves both.
    pub fn shares_response(&self, other: &LeasedTarget) -> bool {
        let key = |of: &LeasedTarget| (of.platform, of.username.clone(), of.platform_id.clone());
        self.kind == TargetKind::Account && other.kind == TargetKind::Account && key(self) == key(other)
    }
}

/// At which end of what is due an organization's turn begins. As both have their share, a new account does not wait
/// behind a backlog, and a backlog does not wait for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseOrder {
    OldestFirst,
    NewestFirst,
}

/// What one process asks for.
#[derive(Debug, Clone, Copy)]
pub struct LeaseRequest<'a> {
    pub owner: Uuid,
    pub platform: Platform,
    pub now: DateTime<Utc>,
    /// Only targets of this kind, while no source can read the other.
    pub kind: Option<TargetKind>,
    /// How many targets at most.
    pub limit: usize,
    pub order: LeaseOrder,
    /// The organization that had the last turn.
    pub after_organization: Uuid,
    /// What the process has in hand already, should a lease have run out meanwhile.
    pub in_flight: &'a [Uuid],
}

macro_rules! due {
    () => {
        "enabled and platform = $2 and next_attempt_at <= $3 and (lease_until is null or lease_until < now())
            and id <> all($4)"
    };
}

macro_rules! wanted {
    () => {
        "($8::text is null or kind = $8)"
    };
}

/// Organizations take turns, each is looked at by index only, and none is looked at while nothing is due at all. The
/// lateral look keeps the planner from joining the other way round, which would lose their order. An organization is
/// compared together with the time, and ordered by: the planner, which believes that every organization has as many
/// targets as the largest, would read all that is due for a small one's three.
macro_rules! in_turns {
    ($direction:literal) => {
        concat!(
            "with turns as materialized (
                select o.id, row_number() over () as place
                from (
                    (select id from organizations where id > $7 and deleted_at is null order by id)
                    union all
                    (select id from organizations where id <= $7 and deleted_at is null order by id)
                ) o
                cross join lateral (
                    select from scrape_targets
                    where (organization_id, next_attempt_at) >= (o.id, '-infinity')
                        and (organization_id, next_attempt_at) <= (o.id, $3) and ", due!(), " and ", wanted!(), "
                    order by organization_id, next_attempt_at limit 1
                ) has_work
                where exists (
                    select from (
                        select id, lease_until, kind from scrape_targets
                        where enabled and platform = $2 and next_attempt_at <= $3 order by next_attempt_at
                    ) next
                    where (lease_until is null or lease_until < now()) and id <> all($4) and ", wanted!(), "
                )
                limit $6
            ), due as (
                select d.id, turns.place
                from turns cross join lateral (
                    select id, next_attempt_at from scrape_targets
                    where (organization_id, next_attempt_at) >= (turns.id, '-infinity')
                        and (organization_id, next_attempt_at) <= (turns.id, $3) and ", due!(), " and ", wanted!(), "
                    order by organization_id ", $direction, ", next_attempt_at ", $direction, " limit $6
                    for update skip locked
                ) d
                order by row_number() over (partition by turns.place order by d.next_attempt_at ", $direction, "), turns.place
                limit $6
            )
            update scrape_targets t set lease_owner = $1, lease_until = now() + $5
            from due left join accounts a on a.id = due.id
            where t.id = due.id
            returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, a.username,
                a.platform_id, due.place"
        )
    };
}

#[derive(sqlx::FromRow)]
struct Placed {
    #[sqlx(flatten)]
    leased: LeasedTarget,
    place: i64,
}

/// The statement that takes due targets in hand, for whoever wants to see its plan.
pub fn statement(order: LeaseOrder) -> &'static str {
    match order {
        LeaseOrder::OldestFirst => in_turns!("asc"),
        LeaseOrder::NewestFirst => in_turns!("desc"),
    }
}

/// Takes due targets in hand that nobody else holds, and says which organization had the last turn.
pub async fn lease(pg: &PgPool, demand: LeaseRequest<'_>) -> Result<(Vec<LeasedTarget>, Uuid), Error> {
    let placed: Vec<Placed> = sqlx::query_as(statement(demand.order))
        .bind(demand.owner)
        .bind(demand.platform)
        .bind(demand.now)
        .bind(demand.in_flight)
        .bind(LEASE)
        .bind(demand.limit as i64)
        .bind(demand.after_organization)
        .bind(demand.kind)
        .fetch_all(pg)
        .await?;
    let last = placed.iter().max_by_key(|placed| placed.place);
    let last = last.map_or(demand.after_organization, |placed| placed.leased.organization_id);
    Ok((placed.into_iter().map(|placed| placed.leased).collect(), last))
}

/// Takes in hand what the answers for leased accounts serve as well: due accounts of other organizations under the
/// same name and platform id, those that have waited longest.
pub async fn lease_same_accounts(
    pg: &PgPool,
    demand: LeaseRequest<'_>,
    accounts: &[LeasedTarget],
) -> Result<Vec<LeasedTarget>, Error> {
    let accounts = accounts.iter().filter(|leased| leased.kind == TargetKind::Account);
    let (usernames, platform_ids): (Vec<_>, Vec<_>) =
        accounts.map(|leased| (leased.username.as_deref(), leased.platform_id.as_deref())).unzip();
    if usernames.is_empty() {
        return Ok(Vec::new());
    }
    let leased = sqlx::query_as(concat!(
        "update scrape_targets t set lease_owner = $1, lease_until = now() + $5
         from (
            select alike.id, asked.username, asked.platform_id
            from (select distinct username, platform_id from unnest($6::text[], $7::text[]) as a(username, platform_id)) asked
            cross join lateral (
                select id
                from (
                    select a.id as account_id from accounts a
                    where a.platform = $2 and a.username = asked.username
                        and a.platform_id is not distinct from asked.platform_id
                ) known
                join scrape_targets on id = account_id
                where ",
        due!(),
        "
                order by next_attempt_at limit $8
                for update of scrape_targets skip locked
            ) alike
         ) due
         where t.id = due.id
         returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, due.username,
            due.platform_id",
    ))
    .bind(demand.owner)
    .bind(demand.platform)
    .bind(demand.now)
    .bind(demand.in_flight)
    .bind(LEASE)
    .bind(usernames)
    .bind(platform_ids)
    .bind(SHARED)
    .fetch_all(pg)
    .await?;
    Ok(leased)
}

/// Keeps in hand what the process works on; what it gave up without a word runs out.
pub async fn renew(pg: &PgPool, owner: Uuid, in_flight: &[Uuid]) -> Result<(), Error> {
    sqlx::query("update scrape_targets set lease_until = now() + $3 where lease_owner = $1 and id = any($2)")
        .bind(owner)
        .bind(in_flight)
        .bind(LEASE)
        .execute(pg)
        .await?;
    Ok(())
}

/// Gives back what is in hand, due as before: nothing was learned, and nothing went wrong with it.
pub async fn release(pg: &PgPool, owner: Uuid, targets: &[Uuid]) -> Result<(), Error> {
    sqlx::query(
        "update scrape_targets set lease_owner = null, lease_until = null where id = any($1) and lease_owner = $2",
    )
    .bind(targets)
    .bind(owner)
    .execute(pg)
    .await?;
    Ok(())
}
