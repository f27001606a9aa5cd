//! Collections: named sets of posts, by rule, by hand, or both.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use uuid::Uuid;

use super::account::{Metadata, metadata_schema};
use super::content::ContentKind;
use super::date_or_time::DateOrTime;
use super::hashtag;
use super::limits::{
    MAX_CATEGORY_CHARS, MAX_HASHTAG_CHARS, MAX_HASHTAGS, MAX_MEDIA_TYPE_CHARS, MAX_MEDIA_TYPES,
    MAX_METADATA_FILTERS, MAX_QUERY_CHARS, MAX_RULE_IDS,
};
use super::payout::Payout;
use super::platform::Platform;
use super::text::search_key;

/// Which posts are in a collection: those for which every condition holds. Without conditions all are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// Platform.
    pub platform: Option<Platform>,
    /// Accounts, of which one matches.
    #[schemars(length(min = 1, max = MAX_RULE_IDS))]
    pub account_ids: Option<Vec<Uuid>>,
    /// Creators of the account, of which one matches.
    #[schemars(length(min = 1, max = MAX_RULE_IDS))]
    pub creator_ids: Option<Vec<Uuid>>,
    /// Category of the account (exact match).
    #[schemars(length(max = MAX_CATEGORY_CHARS))]
    pub category: Option<String>,
    /// Tags of the account, which has to have all of them.
    #[serde(default)]
    #[schemars(schema_with = "metadata_schema", extend("maxProperties" = MAX_METADATA_FILTERS))]
    pub metadata: Metadata,
    /// Hashtags of the caption, of which one matches. Case and a leading `#` do not matter.
    #[serde(default)]
    #[schemars(schema_with = "rule_hashtags_schema")]
    pub hashtags: Option<Vec<String>>,
    /// Substring of the caption, ignoring case.
    #[schemars(length(min = 1, max = MAX_QUERY_CHARS), extend("x-trimmed" = true))]
    pub q: Option<String>,
    /// Media types, as the platform reports them, of which one matches exactly.
    #[schemars(length(min = 1, max = MAX_MEDIA_TYPES), inner(length(min = 1, max = MAX_MEDIA_TYPE_CHARS)))]
    pub media_types: Option<Vec<String>>,
    /// Kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either.
    pub kind: Option<ContentKind>,
    /// Earliest `create_time`: a date, which includes its whole UTC day, or a time.
    pub posted_after: Option<DateOrTime>,
    /// Latest `create_time`: a date, which includes its whole UTC day, or a time.
    pub posted_before: Option<DateOrTime>,
    /// Lowest `view_count`.
    #[schemars(range(min = 0, max = i64::MAX))]
    pub min_views: Option<i64>,
}

fn rule_hashtags_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "null"],
        "minItems": 1,
        "maxItems": MAX_HASHTAGS,
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_HASHTAG_CHARS, "x-hashtag": true},
    })
}

/// What a rule compares of a post.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Post {
    pub platform: Platform,
    pub description: Option<String>,
    pub media_type: Option<String>,
    pub create_time: Option<DateTime<Utc>>,
    pub view_count: i64,
    pub is_tracked: bool,
    pub account_id: Option<Uuid>,
    pub creator_id: Option<Uuid>,
    pub category: Option<String>,
    /// Tags of the account.
    #[sqlx(json(nullable))]
    pub metadata: Option<Metadata>,
}

/// How a post was put into a collection, or kept out of it, by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "text", rename_all = "lowercase")]
pub enum Mark {
    /// In the collection, whatever the rule.
    Included,
    /// Not in the collection, whatever the rule.
    Excluded,
}

impl Rule {
    /// The search key that a caption has to contain; none if `q` is nothing but variation selectors.
    pub fn search_key(&self) -> Option<String> {
        self.q.as_deref().map(search_key).filter(|key| !key.is_empty())
    }

    /// Whether a condition is on the account of a post.
    pub fn has_accounts(&self) -> bool {
        self.account_ids.is_some()
            || self.creator_ids.is_some()
            || self.category.is_some()
            || !self.metadata.is_empty()
    }

