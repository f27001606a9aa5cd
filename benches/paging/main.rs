//! Times the statements of the lists in an organization of 70,000 videos, 5,000 accounts and 5,000 creators, in a database with
//! a larger and many small organizations. Prints the table of docs/measurements/lists.md: `make bench-paging`.

use std::future::Future;
use std::time::{Duration, Instant};

use chrono::{Days, Utc};
use harness::{TestApi, create_organization, population::Population};
use tidemark::model::account::AccountLabels;
use tidemark::model::content::ContentKind;
use tidemark::model::date_or_time::DateOrTime;
use tidemark::model::video::VideoType;
use tidemark::store::postgres::keyset::{KeysetPosition, PageRequest, SortDirection};
use tidemark::store::records::accounts::{self, AccountFilter, AccountSort};
use tidemark::store::records::content::{self, Candidate, ContentFilter, ContentSort};
use tidemark::store::records::creators::{self, CreatorFilter, CreatorSort};
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::records::videos::{self, VideoFilter, VideoSort};
use uuid::Uuid;

fn category(name: &str) -> AccountLabels {
    AccountLabels { category: Some(name.to_owned()), ..AccountLabels::default() }
}

const MEASURED: Population = Population { accounts: 5_000, videos: 70_000, on_first_account: 4 };
const LARGER: Population = Population { accounts: 3_000, videos: 300_000, on_first_account: 1 };
const SMALL: Population = Population { accounts: 20, videos: 400, on_first_account: 1 };

const SORTS: [(&str, VideoSort); 4] = [
    ("create_time", VideoSort::CreateTime),
    ("view_count", VideoSort::ViewCount),
    ("like_count", VideoSort::LikeCount),
    ("play_count", VideoSort::PlayCount),
];

/// Values of `q` and where they occur.
const QUERY_TEXTS: [(&str, &str); 9] = [
    ("everythird", "in every third caption"),
    ("everyhundredth", "in every hundredth"),
    ("everythousandth", "in every thousandth"),
    ("lastseen", "in the 350 with the fewest views"),
    ("lastposted", "in the 350 posted first"),
    ("nowhere", "in none"),
    ("ß", "in none, one letter"),
    ("😀%_", "in none, emoji and wildcards"),
    (
        "a caption that starts like a generated one and then continues with other words, so that no caption contains all 128 characters of it",
        "in none, 128 characters",
    ),
];

const REPETITIONS: usize = 40;

#[tokio::main]
async fn main() {
    let api = TestApi::start().await;
    println!("generating records: about two minutes");
    for population in std::iter::once(LARGER).chain(std::iter::repeat_n(SMALL, 20)) {
        let (organization, _) = create_organization(api.pg(), OrganizationChange::default()).await;
        population.insert(api.pg(), organization).await;
    }
    let account = MEASURED.insert(api.pg(), api.organization.id).await;
    add_hashtags(&api).await;
    sqlx::raw_sql("vacuum analyze").execute(api.pg()).await.unwrap();
    println!("\n| List | Rows | Min ms | Median | p99 |\n|---|---|---|---|---|");
    measure_records(&api).await;
    measure_sorts(&api, account).await;
    measure_query_texts(&api, account).await;
    measure_filters(&api).await;
    measure_content_sorts(&api, account).await;
    measure_content_filters(&api).await;
}

/// Gives every third and every thousandth video a hashtag.
async fn add_hashtags(api: &TestApi) {
    sqlx::query(
        "update videos set hashtags = array_remove(array[
             case when internal_id % 3 = 0 then 'third' end, case when internal_id % 1000 = 0 then 'thousandth' end
         ], null) where organization_id = $1",
    )
    .bind(api.organization.id)
    .execute(api.pg())
    .await
    .unwrap();
}

