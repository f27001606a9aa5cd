//! Postgres for the reads of one organization: each has a permit, so that all others find connections.

use std::ops::Deref;

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::fair_limiter::{FairLimiter, Permit};

/// Cheap to clone.
#[derive(Clone)]
pub struct FairReads {
    pg: PgPool,
    limiter: FairLimiter,
    organization: Uuid,
}

/// A pool of which one connection may be used at a time, until this is dropped.
pub struct PermittedPool {
    pg: PgPool,
    _permit: Permit,
}

impl FairReads {
    pub const fn new(pg: PgPool, limiter: FairLimiter, organization: Uuid) -> Self {
        FairReads { pg, limiter, organization }
    }

    /// Waits for a permit. Release it before the next one is acquired.
    pub async fn acquire(&self) -> Result<PermittedPool, Error> {
        let permit = self.limiter.acquire(self.organization).await?;
        Ok(PermittedPool { pg: self.pg.clone(), _permit: permit })
    }
}

impl Deref for PermittedPool {
    type Target = PgPool;

    fn deref(&self) -> &PgPool {
        &self.pg
    }
}
