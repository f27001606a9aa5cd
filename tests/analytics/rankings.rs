//! The rankings of accounts and creators, and the metrics of creators, compared with the model.

use std::collections::BTreeMap;

use chrono::Days;
use harness::{Organization, Response, Stack, rebuild_derived_tables, wait_until};
use serde_json::{Map, Value, json};

use super::agree::{indices, join_ids, parse_time, window_query};
use super::model::History;
use super::ranking_model::{Order, Ranked, previous, value};

const METRICS: [&str; 8] =
    ["views", "likes", "comments", "shares", "engagement", "engagement_rate", "followers", "new_posts"];

/// All pages of a ranking.
async fn walk(organization: &Organization, path: &str) -> Vec<Value> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = organization.get(&format!("{path}{cursor}")).await.ok(200);
        entries.extend_from_slice(page.list("/data"));
        let links = page.header("link");
        let Some(next) = page.at("/pagination/next_cursor").as_str() else {
            assert_eq!((page.at("/pagination/has_next"), links.contains("next")), (&json!(false), false));
            return entries;
        };
        assert!(links.contains(&format!("cursor={next}>; rel=\"next\"")), "{links}");
        cursor = format!("&cursor={next}");
    }
}

/// Compares numbers as such: `0.0` is `0`.
fn assert_entries(shown: &[Value], expected: &[Value], path: &str) {
    let normalized = |entries: &[Value]| -> Vec<Value> {
        entries
            .iter()
            .map(|entry| serde_json::from_str(&entry.to_string().replace(".0,", ",")).unwrap())
            .collect()
    };
    let (shown, expected) = (normalized(shown), normalized(expected));
    for (number, (shown, expected)) in shown.iter().zip(&expected).enumerate() {
        assert_eq!(shown, expected, "{path}: entry {number}");
    }
    assert_eq!(shown.len(), expected.len(), "{path}");
}

#[tokio::test]
async fn accounts_are_ranked_by_every_metric_as_in_the_model() {
    for (seed, limits) in [(11, [3, 5]), (12, [100, 1])] {
        let ranked = Ranked::load(seed).await;
        for window in ranked.windows(seed) {
            for metric in METRICS {
                let path = format!("/accounts/top?{}&metric={metric}", window_query(window));
                let all = |_: &Value| true;
                let expected = ranked.top_accounts(window, metric, Order::GAINED, all);
                let page = ranked.get(&format!("{path}&limit=100")).await;
                assert_entries(page.list("/data"), &expected, &path);
                assert_eq!(page.text("/meta/metric"), metric);
                assert_eq!(page.at("/meta/previous_start_date"), &json!(previous(window).0));
                assert_eq!(
                    parse_time(page.at("/meta/data_as_of")),
                    parse_time(&ranked.as_of(all, window.1)),
                    "{path}"
                );
                let pages = walk(&ranked.organization, &format!("{path}&limit={}", limits[0])).await;
                assert_entries(&pages, &expected, &path);
                for order in [Order::ALL, Order::ASCENDING] {
                    let order = Order { min_views: 700, ..order };
                    let path = format!("{path}&{}&min_gained_views=700", order.query());
                    let expected = ranked.top_accounts(window, metric, order, all);
                    assert_eq!(expected.len(), ranked.accounts.len());
                    let pages = walk(&ranked.organization, &format!("{path}&limit={}", limits[1])).await;
                    assert_entries(&pages, &expected, &path);
                }
            }
        }
    }
}

