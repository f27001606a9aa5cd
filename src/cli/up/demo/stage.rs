//! Fills the demo organization: imports history, and lets happen what [`ROLES`] lists.
//!
//! The sandbox's clock starts a day early. Accounts with a role are read that day; then the sandbox renames some, and its
//! clock moves from one due attempt to the next until the tracker has found out. No status is written by the demo itself,
//! and every step has the same result if an interrupted start repeats it.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{Days, NaiveDate};
use sandbox::history::{HistoryOptions, InstagramCounters, single_post, write_history};
use sandbox::population::{Population, SimulatedAccount};
use uuid::Uuid;

use super::roles::{DELETED_POST, ROLES, Role, SINGLE_POSTS, SUCCESSOR};
use super::sandbox_control::SandboxControl;
use super::{DemoArgs, platform};
use crate::app::Databases;
use crate::cli::error::CommandError;
use crate::cli::output::shows_progress;
use crate::import;
use crate::model::account::Account;
use crate::model::platform::Platform;
use crate::model::readable::ReadablePlatforms;
use crate::model::tracking::{Tracking, TrackingStatus};
use crate::model::video::VideoType;
use crate::store;
use crate::store::postgres::keyset::{PageRequest, SortDirection};
use crate::store::records::accounts::{self, AccountIdentifier};
use crate::store::records::videos::{self, TrackedVideoSort, VideoFilter};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A busy machine reads some twenty accounts a few times each within less.
const READS_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) struct Stage<'a> {
    pub(super) folder: PathBuf,
    pub(super) databases: &'a Databases,
    pub(super) organization: Uuid,
    pub(super) population: &'a Population,
    pub(super) args: DemoArgs,
    pub(super) sandbox: SandboxControl,
}