    /// Whether all conditions hold. `store::records::collections` has the same as SQL, and a test compares both.
    pub fn matches(&self, post: &Post) -> bool {
        let account = |ids: &Option<Vec<Uuid>>, id: Option<Uuid>| {
            ids.as_ref().is_none_or(|ids| id.is_some_and(|id| ids.contains(&id)))
        };
        let has_tag = |(key, value): (&String, &String)| {
            post.metadata.as_ref().is_some_and(|tags| tags.get(key) == Some(value))
        };
        let caption = post.description.as_deref().unwrap_or_default();
        self.platform.is_none_or(|platform| post.platform == platform)
            && account(&self.account_ids, post.account_id)
            && account(&self.creator_ids, post.creator_id)
            && self.category.as_ref().is_none_or(|category| post.category.as_ref() == Some(category))
            && self.metadata.iter().all(has_tag)
            && self
                .hashtags
                .as_ref()
                .is_none_or(|tags| hashtag::hashtags(caption).iter().any(|tag| tags.contains(tag)))
            && self.search_key().is_none_or(|key| search_key(caption).contains(&key))
            && self
                .media_types
                .as_ref()
                .is_none_or(|types| post.media_type.as_ref().is_some_and(|one| types.contains(one)))
            && match self.kind {
                None => true,
                Some(ContentKind::Discovered) => post.account_id.is_some(),
                Some(ContentKind::Tracked) => post.is_tracked,
            }
            && self.posted_after.is_none_or(|after| post.create_time.is_some_and(|at| at >= after.first()))
            && self.posted_before.is_none_or(|before| post.create_time.is_some_and(|at| at <= before.last()))
            && self.min_views.is_none_or(|views| post.view_count >= views)
    }
}

/// Whether a post is in a collection with a rule, or none, given its mark.
pub fn contains(rule: Option<&Rule>, mark: Option<Mark>, post: &Post) -> bool {
    match mark {
        Some(mark) => mark == Mark::Included,
        None => rule.is_some_and(|rule| rule.matches(post)),
    }
}

/// A named set of posts. Membership is evaluated when it is read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema, sqlx::FromRow)]
#[schemars(rename = "Collection")]
pub struct CollectionRecord {
    /// Collection id.
    pub id: Uuid,
    /// Always `collection`.
    #[sqlx(skip)]
    pub r#type: CollectionType,
    /// Name, unique in the organization whatever its case.
    #[schemars(example = &"Summer campaign")]
    pub name: String,
    /// Description.
    #[schemars(example = &"Posts of the four ambassadors")]
    pub description: Option<String>,
    /// Posts that are in the collection by themselves; null for none. Conditions that are not given are absent.
    #[sqlx(json(nullable))]
    #[schemars(example = json!({"hashtags": ["surf"], "posted_after": "2026-02-01"}))]
    pub rule: Option<ShownRule>,
    /// How posts are paid; null if they are not.
    #[sqlx(json(nullable))]
    pub payout: Option<ShownPayout>,
    /// Number of posts that are included by hand.
    #[schemars(example = 3)]
    pub included_count: i64,
    /// Number of posts that are excluded by hand.
    #[schemars(example = 1)]
    pub excluded_count: i64,
    /// Time at which the collection was created.
    pub added_at: DateTime<Utc>,
    /// Time of the latest change of the record.
    pub updated_at: DateTime<Utc>,
}

/// The constant `type` of a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CollectionType {
    #[default]
    Collection,
}

/// A post that is marked by hand.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CollectionMark {
    /// Always `collection_mark`.
    pub r#type: CollectionMarkType,
    /// Collection id.
    pub collection_id: Uuid,
    /// Video id.
    pub video_id: Uuid,
    /// Whether the post is always or never in the collection.
    #[schemars(example = Mark::Included)]
    pub state: Mark,
}

/// The constant `type` of a mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CollectionMarkType {
    #[default]
    CollectionMark,
}

/// A rule as responses show it: without the conditions that are not given.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ShownRule(pub Rule);

impl Serialize for ShownRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut conditions = json!(self.0);
        if let Some(conditions) = conditions.as_object_mut() {
            conditions.retain(|_, value| !value.is_null() && *value != json!({}));
        }
        conditions.serialize(serializer)
    }
}

impl JsonSchema for ShownRule {
    fn schema_name() -> Cow<'static, str> {
        "CollectionRule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = response_schema(Rule::json_schema(generator));
        schema.remove("required");
        // What is absent has no value.
        if let Some(conditions) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            conditions
                .values_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|one| drop(one.remove("default")));
        }
        schema
    }
}

/// A payout as responses show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShownPayout(pub Payout);

impl JsonSchema for ShownPayout {
    fn schema_name() -> Cow<'static, str> {
        "CollectionPayout".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        response_schema(Payout::json_schema(generator))
    }
}

/// Removes what only requests need from the schema of a type that they and responses have.
pub(super) fn response_schema(schema: Schema) -> Schema {
    fn clean(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|keyword, _| !keyword.starts_with("x-"));
                members.values_mut().for_each(clean);
            }
            Value::Array(items) => items.iter_mut().for_each(clean),
            _ => {}
        }
    }
    let mut value = schema.to_value();
    clean(&mut value);
    Schema::try_from(value).unwrap_or_default()
}

/// Deserializes a field that is not absent, so that null is `Some(None)`.
pub fn deserialize_some<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}
