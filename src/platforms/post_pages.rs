//! The posts of an account, collected page by page down to a depth.

use std::collections::HashSet;

use super::source::{Depth, Post, SourceError};
use crate::model::cost::PageCounts;

/// Enough for the deepest read with pages of ten posts.
const MAX_PAGES: usize = 500;
/// An account can pin fewer posts; they come first, however old.
pub(super) const MIN_OLDER_POSTS: usize = 10;

/// The pages of one read.
pub(super) struct PostPages {
    depth: Depth,
    posts: Vec<Post>,
    seen_ids: HashSet<String>,
    seen_cursors: HashSet<String>,
    /// Posts on the last pages, as long as these had only posts older than the depth.
    older_posts: usize,
    pages: usize,
    /// Posts on the last page, and how many of them no earlier page had.
    page_posts: usize,
    new_posts: usize,
    counts: PageCounts,
}

impl PostPages {
    pub(super) fn new(depth: Depth) -> Self {
        PostPages {
            depth,
            posts: Vec::new(),
            seen_ids: HashSet::new(),
            seen_cursors: HashSet::new(),
            older_posts: 0,
            pages: 0,
            page_posts: 0,
            new_posts: 0,
            counts: PageCounts { reads: 1, ..PageCounts::default() },
        }
    }

    /// How many more posts are asked for.
    pub(super) fn missing_posts(&self) -> usize {
        self.depth.max_posts - self.posts.len()
    }

    /// Adds the posts of a page, without duplicates and posts beyond the depth.
    pub(super) fn add(&mut self, page: Vec<Post>) {
        let oldest = self.depth.oldest();
        let is_older = |post: &Post| post.fields.create_time.is_some_and(|time| time < oldest);
        self.pages += 1;
        (self.page_posts, self.new_posts) = (page.len(), 0);
        if !page.is_empty() && page.iter().all(is_older) {
            self.older_posts += page.len();
            self.counts.surplus_pages += 1;
        } else if !page.is_empty() {
            self.older_posts = 0;
        }
        for post in page {
            if self.seen_ids.insert(post.external_id.clone()) {
                self.new_posts += 1;
                if !is_older(&post) && self.missing_posts() > 0 {
                    self.posts.push(post);
                }
            }
        }
    }

    /// Takes the cursor of the next page, and returns it if that page has to be read. Paging that cannot end is an error,
    /// because the posts so far are not all.
    pub(super) fn follow(&mut self, next: Option<String>) -> Result<Option<String>, SourceError> {
        // The last posts asked for may be fewer than a page has otherwise.
        let Some(cursor) = next.filter(|_| self.missing_posts() > 0) else { return Ok(None) };
        self.counts.full_pages += 1;
        self.counts.full_page_posts += self.page_posts as i64;
        // No page that follows so many older posts has others.
        if self.older_posts >= MIN_OLDER_POSTS {
            return Ok(None);
        }
        if !self.seen_cursors.insert(cursor.clone()) && self.new_posts == 0 {
            return Err(SourceError::Malformed("the paging cursor repeats itself".to_owned()));
        }
        if self.pages == MAX_PAGES {
            let posts = self.posts.len();
            return Err(SourceError::Malformed(format!(
                "the account has more than {MAX_PAGES} pages, with {posts} posts so far: use larger pages"
            )));
        }
        Ok(Some(cursor))
    }

    pub(super) fn finish(self) -> (Vec<Post>, PageCounts) {
        (self.posts, self.counts)
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;

    use super::*;
    use crate::model::counters::Counters;
    use crate::model::observed::VideoFields;

    fn page(ids: std::ops::Range<u32>) -> Vec<Post> {
        let (fields, counters) = (VideoFields::default(), Counters::default());
        ids.map(|id| Post { external_id: id.to_string(), shortcode: None, fields: fields.clone(), counters })
            .collect()
    }

    #[test]
    fn page_cut_by_the_depth_does_not_count_as_full() {
        let mut pages = PostPages::new(Depth { max_posts: 12, not_before: NaiveDate::default() });
        pages.add(page(0..10));
        assert_eq!(pages.follow(Some("a".to_owned())), Ok(Some("a".to_owned())));
        pages.add(page(10..12));
        assert_eq!(pages.follow(Some("b".to_owned())), Ok(None));
        let counts = PageCounts { reads: 1, full_pages: 1, full_page_posts: 10, surplus_pages: 0 };
        assert_eq!(pages.finish().1, counts);
    }

    #[test]
    fn more_pages_than_the_limit_are_an_error() {
        let mut pages = PostPages::new(Depth { max_posts: 5_000, not_before: NaiveDate::default() });
        for page in 1..MAX_PAGES {
            pages.add(Vec::new());
            assert_eq!(pages.follow(Some(page.to_string())), Ok(Some(page.to_string())));
        }
        pages.add(Vec::new());
        assert_eq!(pages.follow(None), Ok(None), "the last page may be the 500th");
        assert!(matches!(pages.follow(Some("more".to_owned())), Err(SourceError::Malformed(_))));
    }
}
