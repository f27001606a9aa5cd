//! Posts that imports, requests and scrapes name by different ids, in any order and at the same time: one record a post, and
//! each gain counted once.

use chrono::{DateTime, Days, NaiveTime, SubsecRound, TimeDelta, Utc};
use fastrand::Rng;
use futures_util::future::join_all;
use harness::relay::observed_post;
use harness::{IsolatedStores, Organization, Stack};
use serde_json::{Value, json};
use tidemark::model::counters::Counters;
use tidemark::model::observed::{VideoFields, VideoLatest};
use tidemark::model::platform::Platform;
use tidemark::rollup::verify;
use tidemark::store::observations::{AccountRef, ObservedVideo, VideoOrigin, complete_ids, save_videos};
use tidemark::store::records::imports;
use tidemark::store::{Write, retry_on_conflict};
use uuid::Uuid;

use crate::post_model::{Given, Model, Observation, Origin, Post, Step, random_step};
use crate::setup::{InputFile, load};

/// Posts of one sequence of rounds.
const POSTS: usize = 25;
const ROUNDS: usize = 8;
const DAYS: u64 = 6;
const USERNAMES: [&str; 2] = ["one.post", "other.post"];

/// An organization whose accounts posted the same posts.
struct Course {
    organization: Organization,
    accounts: Vec<AccountRef>,
    start: DateTime<Utc>,
}

impl Course {
    async fn start() -> Self {
        let organization = Stack::shared().unlimited_organization().await;
        let mut accounts = Vec::new();
        for username in USERNAMES {
            let body = json!({"platform": "instagram", "username": username, "is_active": false});
            let id = organization.create("/accounts", body).await.parse().unwrap();
            let subject_id = sqlx::query_scalar("select internal_id from accounts where id = $1")
                .bind(id)
                .fetch_one(organization.pg())
                .await
                .unwrap();
            accounts.push(AccountRef { id, subject_id });
        }
        let today = harness::now().date_naive();
        let start = (today - Days::new(DAYS + 1)).and_time(NaiveTime::MIN).and_utc();
        Course { organization, accounts, start }
    }

    fn origin(&self, origin: Origin) -> VideoOrigin {
        match origin {
            Origin::Account(account) => VideoOrigin::Account(self.accounts[account]),
            Origin::Individual => VideoOrigin::Individual { is_active: false },
        }
    }

    fn observed(
        &self,
        post: (&str, Option<&str>),
        origin: Origin,
        observation: &Observation,
    ) -> ObservedVideo {
        let counters = Counters {
            view_count: Some(observation.views),
            like_count: observation.likes,
            ..Counters::default()
        };
        let mut latest = VideoLatest::default();
        latest.record(VideoFields::default(), counters, observation.at);
        ObservedVideo {
            platform: Platform::Instagram,
            external_id: Some(post.0.to_owned()),
            shortcode: post.1.map(str::to_owned),
            origin: self.origin(origin),
            latest,
            observations: vec![(observation.at, counters)],
            scraped_at: None,
        }
    }

    async fn save(&self, videos: Vec<ObservedVideo>) {
        let saved = retry_on_conflict(|| async {
            let mut write = Write::begin(self.organization.pg(), self.organization.id).await?;
            save_videos(&mut write, harness::now(), videos.clone()).await?;
            write.commit().await
        });
        saved.await.unwrap();
    }

    async fn import(&self, rows: Vec<String>) {
        let header = "platform,username,external_id,observed_at,view_count,like_count";
        let file = InputFile::create("posts.csv", format!("{header}\n{}\n", rows.join("\n")));
        assert_eq!(load(&self.organization, &file.path).await.refused, 0, "{rows:?}");
    }

    async fn add(&self, identifier: &str) -> u16 {
        let body = json!({"platform": "instagram", "identifier": identifier, "is_active": false});
        let status = self.organization.post("/videos", body).await.status;
        assert!([201, 409].contains(&status), "{identifier}: {status}");
        status
    }

