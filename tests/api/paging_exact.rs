//! Compares pages with a model that filters and sorts in memory: random records with ties and nulls, every sort, direction
//! and filter, from random positions, with inserts, updates and deletes in between.

use std::cmp::Ordering;

use chrono::{DateTime, TimeDelta, Utc};
use harness::{TestApi, assert_derived_tables, rebuild_derived_tables, wait_until};
use sqlx::PgPool;
use tidemark::model::text::fold_case;
use tidemark::model::video::VideoType;
use tidemark::store::Write;
use tidemark::store::postgres::keyset::{KeysetPosition, PageRequest, SortDirection, SortKey};
use tidemark::store::records::accounts::change;
use tidemark::store::records::videos::{self, VideoFilter, VideoSort};
use tidemark::store::write::Post;
use uuid::Uuid;

/// Parts of captions: some fold to others, some are wildcards in SQL, `A` separates captions in the store.
const PIECES: [&str; 14] = ["a", "A", "b", " ", "É", "é", "%", "_", "\\", "ß", "😀", "ไทย", "İ", "\n"];

/// A pseudorandom generator with a fixed seed.
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    pub fn caption(&mut self) -> Option<String> {
        match self.below(12) {
            0 => None,
            1 => Some(String::new()),
            _ => Some((0..1 + self.below(12)).map(|_| *self.pick(&PIECES)).collect()),
        }
    }
}

#[derive(Debug, Clone, sqlx::FromRow)]
struct Row {
    id: Uuid,
    account_id: Option<Uuid>,
    creator_id: Option<Uuid>,
    is_tracked: bool,
    is_active: bool,
    description: Option<String>,
    create_time: Option<DateTime<Utc>>,
    view_count: i64,
    like_count: i64,
    play_count: i64,
}

impl Row {
    fn key(&self, sort: VideoSort) -> Option<i64> {
        match sort {
            VideoSort::CreateTime => self.create_time.map(|time| time.timestamp_micros()),
            VideoSort::ViewCount => Some(self.view_count),
            VideoSort::LikeCount => Some(self.like_count),
            VideoSort::PlayCount => Some(self.play_count),
        }
    }

    fn position(&self, sort: VideoSort) -> KeysetPosition {
        let key = match sort {
            VideoSort::CreateTime => self.create_time.map_or(SortKey::Null, SortKey::Time),
            _ => SortKey::Int(self.key(sort).unwrap()),
        };
        KeysetPosition { key, id: self.id }
    }

    fn matches(&self, view: VideoType, filter: &VideoFilter) -> bool {
        let member = match view {
            VideoType::Video => self.is_tracked,
            VideoType::AccountVideo => self.account_id.is_some(),
            VideoType::Content => true,
        };
        let text = fold_case(self.description.as_deref().unwrap_or_default());
        member
            && filter.account_id.is_none_or(|account| self.account_id == Some(account))
            && filter.creator_id.is_none_or(|creator| self.creator_id == Some(creator))
            && filter.is_active.is_none_or(|active| self.is_active == active)
            && filter.q.as_ref().is_none_or(|q| text.contains(&fold_case(q)))
    }
}

fn compare_rows(sort: VideoSort, direction: SortDirection) -> impl Fn(&Row, &Row) -> Ordering {
    move |a, b| {
        let (left, right) = (a.key(sort), b.key(sort));
        let ascending = (left, a.id).cmp(&(right, b.id));
        let directed = if direction == SortDirection::Asc { ascending } else { ascending.reverse() };
        left.is_none().cmp(&right.is_none()).then(directed)
    }
}

async fn fetch_rows(pg: &PgPool, organization: Uuid) -> Vec<Row> {
    sqlx::query_as(
        "select v.id, v.account_id, a.creator_id, v.is_tracked, v.is_active, v.description, v.create_time,
             v.view_count, v.like_count, v.play_count
         from videos v left join accounts a on a.id = v.account_id where v.organization_id = $1",
    )
    .bind(organization)
    .fetch_all(pg)
    .await
    .unwrap()
}

/// Creates two creators with two accounts each, and an account without a creator.
async fn create_accounts(pg: &PgPool, organization: Uuid) -> Vec<(Uuid, Option<Uuid>)> {
    let mut created = Vec::new();
    for creator in [Some(Uuid::now_v7()), Some(Uuid::now_v7()), None] {
        sqlx::query(
            "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
             select $1, $2, 'c', 'c', now(), now() where $1 is not null",
        )
        .bind(creator)
        .bind(organization)
        .execute(pg)
        .await
        .unwrap();
        for _ in 0..if creator.is_some() { 2 } else { 1 } {
            let id = Uuid::now_v7();
            sqlx::query(
                "insert into accounts (id, organization_id, platform, username, creator_id, added_at, updated_at)
                 values ($1, $2, 'tiktok', $1::text, $3, now(), now())",
            )
            .bind(id)
            .bind(organization)
            .bind(creator)
            .execute(pg)
            .await
            .unwrap();
            created.push((id, creator));
        }
    }
    created
}

