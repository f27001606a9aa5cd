//! The ranking of videos: every page equals a sort of all videos of the model by what they gained, for every metric, filter and
//! kind of window.

use chrono::{Days, NaiveDate, TimeDelta};
use harness::{Organization, ProxiedApi, Response, Stack, TestApi, rebuild_derived_tables, wait_until};
use serde_json::{Value, json};
use tidemark::app::Settings;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use uuid::Uuid;

use super::agree::{indices, join_ids, parse_time, window_query};
use super::agreement::{loaded, windows};
use super::model::{History, Ids, PLATFORMS, Random, figures};
use super::ranking_model::Order;

const METRICS: [&str; 5] = ["views", "likes", "comments", "shares", "engagement"];
const SURF: &str = "surf, and \"snow\"";

/// A filter, and the videos and accounts of the model that it selects.
struct Selection {
    query: String,
    videos: Vec<usize>,
    /// Videos and accounts that `data_as_of` is about.
    scope: (Vec<usize>, Vec<usize>),
}

/// Whether the accounts of the ranking test have the category.
fn is_surf(account: usize) -> bool {
    account.is_multiple_of(3)
}

/// Whether the videos of the ranking test are images.
fn is_image(video: usize) -> bool {
    video % 4 == 1
}

/// Whether their captions mention the sea.
fn mentions_sea(video: usize) -> bool {
    video % 3 == 1
}

impl Selection {
    /// Selects by what defines the scope.
    fn scoped(
        h: &History,
        query: String,
        account: impl Fn(usize) -> bool,
        video: impl Fn(usize) -> bool,
    ) -> Self {
        let accounts = indices(&h.accounts).into_iter().filter(|one| account(*one)).collect();
        let videos: Vec<_> = indices(&h.videos).into_iter().filter(|one| video(*one)).collect();
        Selection { query, scope: (accounts, videos.clone()), videos }
    }

    /// Selects by values of videos.
    fn filtered(h: &History, query: String, video: impl Fn(usize) -> bool) -> Self {
        let all = Selection::scoped(h, query, |_| true, |_| true);
        Selection { videos: all.videos.into_iter().filter(|one| video(*one)).collect(), ..all }
    }

    fn all(h: &History, ids: &Ids, window: (NaiveDate, NaiveDate)) -> Vec<Self> {
        let on = |video: usize, matches: &dyn Fn(usize) -> bool| h.videos[video].account.is_some_and(matches);
        let posted = |video: usize, (start, end): (NaiveDate, NaiveDate)| {
            h.videos[video].posted.is_some_and(|day| (start..=end).contains(&day))
        };
        let views = |video: usize| h.counts(&[video], NaiveDate::MAX)[0].unwrap_or(0);
        let mut selections = vec![
            Selection::scoped(h, String::new(), |_| true, |_| true),
            Selection::scoped(h, format!("&category={SURF}"), is_surf, |video| on(video, &is_surf)),
            Selection::scoped(h, "&metadata.team=n".to_owned(), is_surf, |video| on(video, &is_surf)),
            Selection::filtered(h, "&kind=tracked".to_owned(), |video| h.videos[video].is_tracked),
            Selection::filtered(h, "&kind=discovered".to_owned(), |video| h.videos[video].account.is_some()),
            Selection::filtered(h, "&posted=in_window".to_owned(), |video| posted(video, window)),
            Selection::filtered(h, "&min_views=2500".to_owned(), |video| views(video) >= 2_500),
            Selection::filtered(h, "&media_type=image".to_owned(), is_image),
            Selection::filtered(h, "&q=THE%20sea".to_owned(), mentions_sea),
            Selection::filtered(h, "&q=sea&media_type=video,image".to_owned(), mentions_sea),
            Selection::filtered(h, "&is_active=false".to_owned(), |video| h.videos[video].is_tracked),
            Selection::filtered(h, "&is_unavailable=false&kind=tracked".to_owned(), |video| {
                h.videos[video].is_tracked
            }),
        ];
        let later = (window.0 + Days::new(2), window.1);
        selections.push(Selection::filtered(
            h,
            format!("&posted=in_window&posted_after={}&posted_before=2100-01-01", later.0),
            |video| posted(video, later),
        ));
        for platform in PLATFORMS {
            selections.push(Selection::scoped(
                h,
                format!("&platform={platform}"),
                |account| h.accounts[account].platform == platform,
                |video| h.videos[video].platform == platform,
            ));
        }
        for (creator, id) in ids.creators.iter().enumerate() {
            let linked = |account: usize| h.accounts[account].creator == Some(creator);
            selections
                .push(Selection::scoped(h, format!("&creator_id={id}"), linked, |video| on(video, &linked)));
        }
        for (account, id) in ids.accounts.iter().enumerate().step_by(5) {
            let is_it = |other: usize| other == account;
            selections
                .push(Selection::scoped(h, format!("&account_id={id}"), is_it, |video| on(video, &is_it)));
        }
        selections
    }

