//! A million videos (`TIDEMARK_BENCH_VIDEOS`) in fifty organizations, a quarter of them in the largest; one account per hundred
//! videos, one creator per five accounts.

use harness::create_organization;
use sqlx::{PgConnection, PgPool};
use tidemark::model::text::{fold_case, search_key};
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

use super::captions::{Captions, Random};

/// The number of videos.
pub fn videos() -> usize {
    let count = std::env::var("TIDEMARK_BENCH_VIDEOS");
    count.map_or(1_000_000, |count| count.parse().expect("TIDEMARK_BENCH_VIDEOS is a number"))
}

const ORGANIZATIONS: usize = 50;
const MAX_ROWS_PER_INSERT: usize = 10_000;

/// The largest organization, its key, and its folded captions.
pub struct Records {
    pub organization: Uuid,
    pub key: String,
    pub captions: Vec<String>,
}

pub async fn generate(pg: &PgPool, source: &Captions) -> Records {
    let mut random = Random(0x7d3a_11e5);
    let mut connection = pg.acquire().await.unwrap();
    // Disables the triggers, which check references.
    sqlx::query("set session_replication_role = replica").execute(&mut *connection).await.unwrap();
    let weights: f64 = (1..ORGANIZATIONS).map(|index| 1.0 / index as f64).sum();
    let mut largest = None;
    let all = videos();
    for index in 0..ORGANIZATIONS {
        let videos = match index {
            0 => all / 4,
            _ => ((all - all / 4) as f64 / index as f64 / weights) as usize,
        };
        let options =
            OrganizationChange { rate_limit: Some(Some(10_000_000)), ..OrganizationChange::default() };
        let (organization, key) = create_organization(pg, options).await;
        let captions = fill(&mut connection, organization, videos, source, &mut random).await;
        largest.get_or_insert(Records { organization, key, captions });
    }
    sqlx::query("reset session_replication_role").execute(&mut *connection).await.unwrap();
    sqlx::raw_sql("vacuum analyze").execute(&mut *connection).await.unwrap();
    largest.unwrap()
}

/// Fills an organization and returns its folded captions.
async fn fill(
    connection: &mut PgConnection,
    organization: Uuid,
    videos: usize,
    source: &Captions,
    random: &mut Random,
) -> Vec<String> {
    let accounts: Vec<Uuid> = (0..videos.div_ceil(100)).map(|_| Uuid::now_v7()).collect();
    let creators: Vec<Uuid> = (0..accounts.len().div_ceil(5)).map(|_| Uuid::now_v7()).collect();
    let names: Vec<_> =
        creators.iter().map(|_| format!("{} {}", source.word(random), source.word(random))).collect();
    sqlx::query(
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         select id, $1, name, name_key, now(), now() from unnest($2::uuid[], $3::text[], $4::text[]) x (id, name, name_key)",
    )
    .bind(organization)
    .bind(&creators)
    .bind(&names)
    .bind(names.iter().map(|name| fold_case(name)).collect::<Vec<_>>())
    .execute(&mut *connection)
    .await
    .unwrap();
    let letters: Vec<char> = ('a'..='z').chain(['.', '_']).collect();
    let usernames: Vec<String> = accounts
        .iter()
        .enumerate()
        .map(|(number, _)| {
            (0..4 + random.below(8))
                .map(|_| *random.one_of(&letters))
                .chain(number.to_string().chars())
                .collect()
        })
        .collect();
    sqlx::query(
        "insert into accounts (id, organization_id, platform, username, creator_id, follower_count, added_at, updated_at)
         select id, $1, 'tiktok', username, creator, followers, now(), now()
         from unnest($2::uuid[], $3::text[], $4::uuid[], $5::bigint[]) x (id, username, creator, followers)",
    )
    .bind(organization)
    .bind(&accounts)
    .bind(usernames)
    .bind(accounts.iter().map(|_| *random.one_of(&creators)).collect::<Vec<_>>())
    .bind(accounts.iter().map(|_| random.log_uniform(7.0)).collect::<Vec<_>>())
    .execute(&mut *connection)
    .await
    .unwrap();
    let mut all = Vec::with_capacity(videos);
    while all.len() < videos {
        let count = MAX_ROWS_PER_INSERT.min(videos - all.len());
        let captions: Vec<_> = (0..count).map(|_| source.next(random)).collect();
        let folded: Vec<_> = captions.iter().map(|caption| search_key(caption)).collect();
        sqlx::query(
            "insert into videos (id, organization_id, platform, external_id, subject_id, account_id, description,
                 description_key, view_count, create_time, added_at, updated_at)
             select id, $1, 'tiktok', id::text, 0, account, caption, folded, views, now(), now(), now()
             from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bigint[])
                 x (id, account, caption, folded, views)",
        )
        .bind(organization)
        .bind((0..count).map(|_| Uuid::now_v7()).collect::<Vec<_>>())
        .bind((0..count).map(|_| *random.one_of(&accounts)).collect::<Vec<_>>())
        .bind(captions)
        .bind(&folded)
        .bind((0..count).map(|_| random.log_uniform(7.0)).collect::<Vec<_>>())
        .execute(&mut *connection)
        .await
        .unwrap();
        all.extend(folded);
    }
    all
}
