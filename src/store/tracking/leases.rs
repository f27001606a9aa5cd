//! Leases of due targets to tracker processes, shared fairly between organizations.
//!
//! Leases use the database's clock; due times use the service clock.

use std::sync::LazyLock;
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

/// The statement that leases refreshes. Public for tests of its plan.
pub const REFRESH_STATEMENT: &str = include_str!("lease_refreshes.sql");

#[derive(sqlx::FromRow)]
struct TargetInTurn {
    #[sqlx(flatten)]
    target: LeasedTarget,
    turn: i64,
}

/// The statement that leases due targets. Public for tests of its plan.
pub fn statement(order: LeaseOrder) -> &'static str {
    static STATEMENTS: LazyLock<[String; 2]> = LazyLock::new(|| {
        ["asc", "desc"].map(|order| include_str!("lease.sql").replace("{direction}", order))
    });
    &STATEMENTS[order as usize]
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
    let last_organization = last.map_or(after_organization, |last| last.target.organization_id);
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
    let leased = sqlx::query_as(include_str!("lease_same_accounts.sql"))
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
