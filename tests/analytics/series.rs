//! Time series in every combination of filter, granularity, grouping and comparison, and filtered overviews, against the model
//! and against each other.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};
use harness::{Organization, Stack, wait_until};
use serde_json::{Value, json};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

use super::agree::{assert_data, indices, parse_time, window_query};
use super::model::{self, History, Ids, PLATFORMS, days};

type Window = (NaiveDate, NaiveDate);

const CATEGORIES: [&str; 2] = ["surf, and sail", "food"];
const FIGURES: [&str; 7] = ["views", "plays", "likes", "comments", "shares", "engagement", "new_posts"];

/// A random history, whose accounts have categories.
struct Test {
    organization: Organization,
    history: History,
    ids: Ids,
    categories: Vec<Option<&'static str>>,
    today: NaiveDate,
}

/// Parameters with the accounts and videos that they select.
struct Scope {
    filter: String,
    accounts: Vec<usize>,
    videos: Vec<usize>,
    /// Whether videos without an account are left out.
    accounts_only: bool,
}

/// The form of rows that a request asks for.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    granularity: Option<&'static str>,
    by_platform: bool,
    compared: bool,
}

async fn unlimited_organization() -> Organization {
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    Stack::shared().organization_with(options, NewKey::named("test")).await
}

impl Test {
    async fn start(seed: u64) -> Self {
        let organization = unlimited_organization().await;
        let today = organization.stack.databases.clock.now().await.date_naive();
        let history = model::random_history(seed, 10, 6, today);
        let ids = history.load(&organization).await;
        let mut categories = Vec::new();
        for (number, id) in ids.accounts.iter().enumerate() {
            let category = CATEGORIES.get(number % 3).copied();
            organization.patch(&format!("/accounts/{id}"), json!({"category": category})).await.ok(200);
            categories.push(category);
        }
        Test { organization, history, ids, categories, today }
    }

    fn ago(&self, days: u64) -> NaiveDate {
        self.today - Days::new(days)
    }

    /// A scope of the accounts that match, and of their discovered videos.
    fn accounts_scope(&self, filter: String, matches: impl Fn(usize) -> bool) -> Scope {
        let accounts: Vec<_> =
            indices(&self.history.accounts).into_iter().filter(|account| matches(*account)).collect();
        let videos = accounts.iter().flat_map(|account| self.history.videos_of(*account)).collect();
        Scope { filter, accounts, videos, accounts_only: true }
    }

    fn scopes(&self) -> Vec<Scope> {
        let Test { history: h, ids, categories, .. } = self;
        let mut scopes = Vec::new();
        for platform in [None, Some(PLATFORMS[0]), Some(PLATFORMS[1])] {
            let on = |other: &str| platform.is_none_or(|platform| platform == other);
            let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
            let accounts = indices(&h.accounts).into_iter().filter(|n| on(h.accounts[*n].platform)).collect();
            let videos = indices(&h.videos).into_iter().filter(|n| on(h.videos[*n].platform)).collect();
            scopes.push(Scope { filter: filter.clone(), accounts, videos, accounts_only: false });
            for category in [CATEGORIES[0], "none"] {
                scopes.push(self.accounts_scope(format!("&category={category}{filter}"), |n| {
                    categories[n] == Some(category) && on(h.accounts[n].platform)
                }));
            }
        }
        for (creator, id) in ids.creators.iter().enumerate() {
            let of_creator = |n: usize| h.accounts[n].creator == Some(creator);
            scopes.push(self.accounts_scope(format!("&creator_id={id}"), of_creator));
            scopes.push(self.accounts_scope(format!("&creator_id={id}&category=food"), |n| {
                of_creator(n) && categories[n] == Some("food")
            }));
        }
        for (account, id) in ids.accounts.iter().enumerate().take(2) {
            scopes.push(self.accounts_scope(format!("&account_id={id}"), |n| n == account));
            let filter = format!("&account_id={id}&category=food&platform=tiktok");
            scopes.push(self.accounts_scope(filter, |n| {
                n == account && categories[n] == Some("food") && h.accounts[n].platform == "tiktok"
            }));
        }
        scopes
    }

    async fn series_agrees(&self, scope: &Scope, window: Window, shape: Shape) {
        series_agrees(&self.organization, &self.history, scope, window, shape).await;
    }

    /// Fetches the rows of a series.
    async fn rows(&self, window: Window, parameters: &str) -> Vec<Value> {
        let path = format!("/analytics/timeseries?{}{parameters}", window_query(window));
        self.organization.get(&path).await.ok(200).list("/data").to_vec()
    }
}

