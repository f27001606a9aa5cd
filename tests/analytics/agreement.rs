//! Compares every endpoint with the model, over random histories and windows. Days add up to windows and accounts to the
//! organization.

use chrono::{Days, NaiveDate};
use harness::{Organization, Response, Stack};
use serde_json::{Value, json};

use super::agree::{
    batches_agree, creators_agree, daily_rows_agree, deltas_agree, indices, join_ids, organization_agrees,
    series_agree, window_query,
};
use super::model::{self, History, Ids, PLATFORMS, Random};
use super::video_rollup::video_rollup_agrees;

/// A random history in a new organization without a noticeable rate limit.
pub async fn loaded(seed: u64) -> (Organization, History, Ids, NaiveDate) {
    let stack = Stack::shared();
    let organization = stack.unlimited_organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let history = model::random_history(seed, 12, 10, today);
    let ids = history.load(&organization).await;
    (organization, history, ids, today)
}

/// The windows to test: 7 days, 90 days with days ahead, and three random ones.
pub fn windows(seed: u64, today: NaiveDate) -> Vec<(NaiveDate, NaiveDate)> {
    let mut random = Random(seed);
    let mut windows = vec![(today - Days::new(6), today), (today - Days::new(89), today + Days::new(3))];
    windows.extend((0..3).map(|_| {
        let start = today - Days::new(random.below(40) as u64);
        (start, start + Days::new(random.below(20) as u64))
    }));
    windows
}

#[tokio::test]
async fn batches_and_deltas_agree_with_the_model() {
    for seed in [1, 2] {
        let (organization, history, ids, today) = loaded(seed).await;
        for window in windows(seed, today) {
            batches_agree(&organization, &history, &ids, window).await;
            video_rollup_agrees(&organization, &history, &ids, window).await;
        }
        deltas_agree(&organization, &history, &ids, today).await;
    }
}

#[tokio::test]
async fn daily_rows_agree_with_the_model() {
    let (organization, history, ids, today) = loaded(3).await;
    for window in windows(3, today).into_iter().skip(1).step_by(2) {
        daily_rows_agree(&organization, &history, &ids, window, 1).await;
    }
}

#[tokio::test]
async fn linking_accounts_moves_their_history_between_creators() {
    let (organization, mut history, ids, today) = loaded(4).await;
    for window in windows(4, today) {
        for platform in [None, Some("instagram"), Some("tiktok")] {
            organization_agrees(&organization, &history, platform, window).await;
        }
        creators_agree(&organization, &history, &ids, window).await;
    }
    // Relinking an account moves its full history at once.
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

/// The cleanup after a delete does not change any total.
#[tokio::test]
async fn deleted_accounts_leave_every_total_at_once() {
    let (organization, mut history, mut ids, today) = loaded(5).await;
    let window = (today - Days::new(29), today);
    let leaves_video = |history: &History, account: &usize| {
        history.videos_of(*account).iter().any(|video| history.videos[*video].is_tracked)
    };
    // First an account without individually tracked videos, then one with such a video, whose history has to move.
    for leaves_videos in [false, true] {
        let account = indices(&history.accounts)
            .into_iter()
            .find(|account| leaves_video(&history, account) == leaves_videos);
        let account = account.expect("the history has such an account");
        organization.delete(&format!("/accounts/{}", ids.accounts[account])).await.ok(204);
        let deleted = history.delete(&mut ids, account);
        let body = json!({"account_ids": [deleted[0], ids.accounts[0]]});
        let response = organization.post("/accounts/metrics", body).await.ok(200);
        assert_eq!(response.at("/meta/not_found"), &json!([deleted[0]]));
        organization.get(&format!("/accounts/{}/analytics", deleted[0])).await.problem(404, "NOT_FOUND");
        let response = organization.post("/videos/metrics", json!({"video_ids": deleted[1..]})).await.ok(200);
        assert_eq!(
            (response.at("/data"), response.at("/meta/not_found")),
            (&json!({}), &json!(deleted[1..]))
        );
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
    let window = window_query((today - Days::new(34), today));
    let sum = |rows: &[Value], field: &str| rows.iter().map(|row| row[field].as_i64().unwrap()).sum::<i64>();
    let overview = organization.get(&format!("/overview?{window}")).await.ok(200);
    let series = organization.get(&format!("/analytics/timeseries?{window}")).await.ok(200);
    let accounts = organization
        .get(&format!("/accounts/metrics?account_ids={}&{window}", join_ids(&ids.accounts)))
        .await
        .ok(200);
    let individual = (0..ids.videos.len()).filter(|video| history.videos[*video].account.is_none());
    let individual = join_ids(individual.map(|video| ids.videos[video].0));
    let individual =
        organization.get(&format!("/videos/metrics?video_ids={individual}&{window}")).await.ok(200);
    let videos = join_ids(ids.videos.iter().map(|ids| ids.0));
    let videos = organization.get(&format!("/videos/metrics?video_ids={videos}&{window}")).await.ok(200);
    let values = |response: &Response| -> Vec<Value> {
        response.at("/data").as_object().unwrap().values().cloned().collect()
    };
    for figure in ["views", "plays", "likes", "comments", "shares", "engagement"] {
        let total = overview.integer(&format!("/data/{figure}/current"));
        assert_ne!(total, 0, "{figure}");
        assert_eq!(sum(series.list("/data"), figure), total, "{figure} of days");
        assert_eq!(
            sum(&values(&accounts), figure) + sum(&values(&individual), figure),
            total,
            "{figure} of subjects"
        );
        assert_eq!(sum(&values(&videos), figure), total, "{figure} of videos");
    }
    for (id, _) in &ids.videos {
        let rows = organization.get(&format!("/videos/{id}/analytics?{window}")).await.ok(200);
        for counter in tidemark::model::counters::Counters::NAMES {
            assert_eq!(sum(rows.list("/data"), counter), rows.integer(&format!("/meta/totals/{counter}")));
        }
        assert_eq!(rows.at("/meta/totals/view_count"), videos.at(&format!("/data/{id}/views")));
    }
}
