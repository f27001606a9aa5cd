//! Every endpoint answers what the model says, over random histories and random windows; days add up to windows, and
//! accounts to the organization.

use chrono::{Days, NaiveDate};
use serde_json::{Map, Value, json};
use tidemark::store::keys::NewKey;
use tidemark::store::organizations::OrganizationChange;

use super::model::{self, Dice, History, Ids, PLATFORMS, counters, days, figures};
use crate::harness::answer::Answer;
use crate::harness::{Organization, Stack};

/// A random history in an organization of its own, which may be asked as often as a test likes.
async fn loaded(seed: u64) -> (Organization, History, Ids, NaiveDate) {
    let stack = Stack::shared();
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    let organization = stack.organization_with(options, NewKey::named("test")).await;
    let today = stack.stores.clock.now().await.date_naive();
    let history = model::random(seed, 12, 10, today);
    let ids = history.load(&organization).await;
    (organization, history, ids, today)
}

/// The windows that a history is asked about: the named ones, and some that begin and end anywhere.
fn windows(seed: u64, today: NaiveDate) -> Vec<(NaiveDate, NaiveDate)> {
    let mut dice = Dice(seed);
    let mut windows = vec![(today - Days::new(6), today), (today - Days::new(89), today + Days::new(3))];
    windows.extend((0..3).map(|_| {
        let start = today - Days::new(dice.below(40) as u64);
        (start, start + Days::new(dice.below(20) as u64))
    }));
    windows
}

fn query((start, end): (NaiveDate, NaiveDate)) -> String {
    format!("start_date={start}&end_date={end}")
}

fn list(ids: impl IntoIterator<Item = impl ToString>) -> String {
    ids.into_iter().map(|id| id.to_string()).collect::<Vec<_>>().join(",")
}

fn all<T>(things: &[T]) -> Vec<usize> {
    (0..things.len()).collect()
}

async fn same(organization: &Organization, path: &str, data: Value, data_as_of: Value) -> Answer {
    let answer = organization.get(path).await.ok(200);
    assert_eq!(answer.at("/data"), &data, "{path}");
    assert_eq!(instant(answer.at("/meta/data_as_of")), instant(&data_as_of), "{path}");
    answer
}

fn instant(value: &Value) -> Option<chrono::DateTime<chrono::Utc>> {
    value.as_str().map(|text| text.parse().unwrap())
}

async fn batches_agree(organization: &Organization, h: &History, ids: &Ids, window: (NaiveDate, NaiveDate)) {
    let (start, end) = window;
    let (accounts, videos) = (all(&h.accounts), all(&h.videos));
    let data: Map<_, _> = accounts
        .iter()
        .map(|account| {
            let mut totals = figures(h.gains(&h.videos_of(*account), start, end));
            totals["followers"] = json!(h.follower_gain(*account, start, end));
            (ids.accounts[*account].to_string(), totals)
        })
        .collect();
    let on_accounts: Vec<_> =
        videos.iter().copied().filter(|video| h.videos[*video].account.is_some()).collect();
    let as_of = h.as_of(&accounts, &on_accounts, end);
    let path = format!("/accounts/metrics?account_ids={}&{}", list(&ids.accounts), query(window));
    same(organization, &path, json!(data), as_of).await;

    let totals = |video: &usize| figures(h.gains(&[*video], start, end));
    let data: Map<_, _> =
        videos.iter().map(|video| (ids.videos[*video].0.to_string(), totals(video))).collect();
    let path =
        format!("/videos/metrics?video_ids={}&{}", list(ids.videos.iter().map(|ids| ids.0)), query(window));
    same(organization, &path, json!(data), h.as_of(&[], &videos, end)).await;

    let data: Map<_, _> =
        on_accounts.iter().map(|video| (ids.videos[*video].1.to_string(), totals(video))).collect();
    let of = |platform| videos.iter().filter(move |video| h.videos[**video].platform == platform);
    let [instagram, tiktok] = PLATFORMS.map(|platform| list(of(platform).map(|video| ids.videos[*video].1)));
    let path = format!(
        "/account-videos/metrics?instagram_post_ids={instagram}&tiktok_video_ids={tiktok}&{}",
        query(window)
    );
    same(organization, &path, json!(data), h.as_of(&[], &on_accounts, end)).await;
}

async fn deltas_agree(organization: &Organization, h: &History, ids: &Ids, today: NaiveDate) {
    let windows = [1, 7, 14, 30, 365];
    let videos = all(&h.videos);
    let data: Map<_, _> = videos
        .iter()
        .map(|video| {
            let gain = |n: &u64| h.gains(&[*video], today - Days::new(n - 1), today)[0];
            let gains: Map<_, _> = windows.iter().map(|n| (format!("{n}d"), json!(gain(n)))).collect();
            (ids.videos[*video].0.to_string(), json!(gains))
        })
        .collect();
    let path = format!(
        "/videos/deltas?video_ids={}&windows={}",
        list(ids.videos.iter().map(|ids| ids.0)),
        list(windows)
    );
    same(organization, &path, json!(data), h.as_of(&[], &videos, today)).await;
}

