//! Daily coverage: compared with the model over random histories, with pauses, deletions, imports and retention.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};
use harness::{Organization, Stack, wait_until};
use serde_json::{Value, json};
use tidemark::import::{self, ImportOptions};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

use super::agree::{assert_data, indices, window_query};
use super::model::{self, History, Ids, Random, days};

/// An organization with a random history, and what is paused in it.
struct Covered {
    organization: Organization,
    history: History,
    ids: Ids,
    /// Individually tracked videos.
    paused_videos: BTreeSet<usize>,
    paused_creators: BTreeSet<usize>,
    today: NaiveDate,
}

impl Covered {
    async fn load(seed: u64) -> Self {
        let stack = Stack::shared();
        let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
        let organization = stack.organization_with(options, NewKey::named("test")).await;
        let today = stack.databases.clock.now().await.date_naive();
        let history = model::random_history(seed, 12, 10, today);
        let ids = history.load(&organization).await;
        let (paused_videos, paused_creators) = Default::default();
        // Added on the day of the service clock: records have the machine's time, which may be a year from it.
        for statement in [
            "update accounts set added_at = $2 where organization_id = $1",
            "update videos set added_at = $2, tracked_at = case when tracked_at is not null then $2 end
             where organization_id = $1",
        ] {
            let query = sqlx::query(statement).bind(organization.id).bind(harness::now());
            query.execute(organization.pg()).await.unwrap();
        }
        let mut covered = Covered { organization, history, ids, paused_videos, paused_creators, today };
        let mut random = Random(seed);
        for account in indices(&covered.history.accounts) {
            covered.set_account_active(account, random.chance(70)).await;
        }
        for video in indices(&covered.history.videos) {
            if covered.history.videos[video].is_tracked {
                covered.set_video_active(video, random.chance(60)).await;
            }
        }
        covered
    }

    async fn set_active(&self, path: String, is_active: bool) {
        self.organization.patch(&path, json!({"is_active": is_active})).await.ok(200);
    }

    async fn set_account_active(&mut self, account: usize, is_active: bool) {
        self.set_active(format!("/accounts/{}", self.ids.accounts[account]), is_active).await;
        self.history.accounts[account].is_active = is_active;
    }

    async fn set_video_active(&mut self, video: usize, is_active: bool) {
        self.set_active(format!("/videos/{}", self.ids.videos[video].0), is_active).await;
        let _ = if is_active { self.paused_videos.remove(&video) } else { self.paused_videos.insert(video) };
    }

    async fn set_creator_active(&mut self, creator: usize, is_active: bool) {
        self.set_active(format!("/creators/{}", self.ids.creators[creator]), is_active).await;
        let paused = &mut self.paused_creators;
        let _ = if is_active { paused.remove(&creator) } else { paused.insert(creator) };
    }

    /// The accounts and the videos without account that are not paused.
    fn active(&self) -> (Vec<usize>, Vec<usize>) {
        let accounts = indices(&self.history.accounts).into_iter().filter(|account| {
            let account = &self.history.accounts[*account];
            account.is_active
                && account.creator.is_none_or(|creator| !self.paused_creators.contains(&creator))
        });
        let videos = indices(&self.history.videos).into_iter().filter(|video| {
            self.history.videos[*video].account.is_none() && !self.paused_videos.contains(video)
        });
        (accounts.collect(), videos.collect())
    }

    /// The days on which each subject that is not paused was observed.
    fn observed_days(&self) -> Vec<BTreeSet<NaiveDate>> {
        let of_video =
            |video: usize| self.history.videos[video].snapshots.keys().copied().collect::<BTreeSet<_>>();
        let of_account = |account: usize| {
            let profile = self.history.accounts[account].followers.keys().copied();
            profile.chain(self.history.videos_of(account).into_iter().flat_map(of_video)).collect()
        };
        let (accounts, videos) = self.active();
        accounts.into_iter().map(of_account).chain(videos.into_iter().map(of_video)).collect()
    }

    /// Checks a window against the model.
    async fn check(&self, window: (NaiveDate, NaiveDate)) -> Value {
        let subjects = self.observed_days();
        let since = |days: &BTreeSet<NaiveDate>| days.first().copied().unwrap_or(self.today).min(self.today);
        let rows = days(window.0, window.1).into_iter().map(|date| {
            let is_observed = |days: &&BTreeSet<NaiveDate>| days.contains(&date);
            let observed = subjects.iter().filter(is_observed).count();
            let expected = subjects.iter().filter(|days| since(days) <= date).count();
            let is_retained = self.history.is_retained(date);
            let (observed, expected) = if is_retained { (observed, expected) } else { (0, 0) };
            json!({"date": date, "observed": observed, "expected": expected})
        });
        let rows: Value = rows.collect();
        let (accounts, mut videos) = self.active();
        videos.extend(accounts.iter().flat_map(|account| self.history.videos_of(*account)));
        let as_of = self.history.as_of(&accounts, &videos, window.1);
        let path = format!("/tracking/coverage?{}", window_query(window));
        assert_data(&self.organization, &path, rows.clone(), as_of).await;
        rows
    }

