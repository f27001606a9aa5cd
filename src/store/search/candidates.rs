//! Which documents of an index may contain a text, begin with it, or be it: as many as are worth naming.
//!
//! What many documents have is not worth naming: whoever looks through the records in the order of the ranking meets it
//! soon. Where that begins follows from the number of the organization's records.

use std::cmp::max;

use tantivy::postings::SegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, SegmentReader, TERMINATED, Term};
use uuid::Uuid;

use super::grams;
use super::index::{Fields, ID, scope};
use crate::store::Error;
use crate::store::write::Entity;

/// The rarest terms of a long query find nearly as few candidates as all of them.
const TERMS_PER_QUERY: usize = 12;

/// How a text has to have the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// It is the query.
    Exact,
    /// It begins with it.
    Prefix,
    /// It contains it.
    Anywhere,
}

/// The documents that may have a query in one way; `None` when there are too many to name.
pub(super) type Named = Option<Vec<Uuid>>;

/// From how many records on what is done with them. In plans over 50,000 videos in memory, on a busy machine, a record
/// that was looked up by its id took 5 µs, one that was passed over in the order of the sizes 0.2 µs, one that was compared
/// there 10 µs, and naming one 0.25 µs; so each way is the shorter one for some numbers, where a text is spread evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// So many are looked up one by one.
    pub(super) looked_up: usize,
    /// So many are named; they are met in the order of the ranking when they are more than are looked up.
    pub(super) named: usize,
    /// So many records are compared in that order to find some of more.
    pub(super) compared: usize,
}

impl Bounds {
    fn of(records: u64) -> Self {
        let root = |factor: u64| usize::try_from((factor * records).isqrt()).unwrap_or(usize::MAX);
        let looked_up = max(root(6), 300);
        Bounds { looked_up, named: looked_up.saturating_mul(4), compared: max(root(100), 500) }
    }
}

/// The index as of one commit.
pub(super) struct Searcher {
    searcher: tantivy::Searcher,
    fields: Fields,
}

impl Searcher {
    pub(super) fn new(searcher: tantivy::Searcher, fields: Fields) -> Self {
        Searcher { searcher, fields }
    }

    pub(super) fn document_count(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Returns the bounds for an organization's documents of one kind; `None` when it has none.
    pub(super) fn bounds(&self, organization: Uuid, entity: Entity) -> Result<Option<Bounds>, Error> {
        let scope = Term::from_field_bytes(self.fields.scope, &scope(entity, organization));
        let records = self.searcher.doc_freq(&scope)?;
        Ok((records > 0).then(|| Bounds::of(records)))
    }

    /// Returns the ids of an organization's documents of one kind that have the terms of the query, if they are at
    /// most so many. Every document that has the query in this way is among them.
    pub(super) fn candidates(
        &self,
        organization: Uuid,
        entity: Entity,
        query: &str,
        tier: Tier,
        most: usize,
    ) -> Result<Named, Error> {
        let scope = Term::from_field_bytes(self.fields.scope, &scope(entity, organization));
        let terms: Vec<_> = match tier {
            Tier::Exact => grams::whole(query),
            Tier::Prefix => grams::beginning(query),
            Tier::Anywhere => grams::anywhere(query),
        };
        let terms: Vec<_> = terms.iter().map(|term| Term::from_field_text(self.fields.text, term)).collect();
        let mut ids = Vec::new();
        for segment in self.searcher.segment_readers() {
            let found = self.conjunction(segment, &scope, &terms, most - ids.len())?;
            let Some(found) = found else { return Ok(None) };
            if found.is_empty() {
                continue;
            }
            let [high, low] = ID.map(|column| segment.fast_fields().u64(column));
            let (high, low) = (high?.first_or_default_col(0), low?.first_or_default_col(0));
            ids.extend(found.into_iter().map(|doc| Uuid::from_u64_pair(high.get_val(doc), low.get_val(doc))));
        }
        Ok(Some(ids))
    }

    /// Returns the living documents of a segment that have the rarest of the terms, in the scope, if they are at most
    /// so many.
    fn conjunction(
        &self,
        segment: &SegmentReader,
        scope: &Term,
        terms: &[Term],
        most: usize,
    ) -> tantivy::Result<Option<Vec<DocId>>> {
        let Some(mut lists) = self.postings(segment, scope, terms)? else { return Ok(Some(Vec::new())) };
        lists.sort_by_key(|list| list.size_hint());
        let mut found = Vec::new();
        let Some((shortest, others)) = lists.split_first_mut() else { return Ok(Some(found)) };
        let mut doc = shortest.doc();
        'documents: while doc != TERMINATED {
            for list in &mut *others {
                let reached = if list.doc() < doc { list.seek(doc) } else { list.doc() };
                if reached > doc {
                    doc = shortest.seek(reached);
                    continue 'documents;
                }
            }
            if !segment.is_deleted(doc) {
                if found.len() == most {
                    return Ok(None);
                }
                found.push(doc);
            }
            doc = shortest.advance();
        }
        Ok(Some(found))
    }

    /// The documents in the scope, and those of each of the rarest terms; `None` when the segment lacks one.
    fn postings(
        &self,
        segment: &SegmentReader,
        scope: &Term,
        terms: &[Term],
    ) -> tantivy::Result<Option<Vec<SegmentPostings>>> {
        let read = |texts: &InvertedIndexReader, info| {
            texts.read_postings_from_terminfo(info, IndexRecordOption::Basic)
        };
        let scopes = segment.inverted_index(self.fields.scope)?;
        let Some(scope) = scopes.get_term_info(scope)? else { return Ok(None) };
        let texts = segment.inverted_index(self.fields.text)?;
        let mut infos = Vec::with_capacity(terms.len());
        for term in terms {
            let Some(info) = texts.get_term_info(term)? else { return Ok(None) };
            infos.push(info);
        }
        infos.sort_by_key(|info| info.doc_freq);
        infos.truncate(TERMS_PER_QUERY);
        let mut lists = vec![read(&scopes, &scope)?];
        for info in &infos {
            lists.push(read(&texts, info)?);
        }
        Ok(Some(lists))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_with_the_root_of_the_records() {
        assert_eq!(Bounds::of(1), Bounds { looked_up: 300, named: 1_200, compared: 500 });
        assert_eq!(Bounds::of(250_000), Bounds { looked_up: 1_224, named: 4_896, compared: 5_000 });
        assert_eq!(Bounds::of(1_000_000), Bounds { looked_up: 2_449, named: 9_796, compared: 10_000 });
    }
}
