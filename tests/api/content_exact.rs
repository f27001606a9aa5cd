//! Compares the list of content with a filter and a sort in memory, over random videos of both kinds.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use harness::{TestApi, rebuild_derived_tables};
use reqwest::Url;
use sqlx::PgPool;
use tidemark::model::hashtag;
use tidemark::model::text::fold_case;
use tidemark::store::records::content::{self, Candidate, ContentFilter};
use tidemark::store::records::hashtags;
use tidemark::store::records::keys::NewKey;
use uuid::Uuid;

use super::paging_exact::Random;

const SORTS: [&str; 5] = ["create_time", "view_count", "like_count", "play_count", "added_at"];
const DIRECTIONS: [&str; 2] = ["desc", "asc"];
const FILTERS: usize = 14;
/// The scanned start of a range is shorter, so that caption blocks are searched too.
const VIDEOS: usize = 1_100;

#[derive(Debug, Clone, sqlx::FromRow)]
struct Row {
    id: Uuid,
    internal_id: i64,
    platform: String,
    account_id: Option<Uuid>,
    creator_id: Option<Uuid>,
    category: Option<String>,
    /// A tag of the account.
    team: Option<String>,
    is_tracked: bool,
    is_active: bool,
    is_unavailable: bool,
    media_type: Option<String>,
    description: Option<String>,
    create_time: Option<DateTime<Utc>>,
    added_at: DateTime<Utc>,
    view_count: i64,
    like_count: i64,
    play_count: i64,
}

impl Row {
    fn candidate(&self, rank: i64) -> Candidate {
        Candidate { internal_id: self.internal_id, rank }
    }

    fn key(&self, sort: &str) -> Option<i64> {
        match sort {
            "create_time" => self.create_time.map(|time| time.timestamp_micros()),
            "added_at" => Some(self.added_at.timestamp_micros()),
            "view_count" => Some(self.view_count),
            "like_count" => Some(self.like_count),
            _ => Some(self.play_count),
        }
    }
}

/// Null last, ties by id in the direction of the sort.
fn compare_rows(sort: &str, direction: &str, a: &Row, b: &Row) -> Ordering {
    let (left, right) = (a.key(sort), b.key(sort));
    let ascending = (left, a.id).cmp(&(right, b.id));
    let directed = if direction == "asc" { ascending } else { ascending.reverse() };
    left.is_none().cmp(&right.is_none()).then(directed)
}

/// A value of a parameter, and the rows that match it.
struct Condition {
    name: &'static str,
    value: String,
    matches: Box<dyn Fn(&Row) -> bool + Send + Sync>,
}

impl Condition {
    fn new(
        name: &'static str,
        value: impl ToString,
        matches: impl Fn(&Row) -> bool + Send + Sync + 'static,
    ) -> Self {
        Condition { name, value: value.to_string(), matches: Box::new(matches) }
    }

    /// A random value of the parameter of this number; values mostly come from a row, so that something matches.
    fn random(number: usize, random: &mut Random, rows: &[Row]) -> Self {
        let row = random.pick(rows).clone();
        match number {
            0 => {
                Condition::new("platform", row.platform.clone(), move |other| other.platform == row.platform)
            }
            1 => Condition::account(random, rows),
            2 => {
                let creator =
                    rows.iter().cycle().skip(random.below(99)).find_map(|row| row.creator_id).unwrap();
                Condition::new("creator_id", creator, move |row| row.creator_id == Some(creator))
            }
            3 => {
                let category = row.category.unwrap_or_default();
                Condition::new("category", category.clone(), move |row| {
                    row.category == Some(category.clone())
                })
            }
            4 if random.below(2) == 0 => Condition::new("kind", "tracked", |row| row.is_tracked),
            4 => Condition::new("kind", "discovered", |row| row.account_id.is_some()),
            5 => Condition::new("is_active", row.is_active, move |other| other.is_active == row.is_active),
            6 => Condition::new("is_unavailable", row.is_unavailable, move |other| {
                other.is_unavailable == row.is_unavailable
            }),
            7 => Condition::media_types(random),
            8 => Condition::posted("posted_after", random, rows),
            9 => Condition::posted("posted_before", random, rows),
            10 => {
                Condition::new("min_views", row.view_count, move |other| other.view_count >= row.view_count)
            }
            11 => Condition::hashtags(random),
            12 => {
                let team = row.team.unwrap_or_default();
                Condition::new("metadata.team", team.clone(), move |row| row.team == Some(team.clone()))
            }
            _ => Condition::caption(random, &row),
        }
    }