    /// The whole ranking: what each entry gained, and its metrics.
    fn ranking(
        &self,
        h: &History,
        ids: &Ids,
        (metric, order): (&str, Order),
        (start, end): (NaiveDate, NaiveDate),
    ) -> Vec<(i64, Uuid, Value)> {
        let entry = |video: &usize| {
            let metrics = figures(h.gains(&[*video], start, end));
            (metrics[metric].as_i64().unwrap(), ids.videos[*video].0, metrics)
        };
        let mut entries: Vec<_> = self.videos.iter().map(entry).collect();
        entries.retain(|(gain, ..)| order.lists_all() || *gain > 0);
        entries.sort_by_key(|(gain, id, _)| (order.place(Some(*gain)), *id));
        entries
    }
}

/// Reads a ranking from its first to its last page.
async fn walk(organization: &Organization, path: &str, limit: usize) -> Vec<Response> {
    let mut pages = vec![organization.get(&format!("{path}&limit={limit}")).await.ok(200)];
    while let Some(cursor) = pages[pages.len() - 1].at("/pagination/next_cursor").as_str() {
        let next = organization.get(&format!("{path}&limit={limit}&cursor={cursor}")).await.ok(200);
        pages.push(next);
    }
    pages
}

/// Checks the rankings by all metrics with all filters, to their ends.
pub async fn rankings_agree(
    organization: &Organization,
    h: &History,
    ids: &Ids,
    window: (NaiveDate, NaiveDate),
    random: &mut Random,
) {
    for selection in Selection::all(h, ids, window) {
        let metric = METRICS[random.below(5) as usize];
        for order in [Order::GAINED, Order::ALL, Order::ASCENDING] {
            let limit = [7, 20, 100][random.below(3) as usize];
            let path = format!(
                "/content/top?metric={metric}&{}&{}{}",
                order.query(),
                window_query(window),
                selection.query
            );
            let expected = selection.ranking(h, ids, (metric, order), window);
            let pages = walk(organization, &path, limit).await;
            assert_eq!(pages.len(), expected.len().div_ceil(limit).max(1), "{path}");
            let entries: Vec<_> = pages.iter().flat_map(|page| page.list("/data")).collect();
            let found: Vec<_> =
                entries.iter().map(|entry| (&entry["metrics"][metric], &entry["id"])).collect();
            let order: Vec<_> = expected.iter().map(|(gain, id, _)| (json!(gain), json!(id))).collect();
            assert_eq!(found, order.iter().map(|(gain, id)| (gain, id)).collect::<Vec<_>>(), "{path}");
            for (entry, (_, _, metrics)) in entries.iter().zip(&expected) {
                for (name, value) in metrics.as_object().unwrap() {
                    assert_eq!(&entry["metrics"][name], value, "{path}");
                }
            }
            let as_of = h.as_of(&selection.scope.0, &selection.scope.1, window.1);
            for page in pages {
                assert_eq!(parse_time(page.at("/meta/data_as_of")), parse_time(&as_of), "{path}");
                assert_eq!(page.text("/meta/metric"), metric);
                assert_eq!(page.integer("/pagination/limit"), limit as i64);
            }
        }
    }
}

