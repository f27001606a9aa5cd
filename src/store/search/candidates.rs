//! Finds the documents that may match a query, unless there are too many: an ordered scan finds these sooner.

use tantivy::postings::SegmentPostings;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, InvertedIndexReader, SegmentReader, TERMINATED, Term};
use uuid::Uuid;

use super::fields::{Fields, ID_COLUMNS};
use super::grams;
use super::strategy::{Candidates, Tier};
use crate::store::Error;

/// The rarest terms of a long query find nearly as few candidates as all of them.
const MAX_TERMS_PER_QUERY: usize = 12;

/// Searches an organization's documents of one kind in one commit of the index.
pub(super) struct Searcher {
    pub(super) searcher: tantivy::Searcher,
    pub(super) fields: Fields,
    pub(super) scope: Term,
    pub(super) query: String,
}

impl Searcher {
    /// The number of documents.
    pub(super) fn records(&self) -> Result<u64, Error> {
        Ok(self.searcher.doc_freq(&self.scope)?)
    }

    /// Finds at most `max` documents that have the terms of the query. They include all that match.
    pub(super) fn candidates(&self, tier: Tier, max: usize) -> Result<Candidates, Error> {
        let terms: Vec<_> = match tier {
            Tier::Exact => vec![grams::exact_term(&self.query)],
            Tier::Prefix => grams::prefix_terms(&self.query),
            Tier::Anywhere => grams::substring_terms(&self.query),
        };
        let terms: Vec<_> = terms.iter().map(|term| Term::from_field_text(self.fields.text, term)).collect();
        let mut found = Vec::new();
        let mut count = 0;
        for segment in self.searcher.segment_readers() {
            let Some(docs) = self.intersect(segment, &terms, max - count)? else { return Ok(None) };
            count += docs.len();
            found.push((segment, docs));
        }
        let mut ids = Vec::with_capacity(count);
        for (segment, docs) in found.into_iter().filter(|(_, docs)| !docs.is_empty()) {
            let [high, low] = ID_COLUMNS.map(|column| segment.fast_fields().u64(column));
            let (high, low) = (high?.first_or_default_col(0), low?.first_or_default_col(0));
            ids.extend(docs.into_iter().map(|doc| Uuid::from_u64_pair(high.get_val(doc), low.get_val(doc))));
        }
        Ok(Some(ids))
    }

    /// Finds at most `max` documents of a segment that are in the scope and have the rarest of the terms.
    fn intersect(
        &self,
        segment: &SegmentReader,
        terms: &[Term],
        max: usize,
    ) -> tantivy::Result<Option<Vec<DocId>>> {
        let Some(mut lists) = self.postings(segment, terms)? else { return Ok(Some(Vec::new())) };
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
                if found.len() == max {
                    return Ok(None);
                }
                found.push(doc);
            }
            doc = shortest.advance();
        }
        Ok(Some(found))
    }

    /// The postings of the scope and of the rarest terms; None if the segment lacks one of them.
    fn postings(
        &self,
        segment: &SegmentReader,
        terms: &[Term],
    ) -> tantivy::Result<Option<Vec<SegmentPostings>>> {
        let read = |texts: &InvertedIndexReader, info| {
            texts.read_postings_from_terminfo(info, IndexRecordOption::Basic)
        };
        let scopes = segment.inverted_index(self.fields.scope)?;
        let Some(scope) = scopes.get_term_info(&self.scope)? else { return Ok(None) };
        let texts = segment.inverted_index(self.fields.text)?;
        let mut infos = Vec::with_capacity(terms.len());
        for term in terms {
            let Some(info) = texts.get_term_info(term)? else { return Ok(None) };
            infos.push(info);
        }
        infos.sort_by_key(|info| info.doc_freq);
        infos.truncate(MAX_TERMS_PER_QUERY);
        let mut lists = vec![read(&scopes, &scope)?];
        for info in &infos {
            lists.push(read(&texts, info)?);
        }
        Ok(Some(lists))
    }
}
