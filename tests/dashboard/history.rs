//! History that the pages show: simulated accounts, and records that are hard to show.

use std::fs::File;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Days, SecondsFormat, TimeDelta, Utc};
use harness::{Organization, rebuild_derived_tables};
use sandbox::history::{HistoryOptions, InstagramCounters, write_history};
use sandbox::population::Population;
use serde_json::json;
use sqlx::AssertSqlSafe;
use tidemark::import::{self, ImportOptions};

/// Enough for two periods of 30 days, of which the earlier one starts with known numbers.
const DAYS: u32 = 70;
const SIMULATED_ACCOUNTS: usize = 8;

pub const LONG_USERNAME: &str = "a.username.of.24.letters";
const LONG_NAME: &str =
    "Maximiliana-Theodora Featherstonehaugh-Cholmondeley von und zu Hohenlohe-Schillingsfürst";
const COLUMNS: [&str; 12] = [
    "platform",
    "username",
    "external_id",
    "observed_at",
    "create_time",
    "description",
    "view_count",
    "like_count",
    "comment_count",
    "follower_count",
    "creator",
    "name",
];

/// A post that is hard to show, with its counters before today and what they gain each day.
struct Post {
    username: &'static str,
    id: &'static str,
    caption: &'static str,
    views: (i64, i64),
    /// None where the platform hides them.
    likes: Option<(i64, i64)>,
}

const POSTS: [Post; 6] = [
    Post {
        username: LONG_USERNAME,
        id: "7300000000000000001",
        caption: "طريقة تحضير القهوة العربية في البيت، خطوة بخطوة ☕ #قهوة",
        views: (12_204_558, 310_417),
        likes: Some((904_112, 20_001)),
    },
    Post {
        username: LONG_USERNAME,
        id: "7300000000000000002",
        caption: "likes are hidden here",
        views: (2_000, 1),
        likes: None,
    },
    Post {
        username: LONG_USERNAME,
        id: "7300000000000000003",
        caption: "views were removed by the platform",
        views: (80_000, -1_337),
        likes: Some((4_000, -12)),
    },
    Post {
        username: LONG_USERNAME,
        id: "7300000000000000004",
        caption: "=SUM(A1:A9), \"quoted\", and a word without end: \
                  Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaftsversammlung",
        views: (12, 0),
        likes: Some((0, 0)),
    },
    Post {
        username: LONG_USERNAME,
        id: "7300000000000000005",
        caption: "",
        views: (512, 3),
        likes: Some((9, 1)),
    },
    // Tracked individually.
    Post {
        username: "",
        id: "7300000000000000006",
        caption: "tracked alone",
        views: (44_000, 900),
        likes: Some((3_000, 70)),
    },
];

/// Posts of one account with known views at each age, one a day. The last has many times the views of the others.
const POSTS_WITH_AGES: i64 = 12;
const FIRST_POSTED_DAYS_AGO: i64 = 20;
const BREAKOUT_MULTIPLE: i64 = 10;

/// Loads the history and waits until every endpoint shows it. Nothing of it is due, so the numbers stay as they are.
pub async fn load(organization: &Organization) {
    let folder = tempfile::tempdir().unwrap();
    let now = organization.stack.databases.clock.now().await;
    let mut files = simulate((0..SIMULATED_ACCOUNTS).collect(), DAYS, now, folder.path());
    let hard = folder.path().join("hard.csv");
    write_hard_records(&hard, now);
    files.push(hard);
    import(organization, files).await;
    set_statuses(organization, now).await;
    create_collections(organization).await;
}

/// Enough for a table whose columns are seen to move.
async fn create_collections(organization: &Organization) {
    for (position, hashtag) in ["travel", "recipe", "skincare", "workout", "cats", "tech"].iter().enumerate()
    {
        let rule = json!({"hashtags": [hashtag], "platform": "tiktok"});
        let description = "Posts with a hashtag that several accounts use, on one platform";
        let body = json!({"name": format!("Campaign {position}"), "description": description, "rule": rule});
        organization.post("/collections", body).await.ok(201);
    }
}

/// Writes the days before today of accounts of the sandbox, and returns the files.
pub fn simulate(accounts: Vec<usize>, days: u32, now: DateTime<Utc>, folder: &Path) -> Vec<PathBuf> {
    let size = accounts.iter().max().map_or(0, |last| last + 1);
    let until = now.date_naive() - Days::new(1);
    let instagram = InstagramCounters::Http;
    let options = HistoryOptions { accounts, single_posts: Vec::new(), days, until, instagram };
    write_history(&Population::new(1, size), &options, folder).unwrap().files
}

