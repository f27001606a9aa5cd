//! From candidates to a section: which records are looked at, so that the best are among them, and when that is certain.
//!
//! What few records may have is looked up; what some may have is met in the order of the sizes, which an index of
//! Postgres keeps; what many have is compared in that order, and the first of them fill the section. Sizes are in
//! Postgres alone, so a scrape that only moves counters ranks at once and touches no search index.

use std::sync::Arc;

use sqlx::{PgPool, Row};
use uuid::Uuid;

use super::blocking;
use super::candidates::{Bounds, Named, Tier};
use super::index::Index;
use super::sections::{self, CreatorHit, Ranked};
use crate::store::Error;
use crate::store::write::Entity;

const TIERS: [Tier; 3] = [Tier::Exact, Tier::Prefix, Tier::Anywhere];
/// By how much more is looked at when what was looked at did not hold enough.
const FURTHER: usize = 16;

/// A folded query of an organization.
pub(super) struct Search<'a> {
    pub(super) pg: &'a PgPool,
    pub(super) index: &'a Arc<Index>,
    pub(super) organization: Uuid,
    pub(super) query: &'a str,
}

/// How the records of one tier are looked at.
#[derive(Debug)]
pub(super) enum Way {
    /// Not at all, for a better tier has enough.
    Not,
    /// All of them, by their ids.
    LookedUp(Vec<Uuid>),
    /// The biggest `reach` of those named, met in the order of the sizes.
    Met { named: Vec<Uuid>, reach: usize },
    /// The biggest of all, by comparing so many records in the order of the sizes.
    Compared(usize),
}

impl Way {
    fn of(named: Named, bounds: Bounds, limit: usize) -> Self {
        match named {
            Some(ids) if ids.len() <= bounds.looked_up => Way::LookedUp(ids),
            Some(named) => Way::Met { named, reach: plenty(limit) },
            None => Way::Compared(bounds.compared),
        }
    }

    /// Whether it leads to all records of its tier.
    fn is_whole(&self) -> bool {
        match self {
            Way::LookedUp(_) => true,
            Way::Met { named, reach } => named.len() <= *reach,
            Way::Not | Way::Compared(_) => false,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Way::Not) || matches!(self, Way::LookedUp(ids) if ids.is_empty())
    }

    /// Whether it leads to more than a section holds, even when some of them turn out not to match.
    fn is_plenty(&self, limit: usize) -> bool {
        match self {
            Way::LookedUp(ids) => ids.len() >= plenty(limit),
            Way::Met { .. } | Way::Compared(_) => true,
            Way::Not => false,
        }
    }
}

/// More records than a section holds, so that some may turn out not to match.
const fn plenty(limit: usize) -> usize {
    2 * limit + 10
}

impl Search<'_> {
    /// Returns the best of the accounts or videos.
    pub(super) async fn ranked<H: Ranked>(&self, limit: usize) -> Result<Vec<H>, Error> {
        let Some((bounds, mut ways)) = self.ways(H::ENTITY, limit).await? else { return Ok(Vec::new()) };
        loop {
            if ways.iter().all(Way::is_empty) {
                return Ok(Vec::new());
            }
            let rows = sections::ranked::<H>(self.organization, self.query, &ways, limit)
                .build()
                .fetch_all(self.pg)
                .await?;
            let mut certain = true;
            for (place, tier) in TIERS.into_iter().enumerate() {
                let mut found = 0;
                for row in &rows {
                    found += usize::from(row.try_get::<i32, _>("tier")? <= tier as i32);
                }
                if found < limit && !ways[place].is_whole() {
                    certain = false;
                    let way = std::mem::replace(&mut ways[place], Way::Not);
                    ways[place] = self.further(H::ENTITY, tier, way, bounds, limit).await?;
                }
            }
            if certain {
                return Ok(rows.iter().map(H::from_row).collect::<Result<_, _>>()?);
            }
        }
    }

    /// Returns the best of the creators. How big they are stands in no index, so what many have is compared in all of
    /// them: creators are few.
    pub(super) async fn creators(&self, limit: usize) -> Result<Vec<CreatorHit>, Error> {
        let (index, organization, query) = (self.index.clone(), self.organization, self.query.to_owned());
        let named = blocking(move || {
            let searcher = index.searcher();
            let most = match searcher.bounds(organization, Entity::Creator)? {
                Some(bounds) => bounds.looked_up,
                None => return Ok(Some(Vec::new())),
            };
            searcher.candidates(organization, Entity::Creator, &query, Tier::Anywhere, most)
        })
        .await?;
        sections::creators(self.pg, organization, named, self.query, limit).await
    }

    /// Returns how each tier is looked at first; `None` when the organization has no records of the kind.
    async fn ways(&self, entity: Entity, limit: usize) -> Result<Option<(Bounds, [Way; 3])>, Error> {
        let (index, organization, query) = (self.index.clone(), self.organization, self.query.to_owned());
        blocking(move || {
            let searcher = index.searcher();
            let Some(bounds) = searcher.bounds(organization, entity)? else { return Ok(None) };
            let way = |tier| {
                let named = searcher.candidates(organization, entity, &query, tier, bounds.named)?;
                Ok::<_, Error>(Way::of(named, bounds, limit))
            };
            let (exact, prefix) = (way(Tier::Exact)?, way(Tier::Prefix)?);
            let anywhere = if prefix.is_plenty(limit) { Way::Not } else { way(Tier::Anywhere)? };
            Ok(Some((bounds, [exact, prefix, anywhere])))
        })
        .await
    }

    /// Returns the way to more records of a tier when one did not lead to enough.
    async fn further(
        &self,
        entity: Entity,
        tier: Tier,
        way: Way,
        bounds: Bounds,
        limit: usize,
    ) -> Result<Way, Error> {
        let most = match way {
            Way::Met { named, reach } => return Ok(Way::Met { named, reach: reach.saturating_mul(FURTHER) }),
            Way::Not => bounds.named,
            Way::Compared(_) | Way::LookedUp(_) => usize::MAX,
        };
        let (index, organization, query) = (self.index.clone(), self.organization, self.query.to_owned());
        let named =
            blocking(move || index.searcher().candidates(organization, entity, &query, tier, most)).await?;
        Ok(Way::of(named, bounds, limit))
    }
}
