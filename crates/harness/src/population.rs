//! Inserts any number of accounts, creators and videos, for tests of query plans and for benchmarks.
//!
//! Sort values are uniform and independent; every 50th video has no `create_time`, every tenth record is inactive.

use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;
use sqlx::{AssertSqlSafe, PgPool, Postgres};
use tidemark::store::records::organizations::{self, OrganizationChange};
use uuid::Uuid;

use super::{IsolatedStores, rebuild_derived_tables};

/// Numbers of records.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    pub accounts: i32,
    pub videos: i32,
    /// How many of each seven videos are on the first account; the others share the rest.
    pub on_first_account: i32,
}

/// Words of captions, which are as long as real ones and in several scripts.
const WORDS: &str = "dance,tutorial,มาดู,học,عرض,día,☀️🎉,vlog,morning routine,recipe,outfit of the day,#fyp,#foryou,100%,\
    snake_case,storytime,giveaway,travel,đà nẵng,ตลก,behind the scenes,new song,cover,comedy,prank,review,unboxing";

/// Words that some captions contain as well, and a condition on the video's number `n`.
const RARE_WORDS: &[(&str, &str)] = &[
    ("everythird", "n % 3 = 0"),
    ("everyhundredth", "n % 100 = 7"),
    ("everythousandth", "n % 1000 = 7"),
    ("lastseen", "(n::bigint * 7919 % $2) * 200 < $2"),
    ("lastposted", "(n::bigint * 104729 % $2) * 200 > $2 * 199"),
];

/// A database of one test, in which an organization is one of many. Plans depend on the statistics of whole tables: here
/// no other test and no autovacuum changes them.
pub struct PopulatedDatabase {
    pub pg: PgPool,
    pub organization: Uuid,
    /// Its first account.
    pub account: Uuid,
}

/// A query for the lines of a plan.
pub type Lines<'q> = QueryScalar<'q, Postgres, String, PgArguments>;

/// The tables that a population fills.
const TABLES: [&str; 5] = ["accounts", "scrape_targets", "creators", "videos", "caption_blocks"];

impl PopulatedDatabase {
    /// Inserts the population, and for each of the others an organization of its own.
    pub async fn create(population: Population, others: &[Population]) -> Self {
        let pg = IsolatedStores::create_postgres().await.pg().clone();
        for table in TABLES {
            let disable = format!("alter table {table} set (autovacuum_enabled = false)");
            sqlx::raw_sql(AssertSqlSafe(disable)).execute(&pg).await.unwrap();
        }
        let create =
            async || organizations::create(&pg, "test", &OrganizationChange::default()).await.unwrap().id;
        for other in others {
            other.insert_records(&pg, create().await).await;
        }
        let organization = create().await;
        let account = population.insert(&pg, organization).await;
        PopulatedDatabase { pg, organization, account }
    }

    /// Explains a statement whose first parameter is the organization.
    pub async fn explain(
        &self,
        statement: impl Into<String>,
        bind: impl FnOnce(Lines<'static>) -> Lines<'static>,
    ) -> String {
        let statement = AssertSqlSafe(format!("explain {}", statement.into()));
        let query = bind(sqlx::query_scalar(statement).bind(self.organization));
        query.fetch_all(&self.pg).await.unwrap().join("\n")
    }

    /// Inserts the records of a new organization, which the statistics do not know, as right after an import.
    pub async fn insert_unknown(&self, population: Population) -> Uuid {
        let organization =
            organizations::create(&self.pg, "new", &OrganizationChange::default()).await.unwrap().id;
        population.insert_records(&self.pg, organization).await;
        organization
    }

    /// Updates the statistics after a change, as autovacuum does.
    pub async fn vacuum(&self) {
        vacuum(&self.pg).await;
    }
}

async fn vacuum(pg: &PgPool) {
    for table in TABLES {
        let vacuum = format!("vacuum (analyze) {table}");
        sqlx::raw_sql(AssertSqlSafe(vacuum)).execute(pg).await.unwrap();
    }
}

impl Population {
    /// Inserts the records, and vacuums and analyzes their tables. Returns the first account.
    pub async fn insert(self, pg: &PgPool, organization: Uuid) -> Uuid {
        self.insert_records(pg, organization).await;
        vacuum(pg).await;
        sqlx::query_scalar(
            "select id from accounts where organization_id = $1 order by added_at desc, id limit 1",
        )
        .bind(organization)
        .fetch_one(pg)
        .await
        .unwrap()
    }

