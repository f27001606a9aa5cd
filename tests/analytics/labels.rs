//! Filters by the category and the tags of accounts: every endpoint has the figures of the accounts that the model selects.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};
use harness::{Organization, Stack};
use serde_json::{Value, json};

use super::age_model::{AgeModel, AgedVideo, breakouts_agree};
use super::agree::{indices, series_agree, window_query};
use super::agreement::{loaded, windows};
use super::export_files::fetch;
use super::hashtags::describe;
use super::model::{History, Ids, figures};

const TAG: &str = "größe & co.";

/// Whether the account of this number has the labels of a filter.
type Matches = fn(usize) -> bool;

const FILTERS: [(&str, Matches); 7] = [
    ("category=c1", |account| account % 3 == 1),
    ("metadata.team=north", |account| account % 4 < 2),
    ("metadata%5Bteam%5D=north&category=c2", |account| account % 4 < 2 && account % 3 == 2),
    ("metadata%5Bmetadata.team%5D=", |account| account % 4 == 2),
    ("metadata.gr%C3%B6%C3%9Fe%20%26%20co.=a%3Db&metadata.team=north", |account| account.is_multiple_of(4)),
    ("metadata.team=North", |_| false),
    ("metadata.team=video", |_| false),
];

/// An organization whose accounts have labels, and whose tracked videos have tags, too.
async fn load(seed: u64) -> (Organization, History, Ids, NaiveDate) {
    let (organization, history, ids, today) = loaded(seed).await;
    for (number, id) in ids.accounts.iter().enumerate() {
        let mut tags = json!({});
        if number % 4 < 3 {
            tags["team"] = json!(if number % 4 < 2 { "north" } else { "" });
        }
        if number.is_multiple_of(2) {
            tags[TAG] = json!("a=b");
        }
        let category = (number % 3 > 0).then(|| format!("c{}", number % 3));
        let body = json!({"category": category, "metadata": tags});
        organization.patch(&format!("/accounts/{id}"), body).await.ok(200);
    }
    for (video, (id, _)) in
        ids.videos.iter().enumerate().filter(|(video, _)| history.videos[*video].is_tracked)
    {
        let team = if video.is_multiple_of(2) { "video" } else { "north" };
        organization.patch(&format!("/videos/{id}"), json!({"metadata": {"team": team}})).await.ok(200);
    }
    describe(&organization, &history).await;
    (organization, history, ids, today)
}

/// The accounts and videos that a filter selects.
fn select(h: &History, matches: Matches) -> (Vec<usize>, Vec<usize>) {
    let accounts: Vec<_> = indices(&h.accounts).into_iter().filter(|account| matches(*account)).collect();
    let is_on = |video: &usize| h.videos[*video].account.is_some_and(matches);
    (accounts, indices(&h.videos).into_iter().filter(is_on).collect())
}

async fn overview_agrees(
    organization: &Organization,
    h: &History,
    filter: &str,
    (accounts, videos): (&[usize], &[usize]),
    window: (NaiveDate, NaiveDate),
) {
    let path = format!("/overview?{}&{filter}", window_query(window));
    let overview = organization.get(&path).await.ok(200);
    for (figure, value) in figures(h.gains(videos, window.0, window.1)).as_object().unwrap() {
        assert_eq!(overview.at(&format!("/data/{figure}/current")), value, "{figure}: {path}");
    }
    let creators: BTreeSet<_> = accounts.iter().filter_map(|account| h.accounts[*account].creator).collect();
    let individual = videos.iter().filter(|video| h.videos[**video].is_tracked).count();
    for (figure, value) in [
        ("new_posts/current", json!(h.new_posts(videos, window.0, window.1))),
        ("followers/current", json!(h.followers(accounts, window.1))),
        ("totals/accounts", json!(accounts.len())),
        ("totals/creators", json!(creators.len())),
        ("totals/videos", json!(videos.len())),
        ("totals/individual_videos", json!(individual)),
    ] {
        assert_eq!(overview.at(&format!("/data/{figure}")), &value, "{figure}: {path}");
    }
}