async fn measure_records(api: &TestApi) {
    for (name, sort) in
        [("added_at", AccountSort::AddedAt), ("last_scrape_time", AccountSort::LastScrapeTime)]
    {
        for direction in [SortDirection::Asc, SortDirection::Desc] {
            let label = format!("accounts by {name} {}", direction.as_str());
            measure(&label, || count_accounts(api, AccountFilter::default(), first_page(sort, direction)))
                .await;
        }
    }
    for q in ["a", "nowhere"] {
        let filter = AccountFilter { q: Some(q.to_owned()), ..AccountFilter::default() };
        let page = first_page(AccountSort::AddedAt, SortDirection::Desc);
        measure(&format!("accounts, q={q}"), || count_accounts(api, filter.clone(), page.clone())).await;
        let filter = CreatorFilter { q: Some(q.to_owned()), ..CreatorFilter::default() };
        let page = first_page(CreatorSort::Name, SortDirection::Asc);
        measure(&format!("creators, q={q}"), || async {
            creators::list(api.pg(), api.organization.id, &filter, &page).await.unwrap().items.len()
        })
        .await;
    }
    let filter = AccountFilter { labels: category("category7"), ..AccountFilter::default() };
    let page = first_page(AccountSort::FollowerCount, SortDirection::Desc);
    measure("accounts of a category", || count_accounts(api, filter.clone(), page.clone())).await;
}

async fn measure_sorts(api: &TestApi, account: Uuid) {
    for (scope, account_id) in [("", None), (" of one account", Some(account))] {
        for (name, sort) in SORTS {
            let filter = VideoFilter { account_id, ..VideoFilter::default() };
            for direction in [SortDirection::Desc, SortDirection::Asc] {
                let label = format!("account-videos{scope} by {name} {}", direction.as_str());
                let page = first_page(sort, direction);
                measure(&label, || count_videos(api, VideoType::AccountVideo, &filter, page.clone())).await;
            }
            let after = cursor_of_page(api, &filter, sort, account_id.map_or(1_000, |_| 500)).await;
            let page = PageRequest { after, ..first_page(sort, SortDirection::Desc) };
            let label =
                format!("account-videos{scope} by {name} desc, page {}", account_id.map_or(1_000, |_| 500));
            measure(&label, || count_videos(api, VideoType::AccountVideo, &filter, page.clone())).await;
        }
    }
    for (name, sort) in SORTS {
        let (filter, page) = (VideoFilter::default(), first_page(sort, SortDirection::Desc));
        measure(&format!("videos by {name} desc"), || {
            count_videos(api, VideoType::Video, &filter, page.clone())
        })
        .await;
    }
}

async fn measure_query_texts(api: &TestApi, account: Uuid) {
    for (scope, account_id) in [("", None), (" of one account", Some(account))] {
        for (q, occurrence) in QUERY_TEXTS {
            for (name, sort, direction) in [
                ("create_time desc", VideoSort::CreateTime, SortDirection::Desc),
                ("view_count desc", VideoSort::ViewCount, SortDirection::Desc),
                ("view_count asc", VideoSort::ViewCount, SortDirection::Asc),
            ] {
                let q = Some(q.chars().take(128).collect());
                let filter = VideoFilter { account_id, q, ..VideoFilter::default() };
                let page = first_page(sort, direction);
                let label = format!("account-videos{scope} by {name}, q {occurrence}");
                measure(&label, || count_videos(api, VideoType::AccountVideo, &filter, page.clone())).await;
            }
        }
    }
    let filter = VideoFilter { q: Some("everyhundredth".to_owned()), ..VideoFilter::default() };
    let after = cursor_of_page(api, &filter, VideoSort::ViewCount, 10).await;
    let page = PageRequest { after, ..first_page(VideoSort::ViewCount, SortDirection::Desc) };
    let label = "account-videos by view_count desc, q in every hundredth, page 10";
    measure(label, || count_videos(api, VideoType::AccountVideo, &filter, page.clone())).await;
    let total = PageRequest { include_total: true, ..first_page(VideoSort::ViewCount, SortDirection::Desc) };
    let label = "account-videos with include_total, q in every hundredth";
    measure(label, || count_videos(api, VideoType::AccountVideo, &filter, total.clone())).await;
}

