//! Times the statements of the lists in an organization of 70,000 videos, 5,000 accounts and 5,000 creators, in a database with
//! a larger and many small organizations. Prints the table of docs/measurements/lists.md: `make bench-paging`.

#[path = "../../tests/harness/mod.rs"]
mod harness;

use std::future::Future;
use std::time::{Duration, Instant};

use harness::{TestApi, create_organization, population::Population};
use tidemark::model::video::VideoType;
use tidemark::store::postgres::keyset::{KeysetPosition, PageRequest, SortDirection};
use tidemark::store::records::accounts::{self, AccountFilter, AccountSort};
use tidemark::store::records::creators::{self, CreatorFilter, CreatorSort};
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::records::videos::{self, VideoFilter, VideoSort};
use uuid::Uuid;

const MEASURED: Population = Population { accounts: 5_000, videos: 70_000, on_first_account: 4 };
const LARGER: Population = Population { accounts: 3_000, videos: 300_000, on_first_account: 1 };
const SMALL: Population = Population { accounts: 20, videos: 400, on_first_account: 1 };

const SORTS: [(&str, VideoSort); 4] = [
    ("create_time", VideoSort::CreateTime),
    ("view_count", VideoSort::ViewCount),
    ("like_count", VideoSort::LikeCount),
    ("play_count", VideoSort::PlayCount),
];

/// Query texts with their frequency.
const TEXTS: [(&str, &str); 9] = [
    ("everythird", "in every third caption"),
    ("everyhundredth", "in every hundredth"),
    ("everythousandth", "in every thousandth"),
    ("lastseen", "in the 350 with the fewest views"),
    ("lastposted", "in the 350 posted first"),
    ("nowhere", "in none"),
    ("ß", "in none, one letter"),
    ("😀%_", "in none, emoji and signs"),
    (
        "a caption of which there is only the beginning, since the rest of its hundred and twenty-eight characters is made up by whoever asked",
        "in none, 128 characters",
    ),
];

const TIMES: usize = 40;

#[tokio::main]
async fn main() {
    let api = TestApi::start().await;
    println!("generating records: about two minutes");
    for population in std::iter::once(LARGER).chain(std::iter::repeat_n(SMALL, 20)) {
        let (organization, _) = create_organization(api.pg(), OrganizationChange::default()).await;
        population.insert(api.pg(), organization).await;
    }
    let account = MEASURED.insert(api.pg(), api.organization.id).await;
    sqlx::raw_sql("vacuum analyze").execute(api.pg()).await.unwrap();
    println!("\n| List | Rows | Min ms | Median | p99 |\n|---|---|---|---|---|");
    records(&api).await;
    sorts(&api, account).await;
    texts(&api, account).await;
    filters(&api).await;
}

async fn records(api: &TestApi) {
    for (name, sort) in
        [("added_at", AccountSort::AddedAt), ("last_scrape_time", AccountSort::LastScrapeTime)]
    {
        for direction in [SortDirection::Asc, SortDirection::Desc] {
            let what = format!("accounts by {name} {}", direction.as_str());
            time(&what, || accounts_of(api, AccountFilter::default(), first(sort, direction))).await;
        }
    }
    for q in ["a", "nowhere"] {
        let filter = AccountFilter { q: Some(q.to_owned()), ..AccountFilter::default() };
        let page = first(AccountSort::AddedAt, SortDirection::Desc);
        time(&format!("accounts, q={q}"), || accounts_of(api, filter.clone(), page.clone())).await;
        let filter = CreatorFilter { q: Some(q.to_owned()), ..CreatorFilter::default() };
        let page = first(CreatorSort::Name, SortDirection::Asc);
        time(&format!("creators, q={q}"), || async {
            creators::list(api.pg(), api.organization.id, &filter, &page).await.unwrap().items.len()
        })
        .await;
    }
    let filter = AccountFilter { category: Some("category7".to_owned()), ..AccountFilter::default() };
    let page = first(AccountSort::FollowerCount, SortDirection::Desc);
    time("accounts of a category", || accounts_of(api, filter.clone(), page.clone())).await;
}

