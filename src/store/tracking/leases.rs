//! Leases of due targets to tracker processes, shared fairly between organizations.
//!
//! Leases use the database's clock; due times use the service clock.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;

/// How many other accounts may share a response. They are recorded one after the other.
const MAX_SHARED_ACCOUNTS: i64 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum TargetKind {
    Account,
    Video,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct LeasedTarget {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub platform: Platform,
    pub kind: TargetKind,
    pub failures: i32,
    pub not_found_runs: i32,
    /// The parameters of an account's platform request.
    pub username: Option<String>,
    pub platform_id: Option<String>,
    /// Leased because a user asked for it.
    #[sqlx(skip)]
    pub is_refresh: bool,
}

impl LeasedTarget {
    /// Whether one response of the platform serves both targets.
    pub fn shares_response(&self, other: &LeasedTarget) -> bool {
        let key =
            |target: &LeasedTarget| (target.platform, target.username.clone(), target.platform_id.clone());
        self.kind == TargetKind::Account && other.kind == TargetKind::Account && key(self) == key(other)
    }
}

/// Which of an organization's due targets are leased first. Trackers use both, so that neither a new account nor an old
/// backlog waits forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseOrder {
    OldestFirst,
    NewestFirst,
}

#[derive(Debug, Clone, Copy)]
pub struct LeaseRequest<'a> {
    pub owner: Uuid,
    pub platform: Platform,
    pub now: DateTime<Utc>,
    /// How long the leases last without renewal.
    pub duration: Duration,
    /// Leases only targets of this kind.
    pub kind: Option<TargetKind>,
    pub limit: usize,
    pub order: LeaseOrder,
    /// Organizations are served round-robin, by id, starting after this one.
    pub after_organization: Uuid,
    /// Targets that the process is working on. They are excluded, in case a lease has expired.
    pub in_flight: &'a [Uuid],
}

macro_rules! due {
    () => {
        "enabled and platform = $2 and next_attempt_at <= $3 and (lease_until is null or lease_until < now())
            and id <> all($4)"
    };
}

macro_rules! waits_for_refresh {
    () => {
        "refresh_requested_at is not null and enabled and (lease_until is null or lease_until < now())
            and id <> all($3) and ($7::text is null or kind = $7)"
    };
}

macro_rules! has_kind {
    () => {
        "($8::text is null or kind = $8)"
    };
}

/// Leases targets of organizations in turn. Only organizations with a passed wakeup are looked at, an index lookup each.
///
/// The lateral join keeps the planner from reversing the join, which would lose the order. Row comparisons and orders
/// include the organization: the planner assumes that every organization has as many targets as the largest, and would
/// otherwise scan all due targets for a small one's three.
macro_rules! lease_statement {
    ($direction:literal) => {
        concat!(
            "with organizations_due as materialized (
                select o.id, row_number() over () as turn
                from (
                    select o.id
                    from (
                        select distinct organization_id as id from scrape_wakeups
                        where platform = $2 and wake_at <= $3 and ", has_kind!(), "
                    ) awake
                    join organizations o on o.id = awake.id
                    where o.deleted_at is null
                    order by o.id <= $7, o.id
                ) o
                cross join lateral (
                    select from scrape_targets
                    where (organization_id, next_attempt_at) >= (o.id, '-infinity')
                        and (organization_id, next_attempt_at) <= (o.id, $3) and ", due!(), " and ", has_kind!(), "
                    order by organization_id, next_attempt_at limit 1
                ) has_due
                limit $6
            ), due as (
                select d.id, o.turn
                from organizations_due o cross join lateral (
                    select id, next_attempt_at from scrape_targets
                    where (organization_id, next_attempt_at) >= (o.id, '-infinity')
                        and (organization_id, next_attempt_at) <= (o.id, $3) and ", due!(), " and ", has_kind!(), "
                    order by organization_id ", $direction, ", next_attempt_at ", $direction, " limit $6
                    for update skip locked
                ) d
                order by row_number() over (partition by o.turn order by d.next_attempt_at ", $direction, "), o.turn
                limit $6
            )
            update scrape_targets t set lease_owner = $1, lease_until = now() + $5
            from due left join accounts a on a.id = due.id
            where t.id = due.id
            returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, a.username,
                a.platform_id, due.turn"
        )
    };
}

/// The statement that leases refreshes of organizations in turn, the longest waiting first. Public for tests of its plan.
///
/// Row comparisons leave the planner only the index of refreshes.
pub const REFRESH_STATEMENT: &str = concat!(
    "with organizations_waiting as materialized (
        select o.id, row_number() over (order by o.id <= $6, o.id) as turn
        from (
            select distinct organization_id as id from scrape_targets where platform = $2 and ",
    waits_for_refresh!(),
    "
        ) waiting
        join organizations o on o.id = waiting.id
        where o.deleted_at is null
        order by turn limit $5
    ), waiting as (
        select r.id, o.turn
        from organizations_waiting o cross join lateral (
            select id, refresh_requested_at from scrape_targets
            where (platform, organization_id, refresh_requested_at) >= ($2, o.id, '-infinity')
                and (platform, organization_id, refresh_requested_at) <= ($2, o.id, 'infinity') and ",
    waits_for_refresh!(),
    "
            order by platform, organization_id, refresh_requested_at limit $5
            for update skip locked
        ) r
        order by row_number() over (partition by o.turn order by r.refresh_requested_at), o.turn
        limit $5
    )
    update scrape_targets t set lease_owner = $1, lease_until = now() + $4
    from waiting left join accounts a on a.id = waiting.id
    where t.id = waiting.id
    returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, a.username,
        a.platform_id, waiting.turn"
);