#[tokio::test]
async fn filters_select_the_accounts_that_are_ranked() {
    let ranked = Ranked::load(13).await;
    let window = (ranked.today - Days::new(29), ranked.today);
    let creator = ranked.ids.creators[0];
    let status = |account: &Value| account["tracking"]["status"].as_str().unwrap().to_owned();
    let statuses: BTreeMap<_, usize> = ranked.accounts.iter().fold(BTreeMap::new(), |mut counts, account| {
        *counts.entry(status(account)).or_default() += 1;
        counts
    });
    assert_eq!(statuses.keys().collect::<Vec<_>>(), ["active", "paused", "pending", "unavailable"]);
    let username = ranked.accounts[0]["username"].as_str().unwrap();
    type Filter<'f> = Box<dyn Fn(&Value) -> bool + 'f>;
    let filters: Vec<(String, Filter<'_>)> = vec![
        ("platform=tiktok".to_owned(), Box::new(|account| account["platform"] == "tiktok")),
        (format!("creator_id={creator}"), Box::new(|account| account["creator_id"] == json!(creator))),
        ("category=c1".to_owned(), Box::new(|account| account["category"] == "c1")),
        ("category=c".to_owned(), Box::new(|_| false)),
        ("status=paused".to_owned(), Box::new(|account| status(account) == "paused")),
        (
            "status=unavailable,active&platform=instagram".to_owned(),
            Box::new(|account| {
                ["unavailable", "active"].contains(&status(account).as_str())
                    && account["platform"] == "instagram"
            }),
        ),
        ("status=failing,unsupported,paused_by_creator".to_owned(), Box::new(|_| false)),
        ("metadata.team=t1".to_owned(), Box::new(|account| account["metadata"]["team"] == "t1")),
        (
            "metadata%5Bteam%5D=t0&metadata%5Bmetadata.x%20y%5D=%C3%B6&category=c1".to_owned(),
            Box::new(|account| account["metadata"]["team"] == "t0" && account["category"] == "c1"),
        ),
        ("linked=true".to_owned(), Box::new(|account| !account["creator_id"].is_null())),
        (
            "linked=false&platform=tiktok".to_owned(),
            Box::new(|account| account["creator_id"].is_null() && account["platform"] == "tiktok"),
        ),
        (
            format!("q={}", username[2..].to_uppercase()),
            Box::new(|account| account["username"].as_str().unwrap().contains(&username[2..])),
        ),
        ("q=%25".to_owned(), Box::new(|_| false)),
        ("q=%20".to_owned(), Box::new(|_| true)),
        (
            format!("creator_id={creator}&category=c2&platform=tiktok"),
            Box::new(|account| {
                account["creator_id"] == json!(creator)
                    && account["category"] == "c2"
                    && account["platform"] == "tiktok"
            }),
        ),
    ];
    for (query, filter) in filters {
        for metric in ["views", "new_posts"] {
            let path = format!(
                "/accounts/top?{}&include_all=true&limit=100&metric={metric}&{query}",
                window_query(window)
            );
            let page = ranked.get(&path).await;
            let expected = ranked.top_accounts(window, metric, Order::ALL, &filter);
            assert_entries(page.list("/data"), &expected, &path);
            let as_of = ranked.as_of(&filter, window.1);
            assert_eq!(parse_time(page.at("/meta/data_as_of")), parse_time(&as_of), "{path}");
        }
    }
}

#[tokio::test]
async fn status_filter_follows_tracking_at_once() {
    let ranked = Ranked::load(14).await;
    let path = "/accounts/top?include_all=true&limit=100&status=";
    for (change, status) in [
        ("update scrape_targets set failures = 2, enabled = false where id = $1", "failing"),
        ("update accounts set is_unavailable = true where id = $1", "unavailable"),
        (
            "with a as (update accounts set is_unavailable = false where id = $1 returning creator_id)
             update creators set is_active = false from a where id = a.creator_id",
            "paused_by_creator",
        ),
    ] {
        // An account that is active, or waits for its first scrape, with a creator.
        let account = indices(&ranked.accounts)
            .into_iter()
            .find(|number| number % 5 > 2 && ranked.history.accounts[*number].creator.is_some());
        let id = ranked.ids.accounts[account.unwrap()];
        let listed =
            async |response: Response| response.list("/data").iter().any(|entry| entry["id"] == json!(id));
        assert!(!listed(ranked.get(&format!("{path}{status}")).await).await, "{status}");
        sqlx::query(change).bind(id).execute(ranked.organization.pg()).await.unwrap();
        rebuild_derived_tables(ranked.organization.pg(), ranked.organization.id).await;
        assert!(listed(ranked.get(&format!("{path}{status}")).await).await, "{status}");
        let shown = ranked.get(&format!("/accounts/{id}")).await;
        assert_eq!(shown.text("/data/tracking/status"), status);
    }
}