async fn load(seed: u64) -> (Organization, History, Ids, NaiveDate) {
    let (organization, history, ids, today) = loaded(seed).await;
    for (account, id) in ids.accounts.iter().enumerate().filter(|(account, _)| is_surf(*account)) {
        organization
            .patch(&format!("/accounts/{id}"), json!({"category": SURF, "metadata": {"team": "n"}}))
            .await
            .ok(200);
        assert!(account < history.accounts.len());
    }
    for (number, (id, _)) in ids.videos.iter().enumerate() {
        sqlx::query(
            "update videos set media_type = $2, description = $3, description_key = lower($3) where id = $1",
        )
        .bind(id)
        .bind(if is_image(number) { "image" } else { "video" })
        .bind(mentions_sea(number).then(|| format!("By the Sea {number}")))
        .execute(organization.pg())
        .await
        .unwrap();
    }
    rebuild_derived_tables(organization.pg(), organization.id).await;
    organization.wait_applied().await;
    (organization, history, ids, today)
}

#[tokio::test]
async fn rankings_of_content_agree_with_the_model() {
    let (organization, history, ids, today) = load(31).await;
    let mut random = Random(31);
    for window in windows(31, today) {
        rankings_agree(&organization, &history, &ids, window, &mut random).await;
    }
    // Windows without any gain: all videos, by id.
    for start in ["1901-01-01", "2300-01-01"] {
        let start: NaiveDate = start.parse().unwrap();
        rankings_agree(&organization, &history, &ids, (start, start + Days::new(2)), &mut random).await;
    }
}

/// Videos that gained 5 views, and some that gained 6, nothing or less, in no order.
async fn load_ties(seed: u64, count: usize) -> (Organization, History, Ids, NaiveDate) {
    let mut random = Random(seed);
    let gain = |_| if random.chance(80) { 5 } else { [6, 0, -1, -1][random.below(4) as usize] };
    load_gains(count, gain).await
}

/// Videos of one account with gains by their number.
async fn load_gains(
    count: usize,
    mut gain: impl FnMut(usize) -> i64,
) -> (Organization, History, Ids, NaiveDate) {
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    let organization = Stack::shared().organization_with(options, NewKey::named("test")).await;
    let today = organization.stack.databases.clock.now().await.date_naive();
    let mut history = History::default();
    let account = history.account("tiktok", "tied", None);
    for number in 0..count {
        let video = history.video("tiktok", Some(account), false, None);
        for (ago, views) in [(3, 100), (1, 100 + gain(number))] {
            let at = (today - Days::new(ago)).and_hms_opt(0, 0, 0).unwrap().and_utc();
            let mut counts = [None; 9];
            counts[0] = Some(views);
            history.observe(video, at + TimeDelta::milliseconds(number as i64), counts);
        }
    }
    let ids = history.load(&organization).await;
    organization.wait_applied().await;
    (organization, history, ids, today)
}

/// Checks a ranking by views to its end.
async fn ranking_agrees(
    organization: &Organization,
    (h, ids): (&History, &Ids),
    selection: &Selection,
    window: (NaiveDate, NaiveDate),
    limit: usize,
) {
    for order in [Order::GAINED, Order::ALL, Order::ASCENDING] {
        let path = format!("/content/top?{}&{}{}", order.query(), window_query(window), selection.query);
        let expected = selection.ranking(h, ids, ("views", order), window);
        let pages = walk(organization, &path, limit).await;
        let found: Vec<_> =
            pages.iter().flat_map(|page| page.list("/data")).map(|entry| &entry["id"]).collect();
        let expected: Vec<_> = expected.iter().map(|(_, id, _)| json!(id)).collect();
        assert_eq!(found, expected.iter().collect::<Vec<_>>(), "{path}");
    }
}

#[tokio::test]
async fn equal_gains_are_ranked_by_id_across_pages() {
    let (organization, history, ids, today) = load_ties(32, 400).await;
    let window = (today - Days::new(2), today);
    let all = Selection::filtered(&history, String::new(), |_| true);
    for limit in [9, 50] {
        ranking_agrees(&organization, (&history, &ids), &all, window, limit).await;
    }
}