/// Accounts without tracking are not due.
pub async fn import(organization: &Organization, files: Vec<PathBuf>) {
    let databases = &organization.stack.databases;
    let summary = import::load(databases, organization.id, files, &ImportOptions::default()).await;
    assert_eq!(summary.unwrap().refused, 0);
}

fn write_hard_records(path: &Path, now: DateTime<Utc>) {
    let mut rows = csv::Writer::from_writer(File::create(path).unwrap());
    rows.write_record(COLUMNS).unwrap();
    for ago in (0..20).rev() {
        let observed = now - TimeDelta::days(ago) - TimeDelta::minutes(1);
        let days = 20 - ago;
        let followers = (10_412_004 - days * 977).to_string();
        rows.write_record([
            "tiktok",
            LONG_USERNAME,
            "",
            &format_time(observed),
            "",
            "",
            "",
            "",
            "",
            &followers,
            LONG_NAME,
            LONG_NAME,
        ])
        .unwrap();
        for post in &POSTS {
            let count = |(first, daily): (i64, i64)| (first + days * daily).to_string();
            let posted = now - TimeDelta::days(25);
            let [views, likes] =
                [Some(count(post.views)), post.likes.map(count)].map(Option::unwrap_or_default);
            write_post(&mut rows, [post.username, post.id, post.caption], observed, posted, [&views, &likes]);
        }
        for number in 0..POSTS_WITH_AGES {
            let posted_ago = FIRST_POSTED_DAYS_AGO - number;
            if ago > posted_ago {
                continue;
            }
            let multiple = if number == POSTS_WITH_AGES - 1 { BREAKOUT_MULTIPLE } else { 1 };
            let views = (multiple * (1_000 + 800 * (posted_ago - ago))).to_string();
            let id = (7_300_000_000_000_000_100 + number).to_string();
            let posted = now - TimeDelta::days(posted_ago) - TimeDelta::minutes(2);
            write_post(&mut rows, [LONG_USERNAME, &id, "one a day"], observed, posted, [&views, ""]);
        }
    }
    rows.flush().unwrap();
}

fn write_post(
    rows: &mut csv::Writer<File>,
    [username, id, caption]: [&str; 3],
    observed: DateTime<Utc>,
    posted: DateTime<Utc>,
    [views, likes]: [&str; 2],
) {
    let (observed, posted) = (format_time(observed), format_time(posted));
    rows.write_record(["tiktok", username, id, &observed, &posted, caption, views, likes, "", "", "", ""])
        .unwrap();
}

fn format_time(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Gives the accounts all statuses, as attempts of a tracker would have: one is paused, unavailable or failing, the others are
/// active and due in a month.
async fn set_statuses(organization: &Organization, now: DateTime<Utc>) {
    let now = format!("'{}'::timestamptz", now.to_rfc3339());
    for statement in [
        "update scrape_targets set enabled = true, next_attempt_at = now() + interval '30 days',
             last_attempt_at = now() - interval '1 hour'
         where organization_id = $1",
        "update videos set is_active = true, last_scrape_time = now() where organization_id = $1 and is_tracked",
        "with numbered as (select id, row_number() over (order by username) as number from accounts
             where organization_id = $1 and creator_id is not null and username not like 'a.username%')
         update accounts a set is_active = n.number <> 1, is_unavailable = n.number = 2
         from numbered n where n.id = a.id",
        "update accounts set is_active = true where organization_id = $1 and username like 'a.username%'",
        "update accounts set last_scrape_time = now() where organization_id = $1",
        "with numbered as (select id, row_number() over (order by username) as number from accounts
             where organization_id = $1 and creator_id is not null and username not like 'a.username%')
         update scrape_targets t set failures = 3, last_failure = 'transient',
             last_error = 'temporary failure: the platform answered 500'
         from numbered n where n.id = t.id and n.number = 3",
    ] {
        let statement = AssertSqlSafe(statement.replace("now()", &now));
        sqlx::query(statement).bind(organization.id).execute(organization.pg()).await.unwrap();
    }
    rebuild_derived_tables(organization.pg(), organization.id).await;
}