#[tokio::test]
async fn creators_are_ranked_by_every_metric_as_in_the_model() {
    let ranked = Ranked::load(15).await;
    let Ranked { history: h, ids, .. } = &ranked;
    for window in ranked.windows(15) {
        for metric in METRICS {
            for platform in [None, Some("instagram"), Some("tiktok")] {
                let on = |account: &usize| {
                    platform.is_none_or(|platform| h.accounts[*account].platform == platform)
                };
                let mut creators = Vec::new();
                for (creator, id) in ids.creators.iter().enumerate() {
                    let accounts: Vec<_> = h.accounts_of(creator).into_iter().filter(on).collect();
                    let mut entry = ranked.compared(&accounts, window, metric);
                    let followers =
                        accounts.iter().map(|account| ranked.accounts[*account]["follower_count"].as_i64());
                    let value = value(&entry["metrics"], metric);
                    entry["id"] = json!(id);
                    entry["type"] = json!("creator");
                    entry["name"] = json!(h.creators[creator]);
                    entry["views"] = entry["metrics"]["views"].clone();
                    entry["engagement"] = entry["metrics"]["engagement"].clone();
                    entry["account_count"] = json!(accounts.len());
                    entry["follower_count"] = json!(followers.map(Option::unwrap).sum::<i64>());
                    creators.push((value, (h.creators[creator].to_lowercase(), *id), entry));
                }
                let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
                for order in [Order::GAINED, Order::ALL, Order::ASCENDING] {
                    creators.sort_by_key(|(value, name, _)| (order.place(*value), name.clone()));
                    let entries: Vec<_> = creators.iter().map(|(.., entry)| entry.clone()).collect();
                    let path = format!(
                        "/creators/top?{}&metric={metric}&{}{filter}",
                        window_query(window),
                        order.query()
                    );
                    let response = ranked.get(&path).await;
                    assert_entries(response.list("/data"), &entries, &path);
                    assert_eq!(response.text("/meta/metric"), metric);
                    let pages = walk(&ranked.organization, &format!("{path}&limit=1")).await;
                    assert_entries(&pages, &entries, &path);
                }
            }
        }
    }
}

#[tokio::test]
async fn rankings_are_the_sorted_metrics_of_both_windows() {
    let ranked = Ranked::load(16).await;
    let window = (ranked.today - Days::new(9), ranked.today);
    for (noun, ids) in [("accounts", &ranked.ids.accounts), ("creators", &ranked.ids.creators)] {
        let metrics = async |window| {
            let path = format!("/{noun}/metrics?{}_ids={}", noun.trim_end_matches('s'), join_ids(ids));
            ranked.get(&format!("{path}&{}", window_query(window))).await.at("/data").clone()
        };
        let (current, before) = (metrics(window).await, metrics(previous(window)).await);
        let all = if noun == "accounts" { "&include_all=true&limit=100" } else { "&limit=25" };
        for metric in ["views", "engagement", "followers"] {
            let top = ranked.get(&format!("/{noun}/top?metric={metric}{all}&{}", window_query(window))).await;
            let values: Vec<_> =
                top.list("/data").iter().map(|entry| entry["metrics"][metric].as_i64()).collect();
            assert!(values.is_sorted_by(|one, other| one >= other), "{values:?}");
            assert_eq!(values.len(), ids.len());
            for entry in top.list("/data") {
                for (shown, expected) in [("metrics", &current), ("previous", &before)] {
                    for (name, value) in expected[entry["id"].as_str().unwrap()].as_object().unwrap() {
                        assert_eq!(&entry[shown][name], value, "{noun} {shown} {name}");
                    }
                }
            }
            // The previous window is the window of another request.
            let earlier = ranked
                .get(&format!("/{noun}/top?metric={metric}{all}&{}", window_query(previous(window))))
                .await;
            let by_id = |response: &Response, field: &str| -> Map<String, Value> {
                let entries = response.list("/data").iter();
                entries.map(|entry| (entry["id"].to_string(), entry[field].clone())).collect()
            };
            assert_eq!(by_id(&top, "previous"), by_id(&earlier, "metrics"));
        }
    }
}