/// More matching videos than are listed: candidates are selected until a page is full.
#[tokio::test]
async fn filters_that_match_thousands_are_ranked_to_their_ends() {
    let (organization, history, ids, today) = load_ties(33, 6_200).await;
    let window = (today - Days::new(2), today);
    let discovered = Selection::filtered(&history, "&kind=discovered".to_owned(), |_| true);
    ranking_agrees(&organization, (&history, &ids), &discovered, window, 100).await;
    let account = Selection::filtered(&history, format!("&account_id={}", ids.accounts[0]), |_| true);
    ranking_agrees(&organization, (&history, &ids), &account, window, 100).await;
}

/// More matching videos than are listed at once, none of them among those with the largest gains.
#[tokio::test]
async fn rare_matches_are_ranked_to_their_ends() {
    const IMAGES: usize = 5_100;
    let (organization, history, ids, today) = load_gains(IMAGES + 1_100, |number| number as i64).await;
    sqlx::query("update videos set media_type = 'image' where organization_id = $1 and view_count < $2")
        .bind(organization.id)
        .bind(100 + IMAGES as i64)
        .execute(organization.pg())
        .await
        .unwrap();
    let images = Selection::filtered(&history, "&media_type=image".to_owned(), |video| video < IMAGES);
    ranking_agrees(&organization, (&history, &ids), &images, (today - Days::new(2), today), 100).await;
}

#[tokio::test]
async fn gains_of_all_content_add_up_to_the_overview() {
    let (organization, _, _, today) = load(34).await;
    let window = window_query((today - Days::new(34), today));
    let overview = organization.get(&format!("/overview?{window}")).await.ok(200);
    for metric in METRICS {
        let path = format!("/content/top?include_all=true&metric={metric}&{window}");
        let pages = walk(&organization, &path, 100).await;
        let entries = pages.iter().flat_map(|page| page.list("/data"));
        let sum: i64 = entries.map(|entry| entry["metrics"][metric].as_i64().unwrap()).sum();
        assert_eq!(sum, overview.integer(&format!("/data/{metric}/current")), "{metric}");
        let first = organization.get(&format!("/content/top?metric={metric}&{window}")).await.ok(200);
        assert_eq!(first.at("/meta/data_as_of"), overview.at("/meta/data_as_of"));
    }
}

/// Also before the relay has removed their history.
#[tokio::test]
async fn deleted_videos_leave_rankings_at_once() {
    let (organization, mut history, mut ids, today) = load(35).await;
    let window = (today - Days::new(30), today);
    let leaves_video =
        |account: &usize| history.videos_of(*account).iter().any(|video| history.videos[*video].is_tracked);
    let stays = indices(&history.accounts).into_iter().find(|account| !leaves_video(account)).unwrap();
    organization.delete(&format!("/accounts/{}", ids.accounts[stays])).await.ok(204);
    history.delete(&mut ids, stays);
    for _ in 0..2 {
        let all = Selection::filtered(&history, String::new(), |_| true);
        ranking_agrees(&organization, (&history, &ids), &all, window, 4).await;
        organization.wait_applied().await;
    }
    // An account whose videos stay, as subjects of their own.
    let moves = indices(&history.accounts)
        .into_iter()
        .find(|account| history.videos_of(*account).iter().any(|video| history.videos[*video].is_tracked));
    let moves = moves.expect("the history has such an account");
    organization.delete(&format!("/accounts/{}", ids.accounts[moves])).await.ok(204);
    history.delete(&mut ids, moves);
    organization.wait_applied().await;
    let all = Selection::filtered(&history, String::new(), |_| true);
    ranking_agrees(&organization, (&history, &ids), &all, window, 4).await;
}