async fn sorts(api: &TestApi, account: Uuid) {
    for (scope, account_id) in [("", None), (" of one account", Some(account))] {
        for (name, sort) in SORTS {
            let filter = VideoFilter { account_id, ..VideoFilter::default() };
            for direction in [SortDirection::Desc, SortDirection::Asc] {
                let what = format!("account-videos{scope} by {name} {}", direction.as_str());
                let page = first(sort, direction);
                time(&what, || videos_of(api, VideoType::AccountVideo, &filter, page.clone())).await;
            }
            let after = thousandth_page(api, &filter, sort, account_id.map_or(1_000, |_| 500)).await;
            let page = PageRequest { after, ..first(sort, SortDirection::Desc) };
            let what = format!("the same, desc, page {}", account_id.map_or(1_000, |_| 500));
            time(&what, || videos_of(api, VideoType::AccountVideo, &filter, page.clone())).await;
        }
    }
    for (name, sort) in SORTS {
        let (filter, page) = (VideoFilter::default(), first(sort, SortDirection::Desc));
        time(&format!("videos by {name} desc"), || videos_of(api, VideoType::Video, &filter, page.clone()))
            .await;
    }
}

async fn texts(api: &TestApi, account: Uuid) {
    for (scope, account_id) in [("", None), (" of one account", Some(account))] {
        for (q, occurrence) in TEXTS {
            for (name, sort, direction) in [
                ("create_time desc", VideoSort::CreateTime, SortDirection::Desc),
                ("view_count desc", VideoSort::ViewCount, SortDirection::Desc),
                ("view_count asc", VideoSort::ViewCount, SortDirection::Asc),
            ] {
                let q = Some(q.chars().take(128).collect());
                let filter = VideoFilter { account_id, q, ..VideoFilter::default() };
                let page = first(sort, direction);
                let what = format!("account-videos{scope} by {name}, q {occurrence}");
                time(&what, || videos_of(api, VideoType::AccountVideo, &filter, page.clone())).await;
            }
        }
    }
    let filter = VideoFilter { q: Some("everyhundredth".to_owned()), ..VideoFilter::default() };
    let after = thousandth_page(api, &filter, VideoSort::ViewCount, 10).await;
    let page = PageRequest { after, ..first(VideoSort::ViewCount, SortDirection::Desc) };
    let what = "account-videos by view_count desc, q in every hundredth, page 10";
    time(what, || videos_of(api, VideoType::AccountVideo, &filter, page.clone())).await;
    let total = PageRequest { include_total: true, ..first(VideoSort::ViewCount, SortDirection::Desc) };
    let what = "account-videos with include_total, q in every hundredth";
    time(what, || videos_of(api, VideoType::AccountVideo, &filter, total.clone())).await;
}

async fn filters(api: &TestApi) {
    let creator: Uuid =
        sqlx::query_scalar("select creator_id from accounts where organization_id = $1 offset 2000")
            .bind(api.organization.id)
            .fetch_one(api.pg())
            .await
            .unwrap();
    let page = first(VideoSort::ViewCount, SortDirection::Desc);
    for (what, filter) in [
        ("account-videos of a creator", VideoFilter { creator_id: Some(creator), ..VideoFilter::default() }),
        (
            "account-videos, is_active=false (a tenth)",
            VideoFilter { is_active: Some(false), ..VideoFilter::default() },
        ),
    ] {
        time(what, || videos_of(api, VideoType::AccountVideo, &filter, page.clone())).await;
    }
}

fn first<S>(sort: S, direction: SortDirection) -> PageRequest<S> {
    PageRequest { sort, direction, after: None, offset: 0, limit: 50, include_total: false }
}

async fn accounts_of(api: &TestApi, filter: AccountFilter, page: PageRequest<AccountSort>) -> usize {
    accounts::list(api.pg(), api.organization.id, &api.app.readable, &filter, &page)
        .await
        .unwrap()
        .items
        .len()
}

async fn videos_of(
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

/// The cursor of a page, reached page by page.
async fn thousandth_page(
    api: &TestApi,
    filter: &VideoFilter,
    sort: VideoSort,
    number: i64,
) -> Option<KeysetPosition> {
    let mut page = PageRequest { limit: 200, ..first(sort, SortDirection::Desc) };
    let (view, readable) = (VideoType::AccountVideo, &api.app.readable);
    for _ in 0..number / 4 {
        page.after =
            videos::list(api.pg(), api.organization.id, view, readable, filter, &page).await.unwrap().next;
    }
    page.after
}

/// Repeats an operation and prints a table row.
async fn time<F: Future<Output = usize>>(what: &str, mut act: impl FnMut() -> F) {
    let (mut times, mut rows) = (Vec::new(), act().await);
    for _ in 0..TIMES {
        let start = Instant::now();
        rows = act().await;
        times.push(start.elapsed());
    }
    times.sort();
    let within = |part: usize| milliseconds(times[times.len() * part / 100]);
    println!("| {what} | {rows} | {:.1} | {:.1} | {:.1} |", within(0), within(50), within(99));
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