async fn add_videos(
    pg: &PgPool,
    organization: Uuid,
    random: &mut Random,
    accounts: &[(Uuid, Option<Uuid>)],
    count: usize,
) {
    let captions: Vec<_> = (0..count).map(|_| random.caption()).collect();
    let keys: Vec<_> = captions.iter().map(|caption| caption.as_deref().map(fold_case)).collect();
    let account_ids: Vec<_> =
        (0..count).map(|_| (random.below(6) > 0).then(|| random.pick(accounts).0)).collect();
    let start = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
    let times: Vec<_> = (0..count)
        .map(|_| (random.below(4) > 0).then(|| start + TimeDelta::hours(random.below(60) as i64)))
        .collect();
    let numbers: Vec<_> = (0..count).map(|_| random.below(9_000) as i64).collect();
    sqlx::query(
        "insert into videos (id, subject_id, organization_id, platform, external_id, account_id, is_tracked, is_active,
             description, description_key, create_time, added_at, tracked_at, updated_at, view_count, like_count,
             play_count)
         select gen_random_uuid(), 0, $1, 'tiktok', gen_random_uuid()::text, account,
             account is null or number % 3 = 0, number % 5 > 0, caption, key, time, now(),
             case when account is null or number % 3 = 0 then now() end, now(), number % 40, number, number % 3
         from unnest($2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::bigint[])
             as x(caption, key, account, time, number)",
    )
    .bind(organization)
    .bind(captions)
    .bind(keys)
    .bind(account_ids)
    .bind(times)
    .bind(numbers)
    .execute(pg)
    .await
    .unwrap();
}

/// Compares pages from random positions of random lists with the model.
async fn compare(api: &TestApi, random: &mut Random, accounts: &[(Uuid, Option<Uuid>)], times: usize) {
    let rows = fetch_rows(api.pg(), api.organization.id).await;
    for _ in 0..times {
        let view = *random.pick(&[VideoType::AccountVideo, VideoType::Content, VideoType::Video]);
        let (account, creator) = *random.pick(accounts);
        let mut filter = VideoFilter::default();
        match random.below(4) {
            0 => filter.account_id = Some(account),
            1 => filter.creator_id = creator,
            _ => {}
        }
        filter.is_active = *random.pick(&[None, None, Some(true), Some(false)]);
        filter.q = (random.below(3) > 0).then(|| {
            let text: Vec<char> =
                random.pick(&rows).description.as_deref().unwrap_or("absent").chars().collect();
            let start = random.below(text.len().max(1));
            let q: String = text.iter().skip(start).take(1 + random.below(6)).collect();
            if q.is_empty() { "absent".to_owned() } else { q }
        });
        let sort = *random.pick(&[
            VideoSort::CreateTime,
            VideoSort::CreateTime,
            VideoSort::ViewCount,
            VideoSort::LikeCount,
            VideoSort::PlayCount,
        ]);
        let direction = *random.pick(&[SortDirection::Asc, SortDirection::Desc]);
        let limit = *random.pick(&[1, 2, 7, 50, 200]);
        let mut expected: Vec<_> = rows.iter().filter(|row| row.matches(view, &filter)).cloned().collect();
        expected.sort_by(compare_rows(sort, direction));
        // The first page, or one after a row that may not match the filter.
        let after = (random.below(4) > 0).then(|| random.pick(&rows).clone());
        if let Some(after) = &after {
            let is_after = compare_rows(sort, direction);
            expected.retain(|row| is_after(row, after) == Ordering::Greater);
        }
        let page = PageRequest {
            sort,
            direction,
            after: after.map(|row| row.position(sort)),
            offset: 0,
            limit,
            include_total: random.below(8) == 0,
        };
        let readable = &api.app.readable;
        let slice =
            videos::list(api.pg(), api.organization.id, view, readable, &filter, &page).await.unwrap();
        let found: Vec<_> = slice.items.iter().map(|video| video.id).collect();
        let expected_ids: Vec<_> = expected.iter().map(|row| row.id).take(page.limit as usize).collect();
        assert_eq!(found, expected_ids, "{view:?} {filter:?} {page:?}");
        let next = expected.get(page.limit as usize).and(expected.get(page.limit as usize - 1));
        assert_eq!(slice.next, next.map(|row| row.position(sort)), "{view:?} {filter:?} {page:?}");
        let all = rows.iter().filter(|row| row.matches(view, &filter)).count() as i64;
        assert_eq!(slice.total, page.include_total.then_some(all), "{view:?} {filter:?}");
    }
}