impl Shape {
    /// Every granularity, with the groupings and comparisons in turn.
    fn all(turn: usize) -> impl Iterator<Item = Shape> {
        let granularities = [None, Some("day"), Some("week"), Some("month")];
        granularities.into_iter().enumerate().map(move |(number, granularity)| {
            let turn = turn + number;
            Shape { granularity, by_platform: turn.is_multiple_of(2), compared: (turn / 2).is_multiple_of(2) }
        })
    }

    fn query(self) -> String {
        let Shape { granularity, by_platform, compared } = self;
        let mut query = granularity.map(|unit| format!("&granularity={unit}")).unwrap_or_default();
        query += if by_platform { "&group_by=platform" } else { "" };
        query += if compared { "&compare=previous" } else { "" };
        query
    }

    /// The days of a window that share a day, a week from Monday or a month.
    fn buckets(self, (start, end): Window) -> Vec<Window> {
        let mut buckets = BTreeMap::new();
        for day in days(start, end) {
            let unit = match self.granularity {
                Some("week") => (day.iso_week().year(), day.iso_week().week()),
                Some("month") => (day.year(), day.month()),
                _ => (day.year(), day.ordinal()),
            };
            buckets.entry(unit).or_insert((day, day)).1 = day;
        }
        buckets.into_values().collect()
    }
}

/// The expected row of some days.
fn bucket(h: &History, scope: &Scope, (start, end): Window, shape: Shape) -> Value {
    let mut row = h.series_figures((&scope.accounts, &scope.videos), start, end);
    row["date"] = json!(start);
    if shape.granularity.is_some() {
        row["end_date"] = json!(end);
    }
    if shape.by_platform {
        let figures = |platform: &str| {
            let accounts: Vec<_> =
                scope.accounts.iter().copied().filter(|n| h.accounts[*n].platform == platform).collect();
            let videos: Vec<_> =
                scope.videos.iter().copied().filter(|n| h.videos[*n].platform == platform).collect();
            h.series_figures((&accounts, &videos), start, end)
        };
        row["platforms"] = json!({"instagram": figures("instagram"), "tiktok": figures("tiktok")});
    }
    row
}

fn previous((start, end): Window) -> Window {
    let length = Days::new(days(start, end).len() as u64);
    (start - length, end - length)
}

async fn series_agrees(
    organization: &Organization,
    h: &History,
    scope: &Scope,
    window: Window,
    shape: Shape,
) {
    let length = Days::new(days(window.0, window.1).len() as u64);
    let row = |(start, end): Window| {
        let mut row = bucket(h, scope, (start, end), shape);
        if shape.compared {
            row["previous"] = bucket(h, scope, (start - length, end - length), shape);
        }
        row
    };
    let rows: Vec<_> = shape.buckets(window).into_iter().map(row).collect();
    let path = format!("/analytics/timeseries?{}{}{}", window_query(window), scope.filter, shape.query());
    assert_data(organization, &path, json!(rows), h.as_of(&scope.accounts, &scope.videos, window.1)).await;
}

#[tokio::test]
async fn series_agree_with_the_model_in_every_combination() {
    let mut test = Test::start(31).await;
    let windows =
        [(test.ago(34), test.ago(3)), (test.ago(12), test.today + Days::new(4)), (test.ago(5), test.ago(5))];
    let mut turn = 0;
    for scope in test.scopes() {
        for window in windows {
            for shape in Shape::all(turn) {
                test.series_agrees(&scope, window, shape).await;
            }
            turn += 1;
        }
    }
    // Windows before the start of history, and those that contain it.
    let since = test.ago(20);
    limit_history(&test.organization, since).await;
    test.history.since = Some(since);
    let all = &test.scopes()[0];
    for window in [(test.ago(34), test.ago(3)), (test.ago(15), test.today), (test.ago(30), test.ago(22))] {
        for shape in Shape::all(0).chain(Shape::all(1)) {
            test.series_agrees(all, window, shape).await;
        }
    }
}

