//! Every endpoint answers what the model says, over random histories and random windows; days add up to windows, and
//! accounts to the organization.

use chrono::{Days, NaiveDate};
use serde_json::{Value, json};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

use super::agree::{
    all, batches_agree, creators_agree, daily_rows_agree, deltas_agree, list, organization_agrees, query,
    series_agree,
};
use super::model::{self, Dice, History, Ids, PLATFORMS};
use crate::harness::{Organization, Response, Stack};

/// A random history in an organization of its own, which may be asked as often as a test likes.
async fn loaded(seed: u64) -> (Organization, History, Ids, NaiveDate) {
    let stack = Stack::shared();
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    let organization = stack.organization_with(options, NewKey::named("test")).await;
    let today = stack.databases.clock.now().await.date_naive();
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
        daily_rows_agree(&organization, &history, &ids, window, 1).await;
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
    let values = |answer: &Response| -> Vec<Value> {
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