/// Both forms of the daily rows of something, and its totals.
async fn rows_agree(
    organization: &Organization,
    h: &History,
    path: &str,
    (accounts, videos): (&[usize], &[usize]),
    (start, end): (NaiveDate, NaiveDate),
) {
    for values in ["gains", "cumulative"] {
        let rows: Vec<_> = days(start, end)
            .into_iter()
            .map(|day| {
                let mut row = match values {
                    "gains" => counters(h.gains(videos, day, day)),
                    _ => counters(h.counts(videos, day)),
                };
                row.insert("date".to_owned(), json!(day));
                if path.starts_with("/accounts") {
                    row.insert("follower_count".to_owned(), json!(h.followers(accounts, day)));
                }
                Value::Object(row)
            })
            .collect();
        let path = format!("{path}?values={values}&{}", query((start, end)));
        let answer = same(organization, &path, json!(rows), h.as_of(accounts, videos, end)).await;
        assert_eq!(answer.at("/meta/totals"), &json!(counters(h.gains(videos, start, end))), "{path}");
    }
}

async fn daily_rows_agree(
    organization: &Organization,
    h: &History,
    ids: &Ids,
    window: (NaiveDate, NaiveDate),
) {
    for (video, (id, _)) in ids.videos.iter().enumerate() {
        rows_agree(organization, h, &format!("/videos/{id}/analytics"), (&[], &[video]), window).await;
    }
    for (account, id) in ids.accounts.iter().enumerate() {
        let of = (&[account][..], &h.videos_of(account)[..]);
        rows_agree(organization, h, &format!("/accounts/{id}/analytics"), of, window).await;
    }
}

async fn creators_agree(organization: &Organization, h: &History, ids: &Ids, window: (NaiveDate, NaiveDate)) {
    let (start, end) = window;
    for (creator, id) in ids.creators.iter().enumerate() {
        let accounts = h.accounts_of(creator);
        let videos: Vec<_> = accounts.iter().flat_map(|account| h.videos_of(*account)).collect();
        let path = format!("/creators/{id}/analytics");
        rows_agree(organization, h, &path, (&accounts, &videos), window).await;
        let row = |day| {
            let gained = figures(h.gains(&videos, day, day));
            json!({"date": day, "views": gained["views"], "engagement": gained["engagement"]})
        };
        let rows: Vec<_> = days(start, end).into_iter().map(row).collect();
        let path = format!("/creators/{id}/analytics/timeseries?{}", query(window));
        same(organization, &path, json!(rows), h.as_of(&accounts, &videos, end)).await;
    }
    for platform in [None, Some("instagram"), Some("tiktok")] {
        let on = |account: &usize| platform.is_none_or(|platform| h.accounts[*account].platform == platform);
        let mut entries = Vec::new();
        let (mut accounts, mut videos) = (Vec::new(), Vec::new());
        for (creator, id) in ids.creators.iter().enumerate() {
            let own: Vec<_> = h.accounts_of(creator).into_iter().filter(on).collect();
            let of: Vec<_> = own.iter().flat_map(|account| h.videos_of(*account)).collect();
            let gained = figures(h.gains(&of, start, end));
            entries.push(json!({
                "id": id, "type": "creator", "name": h.creators[creator], "views": gained["views"],
                "engagement": gained["engagement"], "account_count": own.len(),
            }));
            accounts.extend(own);
            videos.extend(of);
        }
        entries.sort_by_key(|entry| {
            (-entry["views"].as_i64().unwrap(), entry["name"].as_str().unwrap().to_lowercase())
        });
        let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
        let path = format!("/creators/top?{}{filter}", query(window));
        same(organization, &path, json!(entries), h.as_of(&accounts, &videos, end)).await;
    }
}

/// The series and the headlines of a part of the organization.
async fn series_agree(
    organization: &Organization,
    h: &History,
    filter: &str,
    (accounts, videos): (&[usize], &[usize]),
    window: (NaiveDate, NaiveDate),
) {
    let row = |day| {
        let mut row = figures(h.gains(videos, day, day));
        row["date"] = json!(day);
        row
    };
    let rows: Vec<_> = days(window.0, window.1).into_iter().map(row).collect();
    let path = format!("/analytics/timeseries?{}{filter}", query(window));
    same(organization, &path, json!(rows), h.as_of(accounts, videos, window.1)).await;
}