    fn account(random: &mut Random, rows: &[Row]) -> Self {
        let account = rows.iter().cycle().skip(random.below(99)).find_map(|row| row.account_id).unwrap();
        Condition::new("account_id", account, move |row| row.account_id == Some(account))
    }

    fn media_types(random: &mut Random) -> Self {
        let types: Vec<_> = (0..=random.below(3))
            .map(|_| *random.pick(&["VIDEO", "IMAGE", "carousel album", "none"]))
            .collect();
        Condition::new("media_type", types.join(","), move |row| {
            row.media_type.as_ref().is_some_and(|media_type| types.contains(&media_type.as_str()))
        })
    }

    /// Some hashtags, in any form.
    fn hashtags(random: &mut Random) -> Self {
        let tags: Vec<_> =
            (0..=random.below(2)).map(|_| *random.pick(&["#TAG0", "tag1", "Tag2", "none"])).collect();
        let value = tags.join(",");
        Condition::new("hashtag", value, move |row| {
            let caption = row.description.as_deref().unwrap_or_default().to_lowercase();
            tags.iter()
                .any(|tag| caption.contains(&format!(" #{}", tag.to_lowercase().trim_start_matches('#'))))
        })
    }

    /// A day, or the very time of a video.
    fn posted(name: &'static str, random: &mut Random, rows: &[Row]) -> Self {
        let time = rows.iter().cycle().skip(random.below(99)).find_map(|row| row.create_time).unwrap();
        let is_after = name == "posted_after";
        if random.below(2) == 0 {
            let day = time.date_naive();
            return Condition::new(name, day, move |row| {
                let posted = row.create_time.map(|time| time.date_naive());
                posted.is_some_and(|posted| if is_after { posted >= day } else { posted <= day })
            });
        }
        Condition::new(name, time.to_rfc3339_opts(SecondsFormat::AutoSi, true), move |row| {
            row.create_time.is_some_and(|posted| if is_after { posted >= time } else { posted <= time })
        })
    }

    fn caption(random: &mut Random, row: &Row) -> Self {
        let caption: Vec<char> = row.description.as_deref().unwrap_or("absent").trim().chars().collect();
        let start = random.below(caption.len().max(1));
        let q: String = caption.iter().skip(start).take(1 + random.below(3)).collect();
        let q = if q.trim().is_empty() { "absent".to_owned() } else { q.trim().to_owned() };
        let folded = fold_case(&q);
        Condition::new("q", q, move |row| {
            fold_case(row.description.as_deref().unwrap_or_default()).contains(&folded)
        })
    }
}

/// Creates two creators with two accounts each, of both platforms and two categories, and an account with neither; one of
/// these has no tag. One of the categories, and one of the tags, has so many other accounts that its videos are found in the
/// range of the organization.
async fn create_accounts(pg: &PgPool, organization: Uuid) -> Vec<Uuid> {
    sqlx::query_scalar(
        "with creators as (
             insert into creators (id, organization_id, name, name_key, added_at, updated_at)
             select gen_random_uuid(), $1, 'c' || n, 'c' || n, now(), now() from generate_series(0, 1) n
             returning id, name)
         insert into accounts (id, organization_id, platform, username, creator_id, category, metadata, added_at, updated_at)
         select gen_random_uuid(), $1, (array['tiktok', 'instagram'])[n % 2 + 1], 'a' || n,
             (select id from creators where name = 'c' || n / 2),
             case when n <> 4 then case when n in (0, 1, 2) then 'a, b' else 'Ä' end end,
             case when n <> 3 then jsonb_build_object('team', case when n in (0, 4) then 'ö & co' else 'x' end) else '{}' end,
             now(), now()
         from generate_series(0, 120) n
         returning id",
    )
    .bind(organization)
    .fetch_all(pg)
    .await
    .unwrap()
    .into_iter()
    .take(5)
    .collect()
}