    /// All records, by any of the ids of a post.
    async fn records(&self) -> Vec<Value> {
        let mut records = Vec::new();
        let mut path = "/content?limit=200".to_owned();
        loop {
            let page = self.organization.get(&path).await.ok(200);
            records.extend(page.list("/data").iter().cloned());
            match page.at("/pagination/next_cursor").as_str() {
                Some(cursor) => path = format!("/content?limit=200&cursor={cursor}"),
                None => return records,
            }
        }
    }

    async fn gains(&self) -> [i64; 2] {
        let (start, end) = (self.start.date_naive(), harness::now().date_naive());
        let path = format!("/overview?start_date={start}&end_date={end}");
        let overview = self.organization.get(&path).await.ok(200);
        ["views", "likes"].map(|metric| overview.integer(&format!("/data/{metric}/current")))
    }
}

fn row(observation: &Observation, origin: Origin, text: &str) -> String {
    let username = match origin {
        Origin::Account(account) => USERNAMES[account],
        Origin::Individual => "",
    };
    let likes = observation.likes.map(|likes| likes.to_string()).unwrap_or_default();
    let at = observation.at.to_rfc3339();
    format!("instagram,{username},{text},{at},{},{likes}", observation.views)
}

fn is_of(record: &Value, post: &Post) -> bool {
    record["external_id"] == post.graph_id.as_str()
        || record["shortcode"].as_str().is_some_and(|code| code.starts_with(&post.code))
}

fn given_by(record: &Value, post: &Post) -> Given {
    Given {
        graph_id: record["external_id"] == post.graph_id.as_str(),
        number: record["shortcode"].is_string(),
    }
}

/// Applies a random step to each post in each round, then reveals the ids of all, and compares with the model.
async fn run_course(seed: u64) {
    println!("TIDEMARK_TEST_SEED={seed} repeats this test");
    let mut rng = Rng::with_seed(seed);
    let course = Course::start().await;
    let posts: Vec<_> = (0..POSTS).map(Post::new).collect();
    let mut models: Vec<_> = posts.iter().map(|_| Model::default()).collect();
    let mut minutes = 0;
    let mut observe = |rng: &mut Rng| {
        minutes += 1;
        let day = TimeDelta::days(rng.i64(0..DAYS as i64));
        let likes = rng.bool().then(|| rng.i64(0..100));
        // Each at its own time, so that the latest of a day is one.
        Observation { at: course.start + day + TimeDelta::seconds(minutes), views: rng.i64(0..1_000), likes }
    };
    for round in 0..=ROUNDS {
        let (mut imported, mut scraped) = (Vec::new(), Vec::new());
        let records = course.records().await;
        for (post, model) in posts.iter().zip(&mut models) {
            let observation = observe(&mut rng);
            let step = if round < ROUNDS {
                random_step(&mut rng, post, observation)
            } else {
                let given = Given { graph_id: true, number: true };
                let (external_id, shortcode) = (post.graph_id.clone(), Some(post.code.clone()));
                Step::Scrape { external_id, shortcode, given, origin: Origin::Account(0), observation }
            };
            match step {
                Step::Import { text, given, origin, observation } => {
                    imported.push(row(&observation, origin, &text));
                    model.observe(given, origin, observation);
                }
                Step::Scrape { external_id, shortcode, given, origin, observation } => {
                    let ids = (external_id.as_str(), shortcode.as_deref());
                    scraped.push(course.observed(ids, origin, &observation));
                    model.observe(given, origin, observation);
                }
                Step::Add { identifier, given } => {
                    let is_new = !model.find_or_create(given).is_tracked;
                    let status = course.add(&identifier).await;
                    assert_eq!(status == 201, is_new, "{identifier}: {model:?}");
                    model.find_or_create(given).is_tracked = true;
                }
                Step::Delete => {
                    let tracked =
                        records.iter().find(|record| is_of(record, post) && record["is_tracked"] == true);
                    let Some(record) = tracked else { continue };
                    let path = format!("/videos/{}", record["id"].as_str().unwrap());
                    course.organization.delete(&path).await.ok(204);
                    model.delete(given_by(record, post));
                }
            }
        }
        course.save(scraped).await;
        if !imported.is_empty() {
            course.import(imported).await;
        }
    }
    course.organization.wait_applied().await;
    let records = course.records().await;
    for (post, model) in posts.iter().zip(&models) {
        let found: Vec<_> = records.iter().filter(|record| is_of(record, post)).collect();
        assert_eq!((found.len(), model.0.len()), (1, 1), "{found:?}");
        let expected = &model.0[0];
        let last = expected.history.values().last().unwrap();
        assert_eq!(found[0]["external_id"], post.graph_id.as_str());
        assert_eq!(found[0]["view_count"], last.views, "{expected:?}");
        assert_eq!(found[0]["is_tracked"], expected.is_tracked, "{expected:?}");
        let account = expected.account.map(|account| USERNAMES[account]);
        assert_eq!(found[0]["account_username"].as_str(), account, "{expected:?}");
    }
    assert_eq!(records.len(), POSTS);
    let expected = models.iter().map(|model| model.0[0].gains());
    let expected = expected.fold([0, 0], |sum, gains| [sum[0] + gains[0], sum[1] + gains[1]]);
    assert_eq!(course.gains().await, expected);
    let verified = verify::verify(&course.organization.stack.databases, course.organization.id, false).await;
    assert_eq!(verified.unwrap().differences.len(), 0);
}