    async fn insert_records(self, pg: &PgPool, organization: Uuid) {
        self.insert_accounts(pg, organization).await;
        self.insert_videos(pg, organization).await;
        rebuild_derived_tables(pg, organization).await;
    }

    async fn insert_accounts(self, pg: &PgPool, organization: Uuid) {
        sqlx::query(
            "with numbered as (select n, gen_random_uuid() as creator from generate_series(1, $2) n),
             creators as (
                 insert into creators (id, organization_id, name, name_key, is_active, added_at, updated_at)
                 select creator, $1, 'Creator ' || md5(n::text), 'creator ' || md5(n::text), n % 10 > 0,
                     now() - (n * 7919 % $2) * interval '1 minute', now() from numbered)
             insert into accounts (id, organization_id, platform, username, is_active, category, creator_id, added_at,
                 updated_at, last_scrape_time, metadata, follower_count, total_post_count, view_count, like_count,
                 play_count)
             select gen_random_uuid(), $1, case n % 3 when 0 then 'instagram' else 'tiktok' end,
                 left(md5(n::text || 'u'), 10) || n, n % 10 > 0, 'category' || n % 500, creator,
                 now() - (n * 7919 % $2) * interval '1 minute', now(),
                 case when n % 7 > 0 then now() - (n * 6101 % $2) * interval '1 second' end,
                 jsonb_build_object('team', (n % 10)::text),
                 n * 5981 % $2, n * 5879 % $2, n * 5651 % $2, n * 5449 % $2, n * 5237 % $2
             from numbered",
        )
        .bind(organization)
        .bind(self.accounts)
        .execute(pg)
        .await
        .unwrap();
        // Nothing is due.
        sqlx::query(
            "insert into scrape_targets (id, organization_id, platform, kind, enabled, next_attempt_at)
             select id, organization_id, platform, 'account', is_active, now() + interval '1 day' + (now() - added_at)
             from accounts where organization_id = $1",
        )
        .bind(organization)
        .execute(pg)
        .await
        .unwrap();
    }

    async fn insert_videos(self, pg: &PgPool, organization: Uuid) {
        let Population { accounts, videos, on_first_account } = self;
        let rare_words: String = RARE_WORDS
            .iter()
            .map(|(word, rows)| format!(" || case when {rows} then ' {word}' else '' end"))
            .collect();
        // In groups of 25 of one account, as scrapes write them.
        sqlx::query(AssertSqlSafe(format!(
            "with account as (
                 select id, platform, row_number() over (order by added_at desc, id) as account_number
                 from accounts where organization_id = $1),
             numbered as (
                 select n, case when n / 25 % 7 < $4 then 1 else 2 + n / 25 * 31 % ($3 - 1) end as account_number
                 from generate_series(0, $2 - 1) n)
             insert into videos (id, subject_id, organization_id, platform, external_id, account_id, is_tracked,
                 is_active, description, description_key, media_type, cover_image_url_original, video_url_original,
                 platform_data, create_time, added_at, tracked_at, updated_at, view_count, like_count, play_count,
                 hashtags)
             select gen_random_uuid(), 0, $1, platform, n::text, account.id, n % 5 = 0, n % 10 > 0,
                 caption, lower(caption), 'video', 'https://example.com/cover/' || repeat(md5(n::text), 6),
                 'https://example.com/video/' || repeat(md5(n::text), 9), '{{\"is_pinned\": false}}',
                 case when n % 50 > 0 then now() - (n::bigint * 104729 % $2) * interval '17 minutes' end,
                 now() - (n::bigint * 3571 % $2) * interval '2 minutes',
                 case when n % 5 = 0 then now() - (n::bigint * 6101 % $2) * interval '3 minutes' end, now(),
                 n::bigint * 7919 % $2, n::bigint * 5981 % ($2 / 2), n::bigint * 5651 % $2,
                 case when n % 1000 = 7 then array['rare'] when n % 3 = 0 then array['frequent'] else '{{}}' end
             from numbered join account using (account_number)
             cross join lateral (
                 select string_agg(words[1 + ('x' || substr(md5(n || '.' || part), 1, 7))::bit(28)::int % 27], ' '){rare_words}
                     || ' ' || n as caption
                 from string_to_array($5, ',') as words, generate_series(1, 12 + n % 7) as part) described
             order by n"
        )))
        .bind(organization)
        .bind(videos)
        .bind(accounts)
        .bind(on_first_account)
        .bind(WORDS)
        .execute(pg)
        .await
        .unwrap();
    }
}
