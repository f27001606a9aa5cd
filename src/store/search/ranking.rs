//! Ranks matches: selects the records to look at so that the best are among them, and widens until that is certain.
//!
//! Few candidates are looked up by id. More are found in an ordered scan of the index by size in Postgres; if there are too
//! many, the scan compares texts. Sizes are in Postgres only, so that a scrape updates the ranking without the index.

use sqlx::{PgPool, Row};
use uuid::Uuid;

use super::candidates::Searcher;
use super::index::{DiskIndex, run_blocking};
use super::sections::{self, CreatorHit, RankedHit};
use super::strategy::{Limits, Strategy, Tier};
use super::{EffectiveCaps, Sections};
use crate::store::Error;
use crate::store::write::Entity;

/// A folded query of an organization.
pub(super) struct Search<'a> {
    pub(super) pg: &'a PgPool,
    pub(super) index: &'a DiskIndex,
    pub(super) organization: Uuid,
    pub(super) query: &'a str,
}

impl Search<'_> {
    pub(super) async fn find_sections(&self, caps: EffectiveCaps) -> Result<Sections, Error> {
        // One after the other: a read uses one connection at a time (`http::middleware::limit_reads`).
        let accounts = self.find_ranked(caps.accounts).await?;
        let creators = self.find_creators(caps.creators).await?;
        let videos = self.find_ranked(caps.videos).await?;
        Ok(Sections { accounts, creators, videos, effective_caps: caps })
    }

    /// Finds the best accounts or videos.
    async fn find_ranked<H: RankedHit>(&self, limit: usize) -> Result<Vec<H>, Error> {
        let Some((limits, mut strategies)) = self.initial_strategies(H::ENTITY, limit).await? else {
            return Ok(Vec::new());
        };
        loop {
            if strategies.iter().all(Strategy::finds_nothing) {
                return Ok(Vec::new());
            }
            let mut query = sections::ranked_query::<H>(self.organization, self.query, &strategies, limit);
            let rows = query.build().fetch_all(self.pg).await?;
            let mut is_certain = true;
            for (tier, strategy) in Tier::ALL.into_iter().zip(&mut strategies) {
                let mut found = 0;
                for row in &rows {
                    found += usize::from(row.try_get::<i32, _>("tier")? <= tier as i32);
                }
                if found < limit && !strategy.is_exhaustive() {
                    is_certain = false;
                    let narrow = std::mem::replace(strategy, Strategy::Skip);
                    *strategy = self.widen(H::ENTITY, tier, narrow, limits, limit).await?;
                }
            }
            if is_certain {
                return Ok(rows.iter().map(H::from_row).collect::<Result<_, _>>()?);
            }
        }
    }

    /// Finds the best creators. They are few and no index has their sizes: with many candidates all texts are compared.
    async fn find_creators(&self, limit: usize) -> Result<Vec<CreatorHit>, Error> {
        let searcher = self.searcher(Entity::Creator);
        let candidates = run_blocking(move || match searcher.limits()? {
            Some(limits) => searcher.candidates(Tier::Anywhere, limits.lookups),
            None => Ok(Some(Vec::new())),
        })
        .await?;
        sections::fetch_creators(self.pg, self.organization, candidates, self.query, limit).await
    }

    /// The first strategy for each tier; None if the organization has no records of the kind.
    async fn initial_strategies(
        &self,
        entity: Entity,
        limit: usize,
    ) -> Result<Option<(Limits, [Strategy; 3])>, Error> {
        let searcher = self.searcher(entity);
        run_blocking(move || {
            let Some(limits) = searcher.limits()? else { return Ok(None) };
            let strategy = |tier| {
                let candidates = searcher.candidates(tier, limits.candidates)?;
                Ok::<_, Error>(Strategy::new(candidates, limits, limit))
            };
            let (exact, prefix) = (strategy(Tier::Exact)?, strategy(Tier::Prefix)?);
            let anywhere =
                if prefix.fills_section(limit) { Strategy::Skip } else { strategy(Tier::Anywhere)? };
            Ok(Some((limits, [exact, prefix, anywhere])))
        })
        .await
    }

    /// The strategy for a tier after one that did not find enough.
    async fn widen(
        &self,
        entity: Entity,
        tier: Tier,
        strategy: Strategy,
        limits: Limits,
        limit: usize,
    ) -> Result<Strategy, Error> {
        let max = match strategy {
            Strategy::Scan { candidates, rows } => return Ok(Strategy::after_scan(candidates, rows, limits)),
            Strategy::Skip => limits.candidates,
            Strategy::Compare { .. } | Strategy::LookUp(_) | Strategy::CompareAll => usize::MAX,
        };
        let searcher = self.searcher(entity);
        let candidates = run_blocking(move || searcher.candidates(tier, max)).await?;
        Ok(Strategy::new(candidates, limits, limit))
    }

    fn searcher(&self, entity: Entity) -> Searcher {
        self.index.searcher(self.organization, entity, self.query)
    }
}