#[tokio::test]
async fn entries_have_the_fields_of_the_contract() {
    let (organization, _, ids, today) = load(36).await;
    let window = window_query((today - Days::new(89), today));
    let response = organization.get(&format!("/content/top?{window}&limit=1")).await.ok(200);
    let entry = response.at("/data/0").as_object().unwrap();
    let mut names: Vec<_> = entry.keys().map(String::as_str).collect();
    names.sort_unstable();
    let expected = "account_id account_username cover_image_url create_time creator_id creator_name description duration \
                    external_id hashtags id media_type metrics platform type unknown_counters url view_count";
    assert_eq!(names.join(" "), expected);
    assert_eq!(entry["type"], "content");
    let record = organization.get(&format!("/content/{}", response.text("/data/0/id"))).await.ok(200);
    for (name, value) in entry.iter().filter(|(name, _)| *name != "metrics") {
        assert_eq!(value, &record.json["data"][name], "{name}");
    }
    let (views, engagement) = (&entry["metrics"]["views"], &entry["metrics"]["engagement"]);
    let rate = engagement.as_f64().unwrap() / views.as_f64().unwrap();
    assert!((entry["metrics"]["engagement_rate"].as_f64().unwrap() - rate).abs() < 1e-6, "{response}");
    assert!(!response.header("link").is_empty());
    let videos = join_ids(ids.videos.iter().map(|video| video.0));
    let metrics = organization.get(&format!("/videos/metrics?video_ids={videos}&{window}")).await.ok(200);
    assert_eq!(metrics.at(&format!("/data/{}/views", response.text("/data/0/id"))), views);
}

#[tokio::test]
async fn invalid_rankings_name_every_field_and_foreign_parents_are_404() {
    let api = TestApi::start().await;
    for (query, fields) in [
        ("limit=0", &["limit"][..]),
        ("limit=101", &["limit"]),
        ("cursor=x", &["cursor"]),
        (
            "metric=followers&posted=never&include_all=1&order_direction=up",
            &["metric", "posted", "include_all", "order_direction"],
        ),
        (
            "start_date=2026-01-02&end_date=2026-01-01&platform=x&account_id=x&kind=x&min_views=x",
            &["start_date", "platform", "account_id", "kind", "min_views"],
        ),
    ] {
        let mut found = api.get(&format!("/v2/content/top?{query}")).await.fields();
        let mut fields = fields.to_vec();
        found.sort_unstable();
        fields.sort_unstable();
        assert_eq!(found, fields, "{query}");
    }
    let organization = Stack::shared().organization().await;
    let other = Stack::shared().organization().await;
    let creator = other.create("/creators", json!({"name": "Ann"})).await;
    for parent in [format!("creator_id={creator}"), format!("account_id={}", Uuid::now_v7())] {
        organization.get(&format!("/content/top?{parent}")).await.problem(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn cursor_is_bound_to_the_ranking() {
    let (organization, _, _, today) = load_ties(37, 5).await;
    let window = window_query((today - Days::new(2), today));
    let path = format!("/content/top?{window}&limit=1&include_all=true");
    let first = organization.get(&path).await.ok(200);
    let cursor = first.text("/pagination/next_cursor");
    organization.get(&format!("{path}&cursor={cursor}&metric=views&posted=any")).await.ok(200);
    for other in ["&metric=likes", "&platform=tiktok", "&posted=in_window", "&order_direction=asc"] {
        let response = organization.get(&format!("{path}{other}&cursor={cursor}")).await;
        assert_eq!(response.fields(), ["cursor"], "{other}");
    }
    let path = format!("/content/top?limit=1&include_all=true&period=7d&cursor={cursor}");
    assert_eq!(organization.get(&path).await.fields(), ["cursor"]);
}

#[tokio::test]
async fn ranking_reads_with_one_permit_at_a_time() {
    let process = ProxiedApi::start(Settings {
        analytics_concurrency: 1,
        rollup_cache_bytes: 0,
        ..Settings::default()
    })
    .await;
    let organization = process.client_for(&Stack::shared().organization().await);
    process.clickhouse.hold();
    let pending = {
        let organization = organization.clone();
        tokio::spawn(async move { organization.get("/content/top").await })
    };
    wait_until("one query runs, the other waits", async || {
        (process.app.history.load() == (1, 1)).then_some(())
    })
    .await;
    process.clickhouse.release();
    pending.await.unwrap().ok(200);
}