impl Stage<'_> {
    pub(super) async fn play(&self) -> Result<(), CommandError> {
        let clock = self.databases.clock.now().await;
        let today = clock.max(self.args.now()).date_naive();
        for (account, role) in self.roles() {
            match role {
                Role::Failing(fault, _) => self.sandbox.break_account(account, fault).await?,
                Role::Deleted(_) => self.sandbox.delete(account, None).await?,
                _ => {}
            }
        }
        let posts_until = clock.date_naive() - Days::new(1);
        if let Some(deleted) = self.single_posts().find(|account| account.index == DELETED_POST) {
            let post = single_post(deleted, posts_until).map(|post| post.id);
            self.sandbox.delete(deleted, post.as_deref()).await?;
        }
        // The tracker reads these on the clock's day.
        let read_on = clock.date_naive();
        let mut staged = self.write_role_histories(today, read_on, |role| !role.is_paused()).await?;
        let single_posts = self.single_posts().map(|account| account.index).collect();
        staged.extend(self.write_history(today, posts_until, Vec::new(), single_posts).await?);
        self.import(staged, true).await?;
        let paused = self.write_role_histories(today, today, Role::is_paused).await?;
        self.import(paused, false).await?;
        self.add_new_accounts().await?;
        let others = self.write_history(today, today - Days::new(1), self.others().collect(), Vec::new());
        let reads = async {
            tokio::time::timeout(READS_TIMEOUT, self.wait_for_roles(posts_until)).await.map_err(|_| {
                CommandError::new(
                    "the tracker did not read the demo's accounts: see its log, then start again",
                )
            })?
        };
        let (others, ()) = tokio::try_join!(others, reads)?;
        // Paused, so that the tracker does not slow down the import.
        self.import(others, false).await?;
        self.curate().await?;
        self.resume_others().await?;
        Ok(std::fs::remove_dir_all(&self.folder)?)
    }

    /// Returns the accounts with a role.
    pub(super) fn roles(&self) -> impl Iterator<Item = (&SimulatedAccount, Role)> {
        let tracked = ROLES.into_iter().filter(|(index, _)| *index < self.args.demo_accounts);
        tracked.map(|(index, role)| (&self.population.accounts()[index], role))
    }

    /// Writes the history of accounts with a role, until the day before `read_on` or until they stopped being read.
    async fn write_role_histories(
        &self,
        today: NaiveDate,
        read_on: NaiveDate,
        is_chosen: impl Fn(Role) -> bool,
    ) -> Result<Vec<PathBuf>, CommandError> {
        let mut files = Vec::new();
        for (account, role) in self.roles().filter(|(_, role)| *role != Role::New && is_chosen(*role)) {
            let days = u64::from(role.days_without_history());
            let until = (today - Days::new(1 + days)).min(read_on - Days::new(1));
            files.extend(self.write_history(today, until, vec![account.index], Vec::new()).await?);
        }
        Ok(files)
    }

    /// Returns the indices of the accounts without a role.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        let has_role = |index: &usize| ROLES.iter().any(|(other, _)| other == index);
        (0..self.args.demo_accounts).filter(move |index| !has_role(index))
    }

    /// Writes history from the demo's first day until a day, to files of their own.
    async fn write_history(
        &self,
        today: NaiveDate,
        until: NaiveDate,
        accounts: Vec<usize>,
        single_posts: Vec<usize>,
    ) -> Result<Vec<PathBuf>, CommandError> {
        let missing = (today - Days::new(1) - until).num_days();
        let days = u32::try_from(i64::from(self.args.demo_days) - missing).unwrap_or_default();
        if days == 0 {
            return Ok(Vec::new());
        }
        let folder = match accounts.first().or(single_posts.first()) {
            Some(first) => self.folder.join(first.to_string()),
            None => return Ok(Vec::new()),
        };
        let options =
            HistoryOptions { accounts, single_posts, days, until, instagram: InstagramCounters::Graph };
        let population = self.population.clone();
        let written =
            tokio::task::spawn_blocking(move || write_history(&population, &options, &folder)).await?;
        Ok(written?.files)
    }

    async fn import(&self, files: Vec<PathBuf>, track: bool) -> Result<(), CommandError> {
        if files.is_empty() {
            return Ok(());
        }
        let progress = shows_progress();
        let options = import::ImportOptions { track, progress, ..import::ImportOptions::default() };
        let summary = import::load(self.databases, self.organization, files, &options).await?;
        if summary.is_complete() {
            return Ok(());
        }
        let report = summary.report_file.unwrap_or_default();
        Err(CommandError::new(format!(
            "{} rows of the demo history were rejected: see {}",
            summary.refused,
            report.display()
        )))
    }

    /// Waits until the tracker has found out what happened to each account and post. Then the clock is the demo's.
    async fn wait_for_roles(&self, posts_until: NaiveDate) -> Result<(), CommandError> {
        loop {
            let mut waiting = self.fetch_waiting_accounts().await?;
            waiting.extend(self.fetch_waiting_post(posts_until).await?);
            let now = self.databases.clock.now().await;
            if waiting.is_empty() {
                return self.sandbox.advance_to(now, self.args.now()).await;
            }
            match waiting.iter().map(|tracking| tracking.next_attempt_at).min().flatten() {
                Some(next) if next > now => self.sandbox.advance_to(now, next).await?,
                _ => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    /// Returns the tracking of accounts whose role is not visible yet. The sandbox renames those that were read once, whose id
    /// is known.
    async fn fetch_waiting_accounts(&self) -> Result<Vec<Tracking>, CommandError> {
        let mut waiting = Vec::new();
        for (account, role) in self.roles() {
            let Some(record) = self.find_account(account).await? else { continue };
            let is_read = record.last_scrape_time.is_some();
            let status = record.tracking.status;
            let is_reached = match role {
                Role::Failing(..) => status == TrackingStatus::Failing,
                Role::Deleted(_) | Role::Replaced => status == TrackingStatus::Unavailable,
                Role::Renamed => record.username == new_username(account),
                Role::Paused(_) | Role::PausedByCreator(_) => true,
                Role::New => is_read,
            };
            if is_reached {
                continue;
            }
            if is_read {
                self.change_identity(account, role).await?;
            }
            waiting.push(record.tracking);
        }
        Ok(waiting)
    }

    /// Lets the sandbox rename an account, or replace it by another one, unless it has.
    async fn change_identity(&self, account: &SimulatedAccount, role: Role) -> Result<(), CommandError> {
        let (renamed, username) = match role {
            Role::Renamed => (account, new_username(account)),
            Role::Replaced => (&self.population.accounts()[SUCCESSOR], account.username.clone()),
            _ => return Ok(()),
        };
        if self.sandbox.has_first_username(renamed).await? {
            if role == Role::Replaced {
                self.sandbox.delete(account, None).await?;
            }
            self.sandbox.rename(renamed, &username).await?;
        }
        Ok(())
    }

    /// Returns the tracking of the deleted post while it is not unavailable.
    async fn fetch_waiting_post(&self, until: NaiveDate) -> Result<Option<Tracking>, CommandError> {
        let deleted = self.single_posts().find(|account| account.index == DELETED_POST);
        let Some(post) = deleted.and_then(|account| single_post(account, until)) else { return Ok(None) };
        let page = PageRequest {
            sort: TrackedVideoSort::AddedAt,
            direction: SortDirection::Asc,
            after: None,
            offset: 0,
            limit: SINGLE_POSTS.len() as i64,
            include_total: false,
        };
        let (pg, filter) = (&self.databases.pg, VideoFilter::default());
        let listed =
            videos::list(pg, self.organization, VideoType::Video, &all_readable(), &filter, &page).await?;
        let found = listed.items.into_iter().find(|video| video.external_id.as_ref() == Some(&post.id));
        let tracking = found.map(|video| video.tracking);
        Ok(tracking.filter(|tracking| tracking.status != TrackingStatus::Unavailable))
    }

    /// Finds the record of an account by its username or, after a rename, by its new one.
    pub(super) async fn find_account(
        &self,
        account: &SimulatedAccount,
    ) -> Result<Option<Account>, CommandError> {
        let (pg, organization) = (&self.databases.pg, self.organization);
        for username in [account.username.clone(), new_username(account)] {
            let identifier = AccountIdentifier::Username(username);
            match accounts::find(pg, organization, &identifier, Some(platform(account))).await {
                Ok(id) => return Ok(Some(accounts::get(pg, organization, &all_readable(), id).await?)),
                Err(store::Error::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Returns the untracked accounts of which one post is tracked.
    fn single_posts(&self) -> impl Iterator<Item = &SimulatedAccount> {
        let untracked = SINGLE_POSTS.into_iter().filter(|index| *index >= self.args.demo_accounts);
        untracked.map(|index| &self.population.accounts()[index])
    }
}

fn new_username(account: &SimulatedAccount) -> String {
    format!("hello.{}", account.username)
}

/// The sandbox has every source.
fn all_readable() -> ReadablePlatforms {
    ReadablePlatforms::new(Platform::ALL)
}