async fn limit_history(organization: &Organization, since: NaiveDate) {
    sqlx::query(
        "update organizations set history_since = $2, history_since_set_at = now() - interval '1 minute'
         where id = $1",
    )
    .bind(organization.id)
    .bind(since)
    .execute(organization.pg())
    .await
    .unwrap();
    wait_until("the API returns the start of history", || async {
        let response = organization.get("/whoami").await.ok(200);
        (response.json["data"]["history_since"] == json!(since)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn buckets_cross_years_and_leap_days() {
    let organization = unlimited_organization().await;
    let mut h = History::default();
    let noon = |text: &str| -> DateTime<Utc> { format!("{text}T12:00:00Z").parse().unwrap() };
    let account = h.account("tiktok", "ann", None);
    let alone = h.video("instagram", None, true, Some("2024-02-29".parse().unwrap()));
    let video = h.video("tiktok", Some(account), false, Some("2023-12-31".parse().unwrap()));
    for (count, day) in (1..).zip([
        "2023-01-01",
        "2023-12-24",
        "2023-12-31",
        "2024-01-01",
        "2024-01-07",
        "2024-01-08",
        "2024-02-28",
        "2024-02-29",
        "2024-03-01",
        "2024-12-31",
        "2025-02-28",
        "2025-03-01",
    ]) {
        h.follow(account, noon(day), Some(100 * count));
        h.observe(video, noon(day), [Some(count * count); 9]);
        h.observe(alone, noon(day), [Some(count * 7); 9]);
    }
    h.load(&organization).await;
    let scope = Scope {
        filter: String::new(),
        accounts: vec![account],
        videos: vec![alone, video],
        accounts_only: false,
    };
    for (start, end) in [
        ("2023-12-27", "2024-01-09"),
        ("2024-02-29", "2024-02-29"),
        ("2024-01-02", "2024-01-03"),
        ("2024-02-29", "2025-03-01"),
        ("2023-03-01", "2024-02-29"),
        ("2022-11-30", "2023-01-02"),
    ] {
        let window = (start.parse().unwrap(), end.parse().unwrap());
        for turn in 0..2 {
            for shape in Shape::all(turn) {
                series_agrees(&organization, &h, &scope, window, shape).await;
            }
        }
    }
}

#[tokio::test]
async fn platforms_weeks_and_months_add_up_to_days() {
    let test = Test::start(32).await;
    let window = (test.ago(34), test.today);
    let sum =
        |rows: &[&Value], figure: &str| -> i64 { rows.iter().map(|row| row[figure].as_i64().unwrap()).sum() };
    let daily = test.rows(window, "&group_by=platform").await;
    for row in &daily {
        let platforms = [&row["platforms"]["instagram"], &row["platforms"]["tiktok"]];
        for figure in FIGURES.into_iter().chain(["observed"]) {
            assert_eq!(sum(&platforms, figure), row[figure].as_i64().unwrap(), "{figure}: {row}");
        }
        let followers = model::sum_known(platforms.map(|platform| platform["followers"].as_i64()));
        assert_eq!(json!(followers), row["followers"], "{row}");
    }
    for granularity in ["week", "month"] {
        let rows = test.rows(window, &format!("&granularity={granularity}")).await;
        let (mut first, mut covered) = (window.0, 0);
        for row in &rows {
            assert_eq!(row["date"], json!(first), "{row}");
            let until: NaiveDate = row["end_date"].as_str().unwrap().parse().unwrap();
            let own: Vec<_> = daily[covered..].iter().take(days(first, until).len()).collect();
            for figure in FIGURES {
                assert_eq!(sum(&own, figure), row[figure].as_i64().unwrap(), "{figure}: {row}");
            }
            assert_eq!(own.last().unwrap()["followers"], row["followers"], "{row}");
            let most = own.iter().map(|day| day["observed"].as_i64()).max().unwrap();
            assert_eq!(json!(most), row["observed"], "{row}");
            (first, covered) = (until + Days::new(1), covered + own.len());
        }
        assert_eq!((covered, first), (daily.len(), window.1 + Days::new(1)), "{granularity}");
    }
}

#[tokio::test]
async fn previous_rows_equal_the_window_before() {
    let test = Test::start(33).await;
    let window = (test.ago(16), test.ago(1));
    for parameters in ["", "&granularity=day", "&group_by=platform", "&platform=tiktok", "&category=food"] {
        let plain = test.rows(window, parameters).await;
        let before = test.rows(previous(window), parameters).await;
        let mut compared = test.rows(window, &format!("{parameters}&compare=previous")).await;
        let shown: Vec<_> =
            compared.iter_mut().map(|row| row.as_object_mut().unwrap().remove("previous").unwrap()).collect();
        assert_eq!((shown, compared), (before, plain), "{parameters}");
    }
}

#[tokio::test]
async fn both_values_are_gains_and_cumulative_rows() {
    let test = Test::start(34).await;
    let Ids { accounts, creators, videos } = &test.ids;
    let window = window_query((test.ago(34), test.today));
    for path in [
        format!("/videos/{}/analytics?{window}", videos[0].0),
        format!("/accounts/{}/analytics?{window}", accounts[1]),
        format!("/creators/{}/analytics?{window}", creators[0]),
    ] {
        let rows = async |values: &str| {
            let response = test.organization.get(&format!("{path}&values={values}")).await.ok(200);
            assert_eq!(response.text("/meta/values"), values);
            response.list("/data").to_vec()
        };
        let (gains, cumulative, mut both) =
            (rows("gains").await, rows("cumulative").await, rows("both").await);
        for (row, expected) in both.iter_mut().zip(cumulative) {
            let levels = row.as_object_mut().unwrap().remove("levels").unwrap();
            row.as_object_mut().unwrap().remove("since");
            for (counter, level) in levels.as_object().unwrap() {
                assert_eq!(level, &expected[counter], "{counter} of {path}");
            }
            assert_eq!(levels.as_object().unwrap().len(), 9);
            assert_eq!(row["observed"], expected["observed"], "{path}");
        }
        assert_eq!(both, gains, "{path}");
    }
}

/// The figures and totals of an overview.
#[tokio::test]
async fn filtered_overviews_agree_with_the_model() {
    let test = Test::start(35).await;
    let h = &test.history;
    for scope in test.scopes().iter().filter(|scope| scope.accounts_only) {
        let window = (test.ago(13), test.ago(2));
        let path = format!("/overview?{}{}", window_query(window), scope.filter);
        let response = test.organization.get(&path).await.ok(200);
        let expected = |(start, end)| h.series_figures((&scope.accounts, &scope.videos), start, end);
        let (current, before) = (expected(window), expected(previous(window)));
        for figure in FIGURES.into_iter().chain(["engagement_rate", "followers"]) {
            let shown = response.at(&format!("/data/{figure}"));
            assert_eq!(
                (&shown["current"], &shown["previous"]),
                (&current[figure], &before[figure]),
                "{figure} of {response}"
            );
        }
        let gained = |(start, end)| -> i64 {
            scope.accounts.iter().map(|account| h.follower_gain(*account, start, end)).sum()
        };
        let shown = response.at("/data/followers_gained");
        assert_eq!(
            (&shown["current"], &shown["previous"]),
            (&json!(gained(window)), &json!(gained(previous(window)))),
            "{response}"
        );
        let mut creators: Vec<_> = scope.accounts.iter().filter_map(|n| h.accounts[*n].creator).collect();
        creators.sort_unstable();
        creators.dedup();
        assert_eq!(
            response.at("/data/totals"),
            &json!({
                "accounts": scope.accounts.len(),
                "active_accounts": scope.accounts.iter().filter(|n| h.accounts[**n].is_active).count(),
                "creators": creators.len(), "videos": scope.videos.len(), "account_videos": scope.videos.len(),
                "individual_videos": scope.videos.iter().filter(|n| h.videos[**n].is_tracked).count(),
            }),
            "{path}"
        );
        let as_of = h.as_of(&scope.accounts, &scope.videos, window.1);
        assert_eq!(parse_time(response.at("/meta/data_as_of")), parse_time(&as_of), "{path}");
    }
}

#[tokio::test]
async fn invalid_series_parameters_are_all_reported() {
    let organization = unlimited_organization().await;
    let long = "x".repeat(129);
    let path = format!(
        "/analytics/timeseries?period=1d&platform=x&account_id=1&creator_id=2&category={long}\
         &group_by=account&compare=next&granularity=year"
    );
    let fields = organization.get(&path).await.fields();
    assert_eq!(
        fields,
        ["period", "platform", "account_id", "creator_id", "category", "group_by", "compare", "granularity"]
    );
    let path = format!("/overview?period=1d&account_id=1&creator_id=&category={long}");
    let fields = organization.get(&path).await.fields();
    assert_eq!(fields, ["period", "account_id", "creator_id", "category"]);
}

#[tokio::test]
async fn foreign_accounts_and_creators_are_not_found() {
    let (own, other) = (unlimited_organization().await, unlimited_organization().await);
    let body = json!({"platform": "tiktok", "username": "ann"});
    let account = own.post("/accounts", body).await.ok(201).text("/data/id").to_owned();
    let creator = own.post("/creators", json!({"name": "Ann"})).await.ok(201).text("/data/id").to_owned();
    for path in ["/overview", "/analytics/timeseries"] {
        let get = async |organization: &Organization, filter: String| {
            organization.get(&format!("{path}?{filter}")).await
        };
        for filter in [format!("account_id={account}"), format!("creator_id={creator}")] {
            get(&own, filter.clone()).await.ok(200);
            get(&other, filter).await.problem(404, "NOT_FOUND");
        }
        let unknown = Uuid::now_v7();
        get(&own, format!("account_id={account}&creator_id={unknown}")).await.problem(404, "NOT_FOUND");
        get(&own, format!("account_id={unknown}&creator_id={creator}")).await.problem(404, "NOT_FOUND");
        get(&own, format!("account_id={account}&creator_id={creator}&category=")).await.ok(200);
    }
}