/// Times on three days, some at their very start or end; many ties, and some nulls.
fn random_times(random: &mut Random) -> Vec<Option<DateTime<Utc>>> {
    let start: DateTime<Utc> = "2026-01-05T00:00:00Z".parse().unwrap();
    let time = |random: &mut Random| {
        let hours = TimeDelta::hours(random.below(72) as i64);
        let before = TimeDelta::microseconds(random.below(2) as i64);
        (random.below(5) > 0).then_some(start + hours - before)
    };
    (0..VIDEOS).map(|_| time(random)).collect()
}

async fn create_videos(pg: &PgPool, organization: Uuid, random: &mut Random) -> Vec<Row> {
    let accounts = create_accounts(pg, organization).await;
    let captions: Vec<_> = (0..VIDEOS).map(|_| tagged_caption(random)).collect();
    let keys: Vec<_> = captions.iter().map(|caption| caption.as_deref().map(fold_case)).collect();
    let on_accounts: Vec<_> =
        (0..VIDEOS).map(|_| (random.below(4) > 0).then(|| *random.pick(&accounts))).collect();
    let numbers: Vec<_> = (0..VIDEOS).map(|_| random.below(900_000) as i64).collect();
    sqlx::query(
        "insert into videos (id, subject_id, organization_id, platform, external_id, account_id, is_tracked, is_active,
             is_unavailable, description, description_key, media_type, create_time, added_at, tracked_at, updated_at,
             view_count, like_count, play_count, metadata)
         select gen_random_uuid(), 0, $1, coalesce(a.platform, (array['tiktok', 'instagram'])[number % 2 + 1]),
             gen_random_uuid()::text, account, account is null or number % 3 = 0, number % 5 > 0, number % 7 = 0,
             caption, key, (array['VIDEO', 'IMAGE', 'carousel album'])[number % 4 + 1], time,
             '2026-02-01'::timestamptz + number % 50 * interval '1 hour',
             case when account is null or number % 3 = 0 then '2026-03-01'::timestamptz end, now(), number % 40, number,
             number % 3, jsonb_build_object('team', 'x')
         from unnest($2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::bigint[])
             as x(caption, key, account, time, number)
         left join accounts a on a.id = account",
    )
    .bind(organization)
    .bind(captions)
    .bind(keys)
    .bind(on_accounts)
    .bind(random_times(random))
    .bind(numbers)
    .execute(pg)
    .await
    .unwrap();
    rebuild_derived_tables(pg, organization).await;
    fill_hashtags(pg, organization).await;
    sqlx::query_as("select v.*, a.creator_id, a.category, a.metadata ->> 'team' as team from videos v left join accounts a on a.id = v.account_id where v.organization_id = $1")
        .bind(organization)
        .fetch_all(pg)
        .await
        .unwrap()
}

fn tagged_caption(random: &mut Random) -> Option<String> {
    let caption = random.caption();
    match random.below(12) {
        tag @ 0..3 => Some(format!("{} #Tag{tag}", caption.unwrap_or_default())),
        _ => caption,
    }
}

/// As housekeeping does for rows that an earlier version inserted.
async fn fill_hashtags(pg: &PgPool, organization: Uuid) {
    let missing = "select exists (select from videos where organization_id = $1 and hashtags is null)";
    while sqlx::query_scalar(missing).bind(organization).fetch_one(pg).await.unwrap() {
        hashtags::fill_missing(pg, 5_000).await.unwrap();
    }
}

/// A request for the whole list, page by page.
struct Walk<'a> {
    conditions: &'a [Condition],
    sort: &'a str,
    direction: &'a str,
    limit: usize,
}