fn seed() -> u64 {
    let given = std::env::var("TIDEMARK_TEST_SEED").ok().map(|seed| seed.parse().expect("a number"));
    given.unwrap_or_else(|| fastrand::u64(..))
}

#[tokio::test]
async fn every_sequence_ends_in_one_record_a_post() {
    run_course(seed()).await;
}

#[tokio::test]
#[ignore = "takes minutes: make test-deep"]
async fn thousand_sequences_end_in_one_record_a_post() {
    for n in 0..1_000 / POSTS as u64 {
        run_course(seed().wrapping_add(n)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_forms_of_one_post_end_in_one_record() {
    let course = &Course::start().await;
    let posts: Vec<_> = (0..6).map(Post::new).collect();
    let observation = &|minute: i64, views: i64| Observation {
        at: course.start + TimeDelta::minutes(minute),
        views,
        likes: None,
    };
    let scrape = async |ids: (&str, Option<&str>), origin: Origin, minute: i64| {
        course.save(vec![course.observed(ids, origin, &observation(minute, 10 * minute))]).await;
    };
    let scrape = &scrape;
    for round in 0..3 {
        let tasks = posts.iter().map(async |post| {
            let (graph_id, code) = (post.graph_id.as_str(), post.code.as_str());
            futures_util::join!(
                async { _ = course.add(&post.pk).await },
                async { _ = course.add(&format!("instagram.com/p/{code}/")).await },
                async { _ = course.add(graph_id).await },
                scrape((graph_id, None), Origin::Account(0), 1),
                scrape((graph_id, Some(code)), Origin::Individual, 2),
                scrape((&post.pk, None), Origin::Account(1), 3),
                scrape((&post.pk, Some(code)), Origin::Account(0), 4),
            );
        });
        let rows = posts.iter().map(|post| row(&observation(5, 50), Origin::Account(1), &post.pk));
        futures_util::join!(join_all(tasks), course.import(rows.collect()));
        let records = course.records().await;
        assert_eq!(records.len(), posts.len(), "round {round}: {records:#?}");
    }
    course.organization.wait_applied().await;
    assert_eq!(course.gains().await, [0, 0], "all observations are of the first day");
    let verified = verify::verify(&course.organization.stack.databases, course.organization.id, false).await;
    assert_eq!(verified.unwrap().differences.len(), 0);
}

/// Rows as 0.1.0 stored them: each form of an id as it was given.
#[tokio::test(flavor = "multi_thread")]
async fn migration_merges_forms_of_one_post() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(0).await;
    let names = USERNAMES.map(|name| (Platform::Instagram, name.to_owned()));
    let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
    let accounts =
        imports::find_or_create_accounts(&mut write, &names, &Default::default(), false, harness::now())
            .await
            .unwrap();
    write.commit().await.unwrap();
    let accounts = names.map(|name| accounts[&name]);
    let start = harness::now().trunc_subsecs(6) - TimeDelta::days(3);
    let private = |code: &str| format!("{code}UqFW2xiLWLQiIg_TxuOIQ_OQPTM0");
    let posts: Vec<_> = (0..3).map(Post::new).collect();
    let store = async |n: usize, day: i64, views: i64, ids: [Option<&str>; 2], origin: VideoOrigin| {
        let at = start + TimeDelta::days(day) + TimeDelta::minutes(n as i64);
        let mut video = observed_post(origin, format!("999{n}"), views, at);
        video.platform = Platform::Instagram;
        let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
        save_videos(&mut write, at, vec![video]).await.unwrap();
        write.commit().await.unwrap();
        let sql = "update videos set external_id = $2, shortcode = $3
                   where organization_id = $1 and external_id = $4 returning id";
        let query = sqlx::query_scalar::<_, Uuid>(sql).bind(tenant.id).bind(ids[0]).bind(ids[1]);
        query.bind(format!("999{n}")).fetch_one(stores.pg()).await.unwrap()
    };
    let individual = VideoOrigin::Individual { is_active: false };
    let [first, second] = [0, 1].map(|n| VideoOrigin::Account(accounts[n]));
    let pk_of_user = format!("{}_178", posts[0].pk);
    let oldest = store(0, 0, 100, [Some(&posts[0].pk), None], first).await;
    store(1, 1, 200, [Some(&pk_of_user), None], individual).await;
    store(2, 2, 400, [None, Some(&posts[0].code)], second).await;
    store(3, 1, 300, [Some(&posts[0].graph_id), Some(&private(&posts[0].code))], second).await;
    // A post without other forms, a private one, and one that is complete.
    let by_pk = store(4, 0, 10, [Some(&posts[1].pk), None], individual).await;
    store(5, 1, 30, [None, Some(&private(&posts[2].code))], individual).await;
    store(6, 2, 70, [Some(&posts[2].pk), Some(&posts[2].code)], individual).await;

    let updated_at = async |id: Uuid| {
        let sql = "select updated_at from videos where id = $1";
        sqlx::query_scalar::<_, DateTime<Utc>>(sql).bind(id).fetch_one(stores.pg()).await.unwrap()
    };
    let before = updated_at(by_pk).await;
    assert_eq!(complete_ids(stores.pg()).await.unwrap(), 5);
    assert_eq!(complete_ids(stores.pg()).await.unwrap(), 0, "all are complete");
    assert_eq!(updated_at(by_pk).await, before);
    type Row = (Uuid, Option<String>, String, Option<String>, Option<Uuid>, bool, i64);
    let rows: Vec<Row> = sqlx::query_as(
        "select id, external_id, shortcode, whole_shortcode, account_id, is_tracked, view_count
         from videos where organization_id = $1 order by id",
    )
    .bind(tenant.id)
    .fetch_all(stores.pg())
    .await
    .unwrap();
    assert_eq!(rows.len(), 3, "{rows:#?}");
    let graph_id = Some(posts[0].graph_id.clone());
    let whole = Some(private(&posts[0].code));
    let account = Some(accounts[0].id);
    assert_eq!(rows[0], (oldest, graph_id, posts[0].code.clone(), whole, account, true, 400));
    assert_eq!((&rows[1].1, &rows[1].2), (&Some(posts[1].pk.clone()), &posts[1].code));
    assert_eq!((&rows[2].1, &rows[2].3), (&Some(posts[2].pk.clone()), &Some(private(&posts[2].code))));

    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    let sql = "select sum(view_gain) from account_daily final where org_id = {org:UUID}";
    let total = stores.clickhouse().query_raw(sql).param("org", tenant.id).fetch_one::<Option<i64>>();
    assert_eq!(total.await.unwrap(), Some(300 + 40));
    let verified = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
    let differences = verified.differences.iter().map(|difference| &difference.text);
    assert_eq!(differences.collect::<Vec<_>>(), Vec::<&String>::new());
    relay.stop().await;
    let counts: Vec<i64> = sqlx::query_scalar(
        "select total_post_count::bigint from accounts where organization_id = $1 order by username",
    )
    .bind(tenant.id)
    .fetch_all(stores.pg())
    .await
    .unwrap();
    assert_eq!(counts, [1, 0]);
}