#[tokio::test]
async fn rates_need_views_and_may_be_negative() {
    let organization = Stack::shared().organization().await;
    let now = organization.stack.databases.clock.now().await;
    let creators = ["b", "A", "c"].map(str::to_owned).to_vec();
    let mut h = History { creators, ..History::default() };
    // Gains of views and likes.
    for (name, views, likes) in
        [("most", 2_000, 400), ("few", 999, 999), ("none", 0, 50), ("less", 1_000, -10), ("even", 4_000, 800)]
    {
        let creator = ["most", "none"].iter().position(|other| *other == name);
        let account = h.account("tiktok", &format!("{name}{}", now.timestamp_micros()), creator);
        let video = h.video("tiktok", Some(account), false, None);
        let counts =
            |views, likes| std::array::from_fn(|n| [Some(views), Some(likes)].get(n).copied().flatten());
        h.observe(video, now - Days::new(3), counts(100, 100));
        h.observe(video, now - Days::new(1), counts(100 + views, 100 + likes));
    }
    let ids = h.load(&organization).await;
    let ranking = async |query: &str| -> Vec<(usize, Value)> {
        let response =
            organization.get(&format!("/accounts/top?metric=engagement_rate{query}")).await.ok(200);
        let number = |entry: &Value| ids.accounts.iter().position(|id| json!(id) == entry["id"]).unwrap();
        let entries = response.list("/data").iter();
        entries.map(|entry| (number(entry), entry["metrics"]["engagement_rate"].clone())).collect()
    };
    let mut ties = [0, 4];
    ties.sort_by_key(|account| ids.accounts[*account]);
    let by_rate = vec![(ties[0], json!(0.2)), (ties[1], json!(0.2)), (3, json!(-0.01))];
    assert_eq!(ranking("").await, by_rate, "ties are in the order of ids");
    let mut last = [(1, json!(1.0)), (2, Value::Null)];
    last.sort_by_key(|(account, _)| ids.accounts[*account]);
    let all = [&by_rate[..], &last[..]].concat();
    assert_eq!(ranking("&include_all=true").await, all, "unknown rates, and those of few views, come last");
    let ascending = [&by_rate[2..], &by_rate[..2], &last[..]].concat();
    assert_eq!(ranking("&order_direction=asc").await, ascending, "in both directions");
    assert_eq!(ranking("&min_gained_views=1001").await, by_rate[..2]);
    let low: Vec<_> = ranking("&min_gained_views=0").await.iter().map(|(account, _)| *account).collect();
    assert_eq!(low, [1, ties[0], ties[1], 3]);
    let top = organization.get("/creators/top?metric=engagement_rate").await.ok(200);
    let shown: Vec<_> = top
        .list("/data")
        .iter()
        .map(|entry| (&entry["name"], &entry["metrics"]["engagement_rate"]))
        .collect();
    assert_eq!(
        shown,
        [(&json!("b"), &json!(0.2)), (&json!("A"), &Value::Null), (&json!("c"), &Value::Null)],
        "unknown rates come last, by name"
    );
}

#[tokio::test]
async fn cursors_are_bound_to_the_ranking() {
    let ranked = Ranked::load(17).await;
    let path = "/accounts/top?include_all=true&limit=2";
    let page = ranked.get(path).await;
    let cursor = page.text("/pagination/next_cursor");
    for same in ["&metric=views&period=30d", "&limit=5", "&min_gained_views=1000", "&order_direction=desc&q="]
    {
        let path = if same.contains("limit") {
            format!("/accounts/top?include_all=true{same}")
        } else {
            format!("{path}{same}")
        };
        let next = ranked.get(&format!("{path}&cursor={cursor}")).await;
        assert_ne!(next.at("/data/0/id"), page.at("/data/0/id"), "{path}");
    }
    for other in [
        "&metric=likes",
        "&order_direction=asc",
        "&linked=false",
        "&q=a",
        "&period=7d",
        "&include_today=false",
        "&platform=tiktok",
        "&status=paused",
        "&cursor=x",
    ] {
        let path = if other.contains("cursor") {
            format!("{path}{other}")
        } else {
            format!("{path}{other}&cursor={cursor}")
        };
        assert_eq!(ranked.organization.get(&path).await.fields(), ["cursor"], "{path}");
    }
    let ascending = ranked.get("/accounts/top?order_direction=asc&limit=2").await;
    let cursor = ascending.text("/pagination/next_cursor");
    ranked.get(&format!("{path}&order_direction=asc&cursor={cursor}")).await;
    for noun in ["accounts", "creators"] {
        assert_eq!(ranked.get(&format!("/{noun}/top")).await.at("/pagination/limit"), &json!(10));
    }
}