impl Walk<'_> {
    fn query(&self) -> String {
        let mut url = Url::parse("http://localhost").unwrap();
        let conditions = self.conditions.iter().map(|Condition { name, value, .. }| (*name, value.as_str()));
        url.query_pairs_mut().extend_pairs(conditions);
        let mut query = url.query().unwrap_or_default().to_owned();
        let (sort, direction, limit) = (self.sort, self.direction, self.limit);
        write!(query, "&order_by={sort}&order_direction={direction}&limit={limit}").unwrap();
        query
    }

    fn expected<'r>(&self, rows: &'r [Row]) -> Vec<&'r Row> {
        let matches = |row: &&Row| self.conditions.iter().all(|condition| (condition.matches)(row));
        let mut expected: Vec<_> = rows.iter().filter(matches).collect();
        expected.sort_by(|a, b| compare_rows(self.sort, self.direction, a, b));
        expected
    }

    /// Compares all pages with the rows. Returns whether there were any.
    async fn compare(&self, api: &TestApi, rows: &[Row]) -> bool {
        let (query, expected) = (self.query(), self.expected(rows));
        let mut cursor = String::new();
        let mut found = Vec::new();
        loop {
            let page = api.get(&format!("/v2/content?{query}&include_total=true{cursor}")).await.ok(200);
            assert_eq!(page.integer("/pagination/total_count"), expected.len() as i64, "{query}");
            let ids = page.list("/data").iter().map(|row| row["id"].as_str().unwrap().to_owned());
            found.extend(ids);
            match page.at("/pagination/next_cursor").as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
            assert_eq!(found.len() % self.limit, 0, "{query}: only the last page has fewer rows");
        }
        let expected: Vec<_> = expected.iter().map(|row| row.id.to_string()).collect();
        assert_eq!(found, expected, "{query}");
        !expected.is_empty()
    }
}

async fn start() -> (TestApi, Random, Vec<Row>) {
    let mut api = TestApi::start().await;
    let unlimited = NewKey { rate_limit: Some(i32::MAX), ..NewKey::named("walk") };
    api.organization.key = api.create_key(unlimited).await;
    let mut random = Random(0x636f_6e74_656e_7421);
    let rows = create_videos(api.pg(), api.id, &mut random).await;
    (api, random, rows)
}

#[tokio::test]
async fn content_matches_each_filter_and_sort() {
    let (api, mut random, rows) = start().await;
    for (sort, direction) in SORTS.iter().flat_map(|sort| DIRECTIONS.map(|direction| (*sort, direction))) {
        Walk { conditions: &[], sort, direction, limit: 200 }.compare(&api, &rows).await;
        Walk { conditions: &[], sort, direction, limit: 47 }.compare(&api, &rows).await;
    }
    for number in 0..FILTERS {
        let mut matched = 0;
        for sort in SORTS {
            let conditions = [Condition::random(number, &mut random, &rows)];
            let direction = random.pick(&DIRECTIONS);
            matched += usize::from(
                Walk { conditions: &conditions, sort, direction, limit: 90 }.compare(&api, &rows).await,
            );
        }
        assert!(matched > 0, "filter {number} matches something");
    }
}

#[tokio::test]
async fn content_matches_combined_filters() {
    let (api, mut random, rows) = start().await;
    let mut matched = 0;
    for _ in 0..120 {
        let numbers: BTreeSet<_> = (0..2 + random.below(3)).map(|_| random.below(FILTERS)).collect();
        let conditions: Vec<_> =
            numbers.into_iter().map(|number| Condition::random(number, &mut random, &rows)).collect();
        let (sort, direction) = (random.pick(&SORTS), random.pick(&DIRECTIONS));
        let limit = *random.pick(&[20, 70, 200]);
        let walk = Walk { conditions: &conditions, sort, direction, limit };
        matched += usize::from(walk.compare(&api, &rows).await);
    }
    assert!(matched > 30, "{matched} of 120 combinations match something");
}