async fn measure_filters(api: &TestApi) {
    let creator: Uuid =
        sqlx::query_scalar("select creator_id from accounts where organization_id = $1 offset 2000")
            .bind(api.organization.id)
            .fetch_one(api.pg())
            .await
            .unwrap();
    let page = first_page(VideoSort::ViewCount, SortDirection::Desc);
    for (label, filter) in [
        ("account-videos of a creator", VideoFilter { creator_id: Some(creator), ..VideoFilter::default() }),
        (
            "account-videos, is_active=false (a tenth)",
            VideoFilter { is_active: Some(false), ..VideoFilter::default() },
        ),
    ] {
        measure(label, || count_videos(api, VideoType::AccountVideo, &filter, page.clone())).await;
    }
}

async fn measure_content_sorts(api: &TestApi, account: Uuid) {
    let creator: Uuid = sqlx::query_scalar("select creator_id from accounts where id = $1")
        .bind(account)
        .fetch_one(api.pg())
        .await
        .unwrap();
    let all = ContentFilter::default();
    for (scope, filter, pages) in [
        ("", all.clone(), 1_000),
        (" of one account", ContentFilter { account_id: Some(account), ..all.clone() }, 500),
        (" of one creator", ContentFilter { creator_id: Some(creator), ..all }, 500),
    ] {
        let sorts = SORTS.map(|(name, sort)| (name, ContentSort::As(sort)));
        for (name, sort) in sorts.into_iter().chain([("added_at", ContentSort::AddedAt)]) {
            for direction in [SortDirection::Desc, SortDirection::Asc] {
                let mut page = first_page(sort, direction);
                let label = format!("content{scope} by {name} {}", direction.as_str());
                measure(&label, || count_content(api, &filter, page.clone())).await;
                page.after = cursor_of_content_page(api, &filter, page.clone(), pages).await;
                let label = format!("{label}, page {pages}");
                measure(&label, || count_content(api, &filter, page.clone())).await;
            }
        }
    }
}

async fn measure_content_filters(api: &TestApi) {
    let all = ContentFilter::default;
    let day = |ago| Some(DateOrTime::Date((Utc::now() - Days::new(ago)).date_naive()));
    let by_views = ContentSort::As(VideoSort::ViewCount);
    let by_create_time = ContentSort::As(VideoSort::CreateTime);
    let tagged = |tag: &str| ContentFilter { hashtag: Some(vec![tag.to_owned()]), ..all() };
    for (label, filter, sort) in [
        ("kind=tracked (a fifth)", ContentFilter { kind: Some(ContentKind::Tracked), ..all() }, by_views),
        ("kind=tracked", ContentFilter { kind: Some(ContentKind::Tracked), ..all() }, ContentSort::AddedAt),
        ("is_unavailable=true (none)", ContentFilter { is_unavailable: Some(true), ..all() }, by_views),
        ("media_type in none", ContentFilter { media_type: Some(vec!["x".to_owned()]), ..all() }, by_views),
        ("category of a 500th", ContentFilter { labels: category("category7"), ..all() }, by_views),
        ("category of none", ContentFilter { labels: category("x"), ..all() }, by_views),
        ("posted in the last 7 days", ContentFilter { posted_after: day(7), ..all() }, by_views),
        ("posted in the last 600 days", ContentFilter { posted_after: day(600), ..all() }, by_views),
        ("posted over 600 days ago", ContentFilter { posted_before: day(600), ..all() }, by_create_time),
        ("min_views of a 70th", ContentFilter { min_views: Some(69_000), ..all() }, by_create_time),
        ("min_views of half", ContentFilter { min_views: Some(35_000), ..all() }, by_create_time),
        ("q in every hundredth", ContentFilter { q: Some("everyhundredth".to_owned()), ..all() }, by_views),
        ("hashtag of a third", tagged("third"), by_views),
        ("hashtag of a thousandth", tagged("thousandth"), by_views),
        ("hashtag of a thousandth", tagged("thousandth"), by_create_time),
        ("hashtag of none", tagged("none"), by_views),
    ] {
        let page = first_page(sort, SortDirection::Desc);
        let label =
            format!("content by {} desc, {label}", if sort == by_views { "view_count" } else { "time" });
        measure(&label, || count_content(api, &filter, page.clone())).await;
    }
    let (pg, organization, filter) = (api.pg(), api.organization.id, all());
    measure("content by id, 100 rows", || async {
        content::list_by_id(pg, organization, &filter, None, 100).await.unwrap().len()
    })
    .await;
    let found = content::list_matching(pg, organization, &filter, 1_000).await.unwrap();
    let candidates: Vec<_> = found.into_iter().map(|video| Candidate::new(video, 1)).collect();
    measure("100 of 1,000 candidates of a ranking", || async {
        content::select_candidates(pg, organization, &filter, &candidates, None, 100).await.unwrap().len()
    })
    .await;
}