fn ids_of(rows: &[Value]) -> BTreeSet<String> {
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

/// The values of a column of a file.
async fn column(organization: &Organization, path: &str, name: &str) -> Vec<String> {
    let file = fetch(organization, path).await.ok(200);
    let mut reader = csv::Reader::from_reader(&file.body[..]);
    let position = reader.headers().unwrap().iter().position(|header| header == name).unwrap();
    reader.records().map(|row| row.unwrap()[position].to_owned()).collect()
}

/// Compares lists, rankings and files.
async fn lists_agree(
    organization: &Organization,
    ids: &Ids,
    filter: &str,
    (accounts, videos): (&[usize], &[usize]),
    window: &str,
) {
    let account_ids: BTreeSet<_> =
        accounts.iter().map(|account| ids.accounts[*account].to_string()).collect();
    let video_ids: BTreeSet<_> = videos.iter().map(|video| ids.videos[*video].0.to_string()).collect();
    for (path, expected) in [
        (format!("/accounts?limit=200&{filter}"), &account_ids),
        (format!("/accounts/top?limit=100&include_all=true&{window}&{filter}"), &account_ids),
        (format!("/content?limit=200&{filter}"), &video_ids),
        (format!("/content/top?limit=100&include_all=true&{window}&{filter}"), &video_ids),
    ] {
        let response = organization.get(&path).await.ok(200);
        assert_eq!(&ids_of(response.list("/data")), expected, "{path}");
    }
    let hashtags = organization.get(&format!("/content/hashtags?{window}&{filter}")).await.ok(200);
    let every = hashtags.list("/data").iter().find(|entry| entry["hashtag"] == "every");
    assert_eq!(every.map_or(0, |entry| entry["videos"].as_u64().unwrap()), videos.len() as u64, "{filter}");
    for (file, name, expected) in [("accounts.csv", "id", &account_ids), ("content.csv", "id", &video_ids)] {
        let shown = column(organization, &format!("{file}?{window}&{filter}"), name).await;
        assert_eq!(&shown.into_iter().collect::<BTreeSet<_>>(), expected, "{file} {filter}");
    }
    let days = column(organization, &format!("daily.csv?{window}&{filter}"), "account_id").await;
    assert!(days.iter().all(|id| account_ids.contains(id)), "{filter}");

    let top = organization.get(&format!("/creators/top?limit=25&{window}&{filter}")).await.ok(200);
    let mut expected: Vec<_> = top
        .list("/data")
        .iter()
        .map(|entry| {
            let numbers = ["views", "engagement", "account_count", "follower_count"]
                .map(|name| entry[name].to_string());
            (entry["id"].as_str().unwrap().to_owned(), numbers.join(" "))
        })
        .collect();
    expected.sort();
    let path = format!("creators.csv?{window}&{filter}");
    let mut columns = Vec::new();
    for name in ["id", "views", "engagement", "account_count", "follower_count"] {
        columns.push(column(organization, &path, name).await);
    }
    let row = |row: usize| {
        (
            columns[0][row].clone(),
            columns[1..].iter().map(|column| column[row].clone()).collect::<Vec<_>>().join(" "),
        )
    };
    let mut shown: Vec<_> = (0..columns[0].len()).map(row).collect();
    shown.sort();
    assert_eq!(shown, expected, "{path}");
}

#[tokio::test]
async fn labels_select_the_same_accounts_everywhere() {
    let (organization, h, ids, today) = load(71).await;
    let window = windows(71, today)[1];
    for (filter, matches) in FILTERS {
        for platform in [None, Some("tiktok")] {
            let (mut accounts, mut videos) = select(&h, matches);
            accounts
                .retain(|account| platform.is_none_or(|platform| h.accounts[*account].platform == platform));
            videos.retain(|video| platform.is_none_or(|platform| h.videos[*video].platform == platform));
            let filter = filter.to_owned()
                + &platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
            let parts = (&accounts[..], &videos[..]);
            series_agree(&organization, &h, &format!("&{filter}"), parts, window).await;
            overview_agrees(&organization, &h, &filter, parts, window).await;
            let without_platform = platform.is_none();
            if without_platform {
                lists_agree(&organization, &ids, &filter, parts, &window_query(window)).await;
            }
        }
    }
    let model = AgeModel::from_history(&h, &ids, today);
    for (filter, matches) in FILTERS {
        let (_, videos) = select(&h, matches);
        let is_match = |video: &AgedVideo| {
            video.posted.is_some() && videos.iter().any(|number| ids.videos[*number].0 == video.id)
        };
        let filter = format!("&posted_after=2000-01-01&{filter}");
        breakouts_agree(&organization, &model, (7, 1.0, 100), &filter, is_match).await;
    }
}

#[tokio::test]
async fn creators_are_ranked_by_the_accounts_with_labels() {
    let (organization, h, ids, today) = load(72).await;
    let window = (today - Days::new(20), today);
    for (filter, matches) in FILTERS {
        let path = format!("/creators/top?{}&{filter}", window_query(window));
        let shown = organization.get(&path).await.ok(200);
        let mut expected = Vec::new();
        for (creator, id) in ids.creators.iter().enumerate() {
            let mut accounts = h.accounts_of(creator);
            accounts.retain(|account| matches(*account));
            if !accounts.is_empty() {
                let videos: Vec<_> = accounts.iter().flat_map(|account| h.videos_of(*account)).collect();
                let views = h.gains(&videos, window.0, window.1)[0];
                expected.push((-views, h.creators[creator].to_lowercase(), json!(id), accounts.len()));
            }
        }
        expected.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        let entries: Vec<_> = shown
            .list("/data")
            .iter()
            .map(|entry| {
                (
                    entry["views"].as_i64().unwrap(),
                    entry["id"].clone(),
                    entry["account_count"].as_u64().unwrap(),
                )
            })
            .collect();
        let expected: Vec<_> =
            expected.into_iter().map(|(views, _, id, accounts)| (-views, id, accounts as u64)).collect();
        assert_eq!(entries, expected, "{path}");
    }
}

#[tokio::test]
async fn too_many_tags_and_tags_without_a_key_are_invalid() {
    let organization = Stack::shared().organization().await;
    let four = "metadata.a=1&metadata.b=1&metadata%5Bc%5D=1&metadata%5Bmetadata.d%5D=1";
    for path in [
        "/overview",
        "/analytics/timeseries",
        "/accounts/top",
        "/creators/top",
        "/content",
        "/content/top",
        "/content/breakouts",
        "/content/hashtags",
    ] {
        let refused = organization.get(&format!("{path}?{four}&category={}", "x".repeat(129))).await;
        let mut fields = refused.fields();
        fields.sort_unstable();
        assert_eq!(fields, ["category", "metadata"], "{path}");
        assert_eq!(
            organization.get(&format!("{path}?metadata=north")).await.fields(),
            ["metadata"],
            "{path}"
        );
        let refused = organization.get(&format!("{path}?metadata.a=1&metadata%5Ba%5D=1")).await;
        assert_eq!(refused.fields(), ["metadata.a"], "{path}");
    }
    for file in ["accounts.csv", "content.csv", "creators.csv", "daily.csv"] {
        assert_eq!(fetch(&organization, &format!("{file}?{four}")).await.fields(), ["metadata"], "{file}");
    }
}

#[tokio::test]
async fn breakouts_name_the_labels_in_effect() {
    let organization = Stack::shared().organization().await;
    let none = organization.get("/content/breakouts").await.ok(200);
    assert_eq!((none.at("/meta/category"), none.at("/meta/metadata")), (&Value::Null, &json!({})));
    let some = organization.get("/content/breakouts?category=a&metadata.b=c").await.ok(200);
    assert_eq!((some.at("/meta/category"), some.at("/meta/metadata")), (&json!("a"), &json!({"b": "c"})));
}