#[derive(sqlx::FromRow)]
struct TargetInTurn {
    #[sqlx(flatten)]
    target: LeasedTarget,
    turn: i64,
}

/// The statement that leases due targets. Public for tests of its plan.
pub fn statement(order: LeaseOrder) -> &'static str {
    match order {
        LeaseOrder::OldestFirst => lease_statement!("asc"),
        LeaseOrder::NewestFirst => lease_statement!("desc"),
    }
}

/// Leases due targets. Also returns the organization that was served last.
pub async fn lease(pg: &PgPool, request: LeaseRequest<'_>) -> Result<(Vec<LeasedTarget>, Uuid), Error> {
    let leased: Vec<TargetInTurn> = sqlx::query_as(statement(request.order))
        .bind(request.owner)
        .bind(request.platform)
        .bind(request.now)
        .bind(request.in_flight)
        .bind(request.duration)
        .bind(request.limit as i64)
        .bind(request.after_organization)
        .bind(request.kind)
        .fetch_all(pg)
        .await?;
    Ok(split_turns(leased, request.after_organization))
}

/// Leases refreshes, due or not. Also returns the organization that was served last.
pub async fn lease_refreshes(
    pg: &PgPool,
    request: LeaseRequest<'_>,
) -> Result<(Vec<LeasedTarget>, Uuid), Error> {
    let mut leased: Vec<TargetInTurn> = sqlx::query_as(REFRESH_STATEMENT)
        .bind(request.owner)
        .bind(request.platform)
        .bind(request.in_flight)
        .bind(request.duration)
        .bind(request.limit as i64)
        .bind(request.after_organization)
        .bind(request.kind)
        .fetch_all(pg)
        .await?;
    leased.iter_mut().for_each(|leased| leased.target.is_refresh = true);
    Ok(split_turns(leased, request.after_organization))
}

/// Returns the targets, and the organization that was served last.
fn split_turns(leased: Vec<TargetInTurn>, after_organization: Uuid) -> (Vec<LeasedTarget>, Uuid) {
    let last = leased.iter().max_by_key(|leased| leased.turn);
    let last_organization = last.map_or(after_organization, |leased| leased.target.organization_id);
    (leased.into_iter().map(|leased| leased.target).collect(), last_organization)
}

/// Leases accounts of other organizations that have the same username and platform id as leased ones, so that one response
/// serves all: those that are due or wait for a refresh, longest due first.
pub async fn lease_same_accounts(
    pg: &PgPool,
    request: LeaseRequest<'_>,
    accounts: &[LeasedTarget],
) -> Result<Vec<LeasedTarget>, Error> {
    let accounts = accounts.iter().filter(|leased| leased.kind == TargetKind::Account);
    let (usernames, platform_ids): (Vec<_>, Vec<_>) =
        accounts.map(|leased| (leased.username.as_deref(), leased.platform_id.as_deref())).unzip();
    if usernames.is_empty() {
        return Ok(Vec::new());
    }
    let leased = sqlx::query_as(
        "update scrape_targets t set lease_owner = $1, lease_until = now() + $5
         from (
            select same.id, leased.username, leased.platform_id
            from (select distinct username, platform_id from unnest($6::text[], $7::text[]) as a(username, platform_id)) leased
            cross join lateral (
                select id
                from (
                    select a.id as account_id from accounts a
                    where a.platform = $2 and a.username = leased.username
                        and a.platform_id is not distinct from leased.platform_id
                ) account
                join scrape_targets on id = account_id
                where (next_attempt_at <= $3 or refresh_requested_at is not null) and enabled and platform = $2
                    and (lease_until is null or lease_until < now()) and id <> all($4)
                order by next_attempt_at limit $8
                for update of scrape_targets skip locked
            ) same
         ) due
         where t.id = due.id
         returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, due.username,
            due.platform_id",
    )
    .bind(request.owner)
    .bind(request.platform)
    .bind(request.now)
    .bind(request.in_flight)
    .bind(request.duration)
    .bind(usernames)
    .bind(platform_ids)
    .bind(MAX_SHARED_ACCOUNTS)
    .fetch_all(pg)
    .await?;
    Ok(leased)
}

/// Extends leases.
pub async fn renew(pg: &PgPool, owner: Uuid, in_flight: &[Uuid], duration: Duration) -> Result<(), Error> {
    sqlx::query("update scrape_targets set lease_until = now() + $3 where lease_owner = $1 and id = any($2)")
        .bind(owner)
        .bind(in_flight)
        .bind(duration)
        .execute(pg)
        .await?;
    Ok(())
}

/// Ends leases without an attempt. The targets stay due.
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