async fn count_content(api: &TestApi, filter: &ContentFilter, page: PageRequest<ContentSort>) -> usize {
    let (organization, readable) = (api.organization.id, &api.app.readable);
    content::list(api.pg(), organization, readable, filter, &page).await.unwrap().items.len()
}

/// The cursor of a page of 50, reached by reading the pages before it.
async fn cursor_of_content_page(
    api: &TestApi,
    filter: &ContentFilter,
    page: PageRequest<ContentSort>,
    number: usize,
) -> Option<KeysetPosition> {
    let (organization, readable) = (api.organization.id, &api.app.readable);
    let mut page = PageRequest { limit: 200, ..page };
    for _ in 0..number / 4 {
        page.after = content::list(api.pg(), organization, readable, filter, &page).await.unwrap().next;
    }
    page.after
}

fn first_page<S>(sort: S, direction: SortDirection) -> PageRequest<S> {
    PageRequest { sort, direction, after: None, offset: 0, limit: 50, include_total: false }
}

async fn count_accounts(api: &TestApi, filter: AccountFilter, page: PageRequest<AccountSort>) -> usize {
    accounts::list(api.pg(), api.organization.id, &api.app.readable, &filter, &page)
        .await
        .unwrap()
        .items
        .len()
}

async fn count_videos(
    api: &TestApi,
    view: VideoType,
    filter: &VideoFilter,
    page: PageRequest<VideoSort>,
) -> usize {
    videos::list(api.pg(), api.organization.id, view, &api.app.readable, filter, &page)
        .await
        .unwrap()
        .items
        .len()
}

/// The cursor of a page, reached by reading the pages before it.
async fn cursor_of_page(
    api: &TestApi,
    filter: &VideoFilter,
    sort: VideoSort,
    number: i64,
) -> Option<KeysetPosition> {
    let mut page = PageRequest { limit: 200, ..first_page(sort, SortDirection::Desc) };
    let (view, readable) = (VideoType::AccountVideo, &api.app.readable);
    for _ in 0..number / 4 {
        page.after =
            videos::list(api.pg(), api.organization.id, view, readable, filter, &page).await.unwrap().next;
    }
    page.after
}

/// Repeats an operation and prints a table row.
async fn measure<F: Future<Output = usize>>(label: &str, mut operation: impl FnMut() -> F) {
    let (mut times, mut rows) = (Vec::new(), operation().await);
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        rows = operation().await;
        times.push(start.elapsed());
    }
    times.sort();
    let percentile = |percent: usize| milliseconds(times[times.len() * percent / 100]);
    println!("| {label} | {rows} | {:.1} | {:.1} | {:.1} |", percentile(0), percentile(50), percentile(99));
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