async fn organization_agrees(
    organization: &Organization,
    h: &History,
    platform: Option<&str>,
    window: (NaiveDate, NaiveDate),
) {
    let (start, end) = window;
    let on = |of: &str| platform.is_none_or(|platform| platform == of);
    let accounts: Vec<_> =
        all(&h.accounts).into_iter().filter(|account| on(h.accounts[*account].platform)).collect();
    let videos: Vec<_> = all(&h.videos).into_iter().filter(|video| on(h.videos[*video].platform)).collect();
    let filter = platform.map(|platform| format!("&platform={platform}")).unwrap_or_default();
    series_agree(organization, h, &filter, (&accounts, &videos), window).await;

    let answer = organization.get(&format!("/overview?{}{filter}", query(window))).await.ok(200);
    let length = Days::new(days(start, end).len() as u64);
    let previous = (start - length, start - Days::new(1));
    assert_eq!(
        (answer.text("/meta/previous_start_date"), answer.text("/meta/previous_end_date")),
        (previous.0.to_string().as_str(), previous.1.to_string().as_str())
    );
    let (now, before) =
        (figures(h.gains(&videos, start, end)), figures(h.gains(&videos, previous.0, previous.1)));
    for figure in ["views", "plays", "likes", "comments", "shares", "engagement"] {
        let shown = answer.at(&format!("/data/{figure}"));
        assert_eq!(
            (&shown["current"], &shown["previous"]),
            (&now[figure], &before[figure]),
            "{figure}: {answer}"
        );
    }
    let posts = |(start, end)| {
        let posted = videos.iter().filter_map(|video| h.videos[*video].posted);
        posted.filter(|day| (start..=end).contains(day)).count()
    };
    let followers = |until| h.followers(&accounts, until);
    for (figure, current, before) in [
        ("new_posts", json!(posts(window)), json!(posts(previous))),
        ("followers", json!(followers(end)), json!(followers(previous.1))),
    ] {
        let shown = answer.at(&format!("/data/{figure}"));
        assert_eq!((&shown["current"], &shown["previous"]), (&current, &before), "{figure}: {answer}");
    }
    let linked =
        |creator: &usize| h.accounts_of(*creator).iter().any(|account| on(h.accounts[*account].platform));
    let creators = all(&h.creators).iter().filter(|creator| platform.is_none() || linked(creator)).count();
    let of = |kind: fn(&model::Video) -> bool| videos.iter().filter(|video| kind(&h.videos[**video])).count();
    assert_eq!(
        answer.at("/data/totals"),
        &json!({
            "accounts": accounts.len(), "active_accounts": 0, "creators": creators, "videos": videos.len(),
            "account_videos": of(|video| video.account.is_some()), "individual_videos": of(|video| video.is_tracked),
        })
    );
    assert_eq!(
        instant(answer.at("/meta/data_as_of")),
        instant(&h.as_of(&accounts, &videos, end)),
        "{answer}"
    );
}

#[tokio::test]
async fn batches_and_deltas_agree_with_the_model() {
    for seed in [1, 2] {
        let (organization, history, ids, today) = loaded(seed).await;
        for window in windows(seed, today) {
            batches_agree(&organization, &history, &ids, window).await;
        }
        deltas_agree(&organization, &history, &ids, today).await;
    }
}

#[tokio::test]
async fn daily_rows_agree_with_the_model() {
    let (organization, history, ids, today) = loaded(3).await;
    for window in windows(3, today).into_iter().skip(1).step_by(2) {
        daily_rows_agree(&organization, &history, &ids, window).await;
    }
}

#[tokio::test]
async fn organization_and_creators_agree_with_the_model_as_they_are_linked_now() {
    let (organization, mut history, ids, today) = loaded(4).await;
    for window in windows(4, today) {
        for platform in [None, Some("instagram"), Some("tiktok")] {
            organization_agrees(&organization, &history, platform, window).await;
        }
        creators_agree(&organization, &history, &ids, window).await;
    }
    // Moving accounts moves their whole histories, at once.
    for (number, account) in history.accounts.iter_mut().enumerate() {
        account.creator = [None, Some(2), account.creator][number % 3];
        let creator = account.creator.map(|creator| ids.creators[creator]);
        let path = format!("/accounts/{}", ids.accounts[number]);
        organization.patch(&path, json!({"creator_id": creator})).await.ok(200);
    }
    let window = (today - Days::new(29), today);
    creators_agree(&organization, &history, &ids, window).await;
    for (creator, id) in ids.creators.iter().enumerate() {
        let accounts = history.accounts_of(creator);
        let videos: Vec<_> = accounts.iter().flat_map(|account| history.videos_of(*account)).collect();
        let filter = format!("&creator_id={id}");
        series_agree(&organization, &history, &filter, (&accounts, &videos), window).await;
    }
    for (account, id) in ids.accounts.iter().enumerate() {
        let (videos, platform) = (history.videos_of(account), history.accounts[account].platform);
        let creator = history.accounts[account].creator.map(|creator| ids.creators[creator]);
        let filter = creator.map(|creator| format!("&creator_id={creator}")).unwrap_or_default();
        let filter = format!("&account_id={id}&platform={platform}{filter}");
        series_agree(&organization, &history, &filter, (&[account], &videos), window).await;
        let other = PLATFORMS.iter().find(|other| **other != platform).unwrap();
        let filter = format!("&account_id={id}&platform={other}");
        series_agree(&organization, &history, &filter, (&[], &[]), window).await;
    }
}