#[tokio::test]
async fn invalid_rankings_name_all_fields_and_foreign_creators() {
    let [organization, other] = [Stack::shared().organization().await, Stack::shared().organization().await];
    let query = "metric=saves&limit=101&status=active,broken&creator_id=x&min_gained_views=-1&include_all=maybe\
        &period=1y&platform=x&order_direction=up&linked=maybe";
    let response = organization.get(&format!("/accounts/top?{query}")).await;
    let mut fields = response.fields();
    fields.sort_unstable();
    assert_eq!(
        fields.join(" "),
        "creator_id include_all limit linked metric min_gained_views order_direction period platform status[1]"
    );
    let response = organization.get("/creators/top?metric=saves&limit=26&cursor=x&order_direction=up").await;
    let mut fields = response.fields();
    fields.sort_unstable();
    assert_eq!(fields, ["cursor", "limit", "metric", "order_direction"]);
    let creator = other.create("/creators", json!({"name": "Ann"})).await;
    organization.get(&format!("/accounts/top?creator_id={creator}")).await.problem(404, "NOT_FOUND");
    assert_eq!(
        other.get(&format!("/accounts/top?creator_id={creator}")).await.ok(200).at("/data"),
        &json!([])
    );
    let metrics = format!("/creators/metrics?creator_ids={creator}");
    assert_eq!(organization.get(&metrics).await.ok(200).at("/meta/not_found"), &json!([creator]));
    let own = other.get(&metrics).await.ok(200);
    assert_eq!((own.at("/meta/not_found"), own.at("/meta/data_as_of")), (&json!([]), &Value::Null));
    let gains = json!({"views": 0, "plays": 0, "likes": 0, "comments": 0, "shares": 0, "engagement": 0, "followers": 0});
    assert_eq!(own.at("/data"), &json!({creator: gains}));
    let posted = other.post(
        "/creators/metrics",
        json!({"creator_ids": [own.json["data"].as_object().unwrap().keys().next()]}),
    );
    assert_eq!(posted.await.ok(200).json, own.json);
}

#[tokio::test]
async fn windows_before_retention_gain_nothing() {
    let mut ranked = Ranked::load(18).await;
    let today = ranked.today;
    let since = today - Days::new(15);
    ranked.history.since = Some(since);
    sqlx::query("update organizations set history_since = $2 where id = $1")
        .bind(ranked.organization.id)
        .bind(since)
        .execute(ranked.organization.pg())
        .await
        .unwrap();
    wait_until("requests know the first day of history", async || {
        let identity = ranked.get("/whoami").await;
        (identity.json["data"]["history_since"] == json!(since)).then_some(())
    })
    .await;
    let ago = |days| today - Days::new(days);
    for window in [(ago(20), ago(10)), (ago(12), today), (ago(9), today), (ago(30), ago(20))] {
        for metric in ["views", "followers", "new_posts"] {
            let path =
                format!("/accounts/top?include_all=true&limit=100&metric={metric}&{}", window_query(window));
            let page = ranked.get(&path).await;
            let expected = ranked.top_accounts(window, metric, Order::ALL, |_| true);
            assert_entries(page.list("/data"), &expected, &path);
            let as_of = ranked.as_of(|_| true, window.1);
            assert_eq!(parse_time(page.at("/meta/data_as_of")), parse_time(&as_of), "{path}");
        }
    }
}
