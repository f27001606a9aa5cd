//! Reads an account of the collector, page by page.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::{Map, Value};

use super::validating_client::{ContractResponse, ValidatingClient};
use crate::platforms::coerce;
use crate::platforms::post_pages::MIN_OLDER_POSTS;

/// An account and a post that the collector has, as far as they are known.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    pub username: Option<String>,
    /// The platform's id of the account.
    pub account_id: Option<String>,
    /// The platform's id of a post.
    pub post_id: Option<String>,
    pub shortcode: Option<String>,
}

pub(super) const ACCOUNT_SCHEMA: &str = "AccountResponse";
const MAX_PAGES: usize = 40;

/// An account with the posts of all pages read.
#[derive(Default)]
pub(super) struct AccountPages {
    pub(super) profile: Map<String, Value>,
    pub(super) posts: Vec<Map<String, Value>>,
    pub(super) page_count: usize,
    /// Posts from before the requested day, and pages that have only such posts.
    pub(super) older_posts: usize,
    pub(super) older_pages: usize,
    /// Posts on the last pages, as long as these had only older posts.
    last_older_posts: usize,
    /// Whether other posts follow so many older ones that the tracker stops before them.
    pub(super) has_unread_posts: bool,
    /// Ids of posts that appear more than once.
    pub(super) duplicate_ids: BTreeSet<String>,
    /// Whether the pages have profiles with different ids.
    pub(super) has_other_profiles: bool,
}

/// Why an account was not read to its end.
pub(super) enum ReadFailure {
    FirstPage(String),
    Paging(String),
}

impl From<ReadFailure> for String {
    fn from(failure: ReadFailure) -> Self {
        match failure {
            ReadFailure::FirstPage(reason) | ReadFailure::Paging(reason) => reason,
        }
    }
}

impl AccountPages {
    /// Reads an account until `max_posts` are read or the last page is reached.
    pub(super) async fn read(
        client: &mut ValidatingClient<'_>,
        username: &str,
        id: Option<&str>,
        max_posts: usize,
        not_before: NaiveDate,
    ) -> Result<AccountPages, ReadFailure> {
        let page = fetch_page(client, username, id, max_posts, not_before, None).await;
        let mut page = page.map_err(ReadFailure::FirstPage)?;
        let profile = page.get("profile").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut account = AccountPages { profile, ..AccountPages::default() };
        let (mut cursors, mut seen_ids) = (BTreeSet::new(), BTreeSet::new());
        loop {
            account.add_page(&page, &mut seen_ids, not_before);
            let (pages, posts) = (account.page_count, account.posts.len());
            let next = coerce::non_empty_text(page.get("next"));
            let Some(cursor) = next.filter(|_| posts < max_posts) else { return Ok(account) };
            if !cursors.insert(cursor.clone()) {
                return Err(ReadFailure::Paging(format!("page {pages} repeats the cursor \"{cursor}\"")));
            }
            if pages == MAX_PAGES {
                return Err(ReadFailure::Paging(format!(
                    "no last page after {MAX_PAGES} pages with {posts} posts: use larger pages"
                )));
            }
            let left = max_posts - posts;
            page = fetch_page(client, username, id, left, not_before, Some(cursor))
                .await
                .map_err(|reason| ReadFailure::Paging(format!("page {}: {reason}", pages + 1)))?;
        }
    }

    fn add_page(&mut self, page: &Value, seen_ids: &mut BTreeSet<String>, not_before: NaiveDate) {
        self.page_count += 1;
        let (posts, older_posts) = (self.posts.len(), self.older_posts);
        self.has_other_profiles |= coerce::id(page.pointer("/profile/id")) != self.id();
        let rows = page.get("posts").and_then(Value::as_array).into_iter().flatten();
        for post in rows.filter_map(Value::as_object) {
            if let Some(id) = coerce::id(post.get("id"))
                && !seen_ids.insert(id.clone())
            {
                self.duplicate_ids.insert(id);
            }
            let time = coerce::time(post.get("create_time"));
            self.older_posts += usize::from(time.is_some_and(|time| time.date_naive() < not_before));
            self.posts.push(post.clone());
        }
        let added = self.posts.len() - posts;
        if added > 0 && self.older_posts - older_posts == added {
            self.older_pages += 1;
            self.last_older_posts += added;
        } else if added > 0 {
            self.has_unread_posts |= self.last_older_posts >= MIN_OLDER_POSTS;
            self.last_older_posts = 0;
        }
    }

    /// Returns the platform's id of the account.
    pub(super) fn id(&self) -> Option<String> {
        coerce::id(self.profile.get("id"))
    }

    pub(super) fn post_ids(&self) -> BTreeSet<String> {
        self.posts.iter().filter_map(|post| coerce::id(post.get("id"))).collect()
    }

    /// Returns id and creation time of the posts that have both.
    pub(super) fn create_times(&self) -> Vec<(String, DateTime<Utc>)> {
        let id_and_time = |post: &Map<String, Value>| {
            Some((coerce::id(post.get("id"))?, coerce::time(post.get("create_time"))?))
        };
        self.posts.iter().filter_map(id_and_time).collect()
    }
}

async fn fetch_page(
    client: &mut ValidatingClient<'_>,
    username: &str,
    id: Option<&str>,
    max_posts: usize,
    not_before: NaiveDate,
    cursor: Option<String>,
) -> Result<Value, String> {
    let mut query = depth_query(max_posts, not_before).to_vec();
    query.extend(id.map(|id| ("id", id.to_owned())));
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    match client.get(&["accounts", username], &query, ACCOUNT_SCHEMA).await {
        ContractResponse::Data(page) => Ok(page),
        other => Err(other.describe()),
    }
}

pub(super) fn depth_query(max_posts: usize, not_before: NaiveDate) -> [(&'static str, String); 2] {
    [("max_posts", max_posts.to_string()), ("not_before", not_before.to_string())]
}

/// Returns a day before every post.
pub(super) fn first_day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2010, 1, 1).unwrap_or_default()
}
