//! Ranks matches: selects the records to look at so that the best are among them, and widens until that is certain.
//!
//! Few candidates are looked up by id. More are found in an ordered scan of the index by size in Postgres; if there are too
//! many to list, the scan compares all texts. Sizes are in Postgres only, so that a scrape updates the ranking without the index.

use sqlx::{PgConnection, PgPool, Row};
use uuid::Uuid;

use super::candidates::Searcher;
use super::index::{DiskIndex, run_blocking};
use super::sections::{self, AccountHit, RankedHit, VideoHit};
use super::strategy::{Candidates, Limits, Strategy, Tier};
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

/// The strategy for each tier of a section, and the limits for its records.
struct Strategies {
    limits: Limits,
    tiers: [Strategy; 3],
}

impl Search<'_> {
    pub(super) async fn find_sections(&self, caps: EffectiveCaps) -> Result<Sections, Error> {
        let searchers = [Entity::Account, Entity::Creator, Entity::Video].map(|entity| self.searcher(entity));
        let (accounts, creators, videos) = run_blocking(move || {
            let [accounts, creators, videos] = searchers;
            let candidates = creator_candidates(&creators, &accounts)?;
            Ok((
                initial_strategies(&accounts, caps.accounts)?,
                candidates,
                initial_strategies(&videos, caps.videos)?,
            ))
        })
        .await?;
        let finds_nothing = |section: &Strategies| section.tiers.iter().all(Strategy::finds_nothing);
        let mut found = Sections { accounts: vec![], creators: vec![], videos: vec![], effective_caps: caps };
        if finds_nothing(&accounts) && creators.as_ref().is_some_and(Vec::is_empty) && finds_nothing(&videos)
        {
            return Ok(found);
        }
        // A read uses one connection (`http::middleware::limit_reads`).
        let mut connection = self.pg.acquire().await?;
        found.accounts = self.find_ranked::<AccountHit>(&mut connection, accounts, caps.accounts).await?;
        let (organization, query) = (self.organization, self.query);
        found.creators =
            sections::fetch_creators(&mut connection, organization, creators, query, caps.creators).await?;
        found.videos = self.find_ranked::<VideoHit>(&mut connection, videos, caps.videos).await?;
        Ok(found)
    }

    /// Finds the best accounts or videos.
    async fn find_ranked<H: RankedHit>(
        &self,
        connection: &mut PgConnection,
        strategies: Strategies,
        limit: usize,
    ) -> Result<Vec<H>, Error> {
        let Strategies { limits, mut tiers } = strategies;
        loop {
            if tiers.iter().all(Strategy::finds_nothing) {
                return Ok(Vec::new());
            }
            let mut query = sections::ranked_query::<H>(self.organization, self.query, &tiers, limit);
            let rows = query.build().fetch_all(&mut *connection).await?;
            let mut is_certain = true;
            let uncertain: Vec<i32> =
                rows.first().map_or(Ok(vec![]), |row| row.try_get("uncertain_tiers"))?;
            for (tier, strategy) in Tier::ALL.into_iter().zip(&mut tiers) {
                let mut count = 0;
                for row in &rows {
                    count += usize::from(row.try_get::<i32, _>("tier")? <= tier as i32);
                }
                let is_missing_some = count < limit && !strategy.is_exhaustive();
                if is_missing_some || uncertain.contains(&(tier as i32)) {
                    is_certain = false;
                    let narrow = std::mem::replace(strategy, Strategy::Skip);
                    *strategy = self.widen(H::ENTITY, tier, narrow, limits).await?;
                }
            }
            if is_certain {
                return Ok(rows.iter().map(H::from_row).collect::<Result<_, _>>()?);
            }
        }
    }

    /// The strategy for a tier after one that did not find enough: most of its candidates do not match.
    async fn widen(
        &self,
        entity: Entity,
        tier: Tier,
        strategy: Strategy,
        limits: Limits,
    ) -> Result<Strategy, Error> {
        match strategy {
            Strategy::Scan { candidates: Some(ids), .. } | Strategy::LookUp(ids) => Ok(Strategy::LookUp(ids)),
            Strategy::Scan { candidates: None, .. } | Strategy::CompareAll => Ok(Strategy::CompareAll),
            Strategy::Skip => {
                let searcher = self.searcher(entity);
                let candidates = run_blocking(move || searcher.candidates(tier, limits.candidates)).await?;
                Ok(Strategy::new(candidates, limits))
            }
        }
    }

    fn searcher(&self, entity: Entity) -> Searcher {
        self.index.searcher(self.organization, entity, self.query)
    }
}

/// The first strategy for each tier.
fn initial_strategies(searcher: &Searcher, limit: usize) -> Result<Strategies, Error> {
    let limits = Limits::new(searcher.records()?, limit);
    let strategy = |tier| {
        let candidates = searcher.candidates(tier, limits.candidates)?;
        Ok::<_, Error>(Strategy::new(candidates, limits))
    };
    let (exact, prefix) = (strategy(Tier::Exact)?, strategy(Tier::Prefix)?);
    let anywhere = if prefix.fills_section(limit) { Strategy::Skip } else { strategy(Tier::Anywhere)? };
    Ok(Strategies { limits, tiers: [exact, prefix, anywhere] })
}

/// The creators that may match; None if the followers of all creators are summed up sooner than those of the candidates.
fn creator_candidates(creators: &Searcher, accounts: &Searcher) -> Result<Candidates, Error> {
    let max = (creators.records()? + accounts.records()?) / 16;
    creators.candidates(Tier::Anywhere, usize::try_from(max).unwrap_or(usize::MAX))
}