    async fn check_windows(&self, seed: u64) {
        let mut random = Random(seed);
        self.check((self.today - Days::new(89), self.today + Days::new(3))).await;
        for _ in 0..3 {
            let start = self.today - Days::new(random.below(60) as u64);
            self.check((start, start + Days::new(random.below(30) as u64))).await;
        }
    }

    async fn import(&self, rows: &[Value]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let lines: Vec<_> = rows.iter().map(Value::to_string).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let (stores, id) = (&self.organization.stack.databases, self.organization.id);
        import::load(stores, id, vec![path], &ImportOptions::default()).await.unwrap();
    }
}

#[tokio::test]
async fn coverage_agrees_with_the_model() {
    for seed in [11, 12, 13] {
        Covered::load(seed).await.check_windows(seed).await;
    }
}

#[tokio::test]
async fn pauses_apply_to_every_day_at_once() {
    let mut covered = Covered::load(14).await;
    covered.check_windows(1).await;
    covered.set_creator_active(1, false).await;
    covered.check_windows(1).await;
    for account in indices(&covered.history.accounts) {
        covered.set_account_active(account, account == 3).await;
    }
    covered.check_windows(1).await;
    let individual: Vec<_> = indices(&covered.history.videos)
        .into_iter()
        .filter(|video| covered.history.videos[*video].account.is_none())
        .collect();
    for video in individual {
        covered.set_video_active(video, false).await;
        covered.check((covered.today - Days::new(40), covered.today)).await;
    }
    covered.set_account_active(3, false).await;
    covered.check_windows(1).await;
    covered.set_creator_active(1, true).await;
    for account in indices(&covered.history.accounts) {
        covered.set_account_active(account, true).await;
    }
    covered.check_windows(1).await;
}

#[tokio::test]
async fn deleted_accounts_leave_coverage_at_once() {
    let mut covered = Covered::load(15).await;
    for account in indices(&covered.history.accounts) {
        covered.set_account_active(account, true).await;
    }
    for account in [9, 4, 0] {
        let tracked: Vec<_> =
            covered.paused_videos.iter().map(|video| covered.ids.videos[*video].0).collect();
        let path = format!("/accounts/{}", covered.ids.accounts[account]);
        covered.organization.delete(&path).await.ok(204);
        covered.history.delete(&mut covered.ids, account);
        let is_paused = |video: &usize| tracked.contains(&covered.ids.videos[*video].0);
        covered.paused_videos = indices(&covered.history.videos).into_iter().filter(is_paused).collect();
        // The history of videos that stay moves.
        covered.organization.wait_applied().await;
        covered.check_windows(2).await;
    }
}

#[tokio::test]
async fn imported_old_history_moves_the_first_expected_day() {
    let mut covered = Covered::load(16).await;
    covered.set_account_active(0, true).await;
    let old = covered.today - Days::new(80);
    let window = (old - Days::new(5), old + Days::new(5));
    let before = covered.check(window).await;
    assert_eq!(before[10]["expected"], 0, "{before}");
    let rows = covered.history.rows.len();
    covered.history.follow(0, old.and_hms_opt(12, 0, 0).unwrap().and_utc(), Some(7));
    covered.import(&covered.history.rows[rows..]).await;
    covered.organization.wait_applied().await;
    let after = covered.check(window).await;
    assert_eq!((&after[4]["expected"], &after[5]["expected"]), (&json!(0), &json!(1)), "{after}");
    assert_eq!(after[5]["observed"], 1, "{after}");
}

#[tokio::test]
async fn days_before_the_retention_period_are_neither_expected_nor_observed() {
    let mut covered = Covered::load(17).await;
    let since = covered.today - Days::new(20);
    sqlx::query(
        "update organizations set history_since = $2, history_since_set_at = now() - interval '1 minute' where id = $1",
    )
    .bind(covered.organization.id)
    .bind(since)
    .execute(covered.organization.pg())
    .await
    .unwrap();
    wait_until("the API returns the new start of history", || async {
        let identity = covered.organization.get("/whoami").await.ok(200);
        (identity.json["data"]["history_since"] == json!(since)).then_some(())
    })
    .await;
    covered.history.since = Some(since);
    covered.check_windows(3).await;
}

#[tokio::test]
async fn coverage_of_an_organization_without_subjects_is_empty() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let today = stack.databases.clock.now().await.date_naive();
    let rows: Vec<_> = days(today - Days::new(6), today)
        .into_iter()
        .map(|date| json!({"date": date, "observed": 0, "expected": 0}))
        .collect();
    assert_data(&organization, "/tracking/coverage?period=7d", json!(rows), Value::Null).await;
}