/// Deleting takes a history out of every total at once, and the clean-up afterwards changes nothing.
#[tokio::test]
async fn what_is_deleted_is_out_of_every_total_at_once() {
    let (organization, mut history, mut ids, today) = loaded(5).await;
    let window = (today - Days::new(29), today);
    let stays = |history: &History, account: &usize| {
        history.videos_of(*account).iter().any(|video| history.videos[*video].is_tracked)
    };
    // First one that goes altogether, then one that leaves a video behind, whose history has to move.
    for leaves_videos in [false, true] {
        let account =
            all(&history.accounts).into_iter().find(|account| stays(&history, account) == leaves_videos);
        let account = account.expect("the history has such an account");
        organization.delete(&format!("/accounts/{}", ids.accounts[account])).await.ok(204);
        let gone = history.delete(&mut ids, account);
        let body = json!({"account_ids": [gone[0], ids.accounts[0]]});
        let answer = organization.post("/accounts/metrics", body).await.ok(200);
        assert_eq!(answer.at("/meta/not_found"), &json!([gone[0]]));
        organization.get(&format!("/accounts/{}/analytics", gone[0])).await.problem(404, "NOT_FOUND");
        let answer = organization.post("/videos/metrics", json!({"video_ids": gone[1..]})).await.ok(200);
        assert_eq!((answer.at("/data"), answer.at("/meta/not_found")), (&json!({}), &json!(gone[1..])));
        for applied in [false, true] {
            if applied {
                organization.wait_applied().await;
            }
            if applied || !leaves_videos {
                organization_agrees(&organization, &history, None, window).await;
                creators_agree(&organization, &history, &ids, window).await;
                batches_agree(&organization, &history, &ids, window).await;
            }
        }
    }
}

#[tokio::test]
async fn days_add_up_to_windows_and_accounts_to_the_organization() {
    let (organization, history, ids, today) = loaded(6).await;
    let window = query((today - Days::new(34), today));
    let sum = |rows: &[Value], field: &str| rows.iter().map(|row| row[field].as_i64().unwrap()).sum::<i64>();
    let overview = organization.get(&format!("/overview?{window}")).await.ok(200);
    let series = organization.get(&format!("/analytics/timeseries?{window}")).await.ok(200);
    let accounts = organization
        .get(&format!("/accounts/metrics?account_ids={}&{window}", list(&ids.accounts)))
        .await
        .ok(200);
    let alone = (0..ids.videos.len()).filter(|video| history.videos[*video].account.is_none());
    let alone = list(alone.map(|video| ids.videos[video].0));
    let alone = organization.get(&format!("/videos/metrics?video_ids={alone}&{window}")).await.ok(200);
    let every = list(ids.videos.iter().map(|ids| ids.0));
    let every = organization.get(&format!("/videos/metrics?video_ids={every}&{window}")).await.ok(200);
    let values = |answer: &Answer| -> Vec<Value> {
        answer.at("/data").as_object().unwrap().values().cloned().collect()
    };
    for figure in ["views", "plays", "likes", "comments", "shares", "engagement"] {
        let whole = overview.integer(&format!("/data/{figure}/current"));
        assert_ne!(whole, 0, "{figure}");
        assert_eq!(sum(series.list("/data"), figure), whole, "{figure} of days");
        assert_eq!(
            sum(&values(&accounts), figure) + sum(&values(&alone), figure),
            whole,
            "{figure} of subjects"
        );
        assert_eq!(sum(&values(&every), figure), whole, "{figure} of videos");
    }
    for (id, _) in &ids.videos {
        let rows = organization.get(&format!("/videos/{id}/analytics?{window}")).await.ok(200);
        for counter in tidemark::model::counters::Counters::NAMES {
            assert_eq!(sum(rows.list("/data"), counter), rows.integer(&format!("/meta/totals/{counter}")));
        }
        assert_eq!(rows.at("/meta/totals/view_count"), every.at(&format!("/data/{id}/views")));
    }
}
