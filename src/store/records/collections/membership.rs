//! Which posts are in a collection: the definition that lists, rankings, exports and figures share. `model::collection` has the
//! same as a predicate.

use sqlx::types::Json;
use sqlx::{FromRow, PgExecutor, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::model::account::AccountLabels;
use crate::model::collection::Rule;
use crate::model::content::ContentKind;
use crate::model::payout::Payout;
use crate::store::Error;
use crate::store::postgres::RecordsQuery;
use crate::store::postgres::keyset::{push_equal, push_labels};
use crate::store::records::hashtags;
use crate::store::records::videos::caption_blocks;

/// What decides which posts are in a collection, besides its marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    pub organization: Uuid,
    pub collection: Uuid,
    pub rule: Option<Rule>,
    has_included: bool,
    /// Whether posts are excluded by hand.
    pub has_excluded: bool,
    pub payout: Option<Payout>,
}

#[derive(FromRow)]
struct MembershipRow {
    exists: bool,
    rule: Option<Json<Rule>>,
    payout: Option<Json<Payout>>,
    has_included: bool,
    has_excluded: bool,
}

/// Finds the definition of a collection. Fails if the organization lacks it.
pub fn find(organization: Uuid, collection: Uuid) -> RecordsQuery<Membership> {
    let mut query = QueryBuilder::new(
        "select g.id is not null as exists, g.rule, g.payout,
             exists(select from collection_marks where collection_id = g.id and state = 'included') as has_included,
             exists(select from collection_marks where collection_id = g.id and state = 'excluded') as has_excluded
         from (select ",
    );
    query
        .push_bind(collection)
        .push("::uuid as id) wanted left join collections g on g.id = wanted.id and g.organization_id = ");
    query.push_bind(organization);
    RecordsQuery::row(query).and_then(move |row: MembershipRow| {
        if !row.exists {
            return Err(Error::NotFound("collection"));
        }
        Ok(Membership {
            organization,
            collection,
            rule: row.rule.map(|Json(rule)| rule),
            has_included: row.has_included,
            has_excluded: row.has_excluded,
            payout: row.payout.map(|Json(payout)| payout),
        })
    })
}

impl Membership {
    /// Pushes the condition that a video `v` of the organization is in the collection.
    pub fn push_condition(&self, query: &mut QueryBuilder<Postgres>) {
        match (&self.rule, self.has_included) {
            (None, false) => drop(query.push("false")),
            (Some(rule), false) => {
                query.push("(");
                self.push_rule(query, rule);
                query.push(")");
            }
            (None, true) => self.push_marked(query, "in", "included"),
            (Some(rule), true) => {
                query.push("((");
                self.push_rule(query, rule);
                query.push(") or ");
                self.push_marked(query, "in", "included");
                query.push(")");
            }
        }
        if self.has_excluded {
            query.push(" and ");
            self.push_marked(query, "not in", "excluded");
        }
    }

    /// Pushes a table of the videos that are in the collection, with some columns: those of the rule, by the index that suits
    /// it, and those included by hand.
    pub fn push_videos(&self, query: &mut QueryBuilder<Postgres>, columns: &str) {
        query.push("(select ").push(columns).push(" from ");
        match &self.rule {
            Some(rule) if rule.has_accounts() => {
                // With a condition on their organization, too, the planner would read an index of all its videos.
                query.push("accounts a join videos v on v.account_id = a.id where ");
                self.push_accounts(query, rule);
                query.push(" and (");
                self.push_posts(query, rule);
                query.push(")");
            }
            Some(rule) => {
                query.push("videos v where v.organization_id = ").push_bind(self.organization).push(" and (");
                self.push_posts(query, rule);
                query.push(")");
            }
            None => drop(query.push("videos v where false")),
        }
        if let Some(key) = self.rule.as_ref().and_then(Rule::search_key) {
            caption_blocks(self.organization).push_condition(query, &key);
        }
        if self.has_excluded {
            query.push(" and ");
            self.push_marked(query, "not in", "excluded");
        }
        if self.has_included {
            query.push(" union all select ").push(columns).push(" from videos v where v.organization_id = ");
            query.push_bind(self.organization);
            query.push(" and v.id = any(array(select video_id from collection_marks where state = 'included' and collection_id = ");
            query.push_bind(self.collection).push("))");
            if let Some(rule) = &self.rule {
                query.push(" and (");
                self.push_rule(query, rule);
                query.push(") is not true");
            }
        }
        query.push(")");
    }

    /// Pushes a table of the videos that are excluded by hand, with some columns.
    pub fn push_excluded(&self, query: &mut QueryBuilder<Postgres>, columns: &str) {
        query.push("(select ").push(columns).push(" from videos v where v.organization_id = ");
        query.push_bind(self.organization).push(" and ");
        self.push_marked(query, "in", "excluded");
        query.push(")");
    }

    /// A video has one mark at most, so an included one is not excluded.
    pub(super) fn push_marked(&self, query: &mut QueryBuilder<Postgres>, operator: &str, state: &str) {
        query.push(format_args!(
            "v.id {operator} (select video_id from collection_marks where state = '{state}' and collection_id = "
        ));
        query.push_bind(self.collection).push(")");
    }

    fn push_rule(&self, query: &mut QueryBuilder<Postgres>, rule: &Rule) {
        self.push_posts(query, rule);
        if rule.has_accounts() {
            query.push(" and v.account_id = any(array(select a.id from accounts a where ");
            self.push_accounts(query, rule);
            query.push("))");
        }
    }

    /// Pushes the conditions on a video `v` itself.
    fn push_posts(&self, query: &mut QueryBuilder<Postgres>, rule: &Rule) {
        query.push(match rule.kind {
            None => "true",
            Some(ContentKind::Discovered) => "v.account_id is not null",
            Some(ContentKind::Tracked) => "v.is_tracked",
        });
        push_equal(query, "v.platform", rule.platform);
        if let Some(tags) = &rule.hashtags {
            query.push(" and ");
            hashtags::push_condition(query, self.organization, tags);
        }
        if let Some(key) = rule.search_key() {
            query.push(" and strpos(v.description_key, ").push_bind(key).push(") > 0");
        }
        if let Some(media_types) = &rule.media_types {
            query.push(" and v.media_type = any(").push_bind(media_types.clone()).push(")");
        }
        if let Some(after) = rule.posted_after {
            query.push(" and v.create_time >= ").push_bind(after.first());
        }
        if let Some(before) = rule.posted_before {
            query.push(" and v.create_time <= ").push_bind(before.last());
        }
        if let Some(views) = rule.min_views {
            query.push(" and v.view_count >= ").push_bind(views);
        }
    }

    /// Pushes the conditions on the account `a` of a video.
    fn push_accounts(&self, query: &mut QueryBuilder<Postgres>, rule: &Rule) {
        let Rule { account_ids, creator_ids, category, metadata, .. } = rule;
        let labels = AccountLabels { category: category.clone(), metadata: metadata.clone() };
        query.push("a.organization_id = ").push_bind(self.organization);
        for (column, ids) in [("a.id", account_ids), ("a.creator_id", creator_ids)] {
            if let Some(ids) = ids {
                query.push(format_args!(" and {column} = any(")).push_bind(ids.clone()).push(")");
            }
        }
        push_labels(query, "a", &labels);
    }
}

/// Reads the definition of a collection. Fails if the organization lacks it.
pub async fn get(pg: impl PgExecutor<'_>, organization: Uuid, collection: Uuid) -> Result<Membership, Error> {
    find(organization, collection).fetch_from(pg).await
}