#[tokio::test]
async fn pages_match_a_model_of_filters_and_sorts() {
    let api = TestApi::start().await;
    let (pg, organization) = (api.pg(), api.organization.id);
    let mut random = Random(0x7469_6465_6d61_726b);
    let accounts = create_accounts(pg, organization).await;
    // More rows than the scanned start of a range, so that caption blocks are searched too.
    for _ in 0..10 {
        add_videos(pg, organization, &mut random, &accounts, 300).await;
    }
    rebuild_derived_tables(pg, organization).await;
    compare(&api, &mut random, &accounts, 120).await;

    // Updates captions, deletes videos and an account, and inserts videos.
    let rows = fetch_rows(pg, organization).await;
    let mut write = Write::begin(pg, organization).await.unwrap();
    for _ in 0..150 {
        let caption = random.caption();
        set_caption(&mut write, random.pick(&rows).id, caption.as_deref()).await;
    }
    let deleted: Vec<_> = (0..200).map(|_| random.pick(&rows).id).collect();
    let delete =
        "delete from videos where id = any($1) returning internal_id as video_id, platform, create_time";
    let deleted: Vec<Post> =
        sqlx::query_as(delete).bind(deleted).fetch_all(write.connection()).await.unwrap();
    deleted.iter().for_each(|post| write.record_post_removal(post));
    change::delete(&mut write, accounts[0].0).await.unwrap();
    write.commit().await.unwrap();
    assert_derived_tables(pg, organization).await;
    let accounts = &accounts[1..];
    for _ in 0..20 {
        add_videos(pg, organization, &mut random, accounts, 3).await;
    }
    rebuild_derived_tables(pg, organization).await;
    compare(&api, &mut random, accounts, 120).await;
}

async fn set_caption(write: &mut Write, id: Uuid, caption: Option<&str>) {
    let update =
        "update videos set description = $2, description_key = $3 where id = $1 returning internal_id";
    let internal_id = sqlx::query_scalar(update)
        .bind(id)
        .bind(caption)
        .bind(caption.map(fold_case))
        .fetch_one(write.connection())
        .await
        .unwrap();
    write.record_caption_change(internal_id);
}

/// Commits of two transactions that change captions of the same block do not wait for each other.
#[tokio::test]
async fn concurrent_caption_updates_do_not_block() {
    let api = TestApi::start().await;
    let (pg, organization) = (api.pg(), api.organization.id);
    // Many, because concurrent tests take ids from the same sequence.
    let blocks: Vec<Vec<Uuid>> = sqlx::query_scalar(
        "with created as (
             insert into videos (id, subject_id, organization_id, platform, external_id, is_tracked, added_at, tracked_at,
                 updated_at, description, description_key)
             select gen_random_uuid(), 0, $1, 'tiktok', n::text, true, now(), now(), now(), 'before', 'before'
             from generate_series(1, 400) n
             returning id, internal_id)
         select array_agg(id) from created group by internal_id / 16 having count(*) > 1",
    )
    .bind(organization)
    .fetch_all(pg)
    .await
    .unwrap();
    rebuild_derived_tables(pg, organization).await;
    let mut holder = pg.begin().await.unwrap();
    let lock = sqlx::query("select from organizations where id = $1 for no key update");
    lock.bind(organization).execute(&mut *holder).await.unwrap();
    let (mut commits, mut processes) = (Vec::new(), Vec::new());
    for (video, caption) in blocks[0].iter().zip(["one", "other"]) {
        let mut write = Write::begin(pg, organization).await.unwrap();
        set_caption(&mut write, *video, Some(caption)).await;
        let pid = sqlx::query_scalar("select pg_backend_pid()");
        processes.push(pid.fetch_one(write.connection()).await.unwrap());
        commits.push(tokio::spawn(write.commit()));
    }
    wait_until("both commits wait for the organization alone", async || {
        let waiting: i64 = sqlx::query_scalar(
            "select count(*) from pg_stat_activity
             where pid = any($1) and wait_event_type = 'Lock' and query like 'update organizations%'",
        )
        .bind(&processes as &[i32])
        .fetch_one(pg)
        .await
        .unwrap();
        (waiting == 2).then_some(())
    })
    .await;
    holder.rollback().await.unwrap();
    for commit in commits {
        commit.await.unwrap().unwrap();
    }
    let captions: Vec<String> = sqlx::query_scalar(
        "select unnest(string_to_array(captions, 'A')) from caption_blocks where organization_id = $1",
    )
    .bind(organization)
    .fetch_all(pg)
    .await
    .unwrap();
    assert!(
        ["one", "other"].iter().all(|caption| captions.iter().any(|stored| stored == caption)),
        "{captions:?}"
    );
}