#[tokio::test]
async fn matching_ids_and_rows_agree_with_the_filter() {
    let (api, mut random, rows) = start().await;
    let (pg, organization) = (api.pg(), api.id);
    for number in 0..FILTERS {
        let conditions = [Condition::random(number, &mut random, &rows)];
        let walk = Walk { conditions: &conditions, sort: "view_count", direction: "asc", limit: 200 };
        let mut expected = walk.expected(&rows);
        expected.sort_by_key(|row| row.id);
        let filter = parse_filter(&conditions[0]);
        let limit = rows.len() as i64;

        let by_id: Vec<_> = expected.iter().map(|row| row.id).collect();
        let found = content::list_by_id(pg, organization, &filter, None, limit).await.unwrap();
        assert_eq!(found.iter().map(|row| row.id).collect::<Vec<_>>(), by_id, "{filter:?}");
        let after = by_id.get(by_id.len() / 3).copied();
        let found = content::list_by_id(pg, organization, &filter, after, 5).await.unwrap();
        let rest: Vec<_> = by_id.iter().filter(|id| after.is_none_or(|after| **id > after)).take(5).collect();
        assert_eq!(found.iter().map(|row| &row.id).collect::<Vec<_>>(), rest, "{filter:?}");

        let matching: BTreeSet<_> = expected.iter().map(|row| row.internal_id).collect();
        let found = content::list_matching(pg, organization, &filter, limit).await.unwrap();
        assert_eq!(found.iter().map(|row| row.internal_id).collect::<BTreeSet<_>>(), matching, "{filter:?}");
        assert_eq!(found.len(), matching.len(), "{filter:?}");
        let few = content::list_matching(pg, organization, &filter, 3).await.unwrap();
        assert!(
            few.len() == matching.len().min(3) && few.iter().all(|row| matching.contains(&row.internal_id)),
            "{filter:?}"
        );

        // Candidates with the same gain, of which one does not exist.
        let mut among: Vec<_> = rows.iter().filter(|_| random.below(3) > 0).collect();
        among.sort_by_key(|row| row.id);
        let mut candidates: Vec<_> = among.iter().map(|row| row.candidate(7)).collect();
        candidates[0].internal_id = -1;
        among.remove(0);
        among.retain(|row| matching.contains(&row.internal_id));
        for after in [None, Some((8, Uuid::max())), Some((7, rows[9].id)), Some((6, Uuid::nil()))] {
            let found = content::select_candidates(pg, organization, &filter, &candidates, after, 300).await;
            let follows = |row: &&&Row| after.is_none_or(|(gain, id)| gain > 7 || gain == 7 && row.id > id);
            let expected: Vec<_> = among.iter().filter(follows).take(300).map(|row| row.id).collect();
            let found: Vec<_> = found.unwrap().iter().map(|row| row.identity.id).collect();
            assert_eq!(found, expected, "{filter:?} after {after:?}");
        }
    }
}

/// The filter of one condition, as the API reads it.
fn parse_filter(Condition { name, value, .. }: &Condition) -> ContentFilter {
    use tidemark::model::content::ContentKind::{Discovered, Tracked};
    use tidemark::model::date_or_time::DateOrTime;
    let mut filter = ContentFilter::default();
    match *name {
        "platform" => filter.platform = value.parse().ok(),
        "account_id" => filter.account_id = value.parse().ok(),
        "creator_id" => filter.creator_id = value.parse().ok(),
        "category" => filter.labels.category = Some(value.clone()),
        "metadata.team" => drop(filter.labels.metadata.insert("team".to_owned(), value.clone())),
        "kind" => filter.kind = Some(if value == "tracked" { Tracked } else { Discovered }),
        "is_active" => filter.is_active = value.parse().ok(),
        "is_unavailable" => filter.is_unavailable = value.parse().ok(),
        "media_type" => filter.media_type = Some(value.split(',').map(str::to_owned).collect()),
        "posted_after" => filter.posted_after = DateOrTime::parse(value),
        "posted_before" => filter.posted_before = DateOrTime::parse(value),
        "min_views" => filter.min_views = value.parse().ok(),
        "hashtag" => filter.hashtag = Some(value.split(',').filter_map(hashtag::parse).collect()),
        _ => filter.q = Some(value.clone()),
    }
    assert_ne!(filter, ContentFilter::default(), "{name}={value}");
    filter
}
