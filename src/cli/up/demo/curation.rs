//! Changes by people in the demo organization, who added, paused, tagged and singled out accounts and posts.

use sandbox::population::SimulatedAccount;
use uuid::Uuid;

use super::platform;
use super::roles::{PAUSED_POST, Role, WATCHED_POSTS};
use super::stage::Stage;
use crate::cli::error::CommandError;
use crate::model::account::Metadata;
use crate::model::identifier::{Username, VideoIds, VideoReference};
use crate::model::limits::DEFAULT_SCRAPE_INTERVAL_HOURS;
use crate::store::records::accounts::change::{self as account_change, AccountChange};
use crate::store::records::accounts::create::{self, NewAccount};
use crate::store::records::creators::{self, CreatorChange};
use crate::store::records::videos::change::{self as video_change, NewTracking, NewVideo};
use crate::store::{self, Write, retry_on_conflict};

pub(super) const CAMPAIGNS: [&str; 3] = ["autumn launch", "winter recipes", "ambassadors 2026"];
const MANAGERS: [&str; 4] = ["Ada", "Jun", "Noor", "Piotr"];
const MARKETS: [&str; 4] = ["DACH", "Iberia", "Nordics", "APAC"];
const TIERS: [&str; 3] = ["A", "B", "C"];

impl Stage<'_> {
    /// Adds the accounts that have no history.
    pub(super) async fn add_new_accounts(&self) -> Result<(), CommandError> {
        let now = self.databases.clock.now().await;
        for (account, role) in self.roles() {
            if role != Role::New || self.find_account(account).await?.is_some() {
                continue;
            }
            let username = Username::parse(platform(account), &account.username)?;
            let change = AccountChange {
                metadata: Some(tags([("status", "on trial"), ("manager", MANAGERS[0])])),
                ..AccountChange::default()
            };
            let new = NewAccount { platform: platform(account), username, change };
            self.write(async |write| create::create(write, &new, now).await.map(drop)).await?;
        }
        Ok(())
    }

    /// Tags accounts and creators, pauses a creator, tracks some posts of tracked accounts individually, and creates collections.
    pub(super) async fn curate(&self) -> Result<(), CommandError> {
        for (account, role) in self.roles() {
            if let Role::PausedByCreator(_) = role {
                self.pause_creator(account).await?;
            }
        }
        for account in self.population.accounts().iter().take(self.args.demo_accounts).step_by(4) {
            let Some(record) = self.find_account(account).await? else { continue };
            let turn = account.index / 4;
            let metadata = tags([
                ("campaign", CAMPAIGNS[turn % CAMPAIGNS.len()]),
                ("manager", MANAGERS[turn / 2 % MANAGERS.len()]),
                ("market", MARKETS[turn / 3 % MARKETS.len()]),
            ]);
            let change = AccountChange { metadata: Some(metadata), ..AccountChange::default() };
            self.write(async |write| account_change::update(write, record.id, &change).await).await?;
            let Some(creator) = record.creator_id else { continue };
            let creator_change = CreatorChange {
                metadata: Some(tags([("tier", TIERS[turn % TIERS.len()])])),
                ..CreatorChange::default()
            };
            self.write(async |write| creators::update(write, creator, &creator_change).await).await?;
        }
        let watched = self.watch_posts().await?;
        self.create_collections(&watched).await
    }

    /// Lets the tracker read the accounts without a role.
    pub(super) async fn resume_others(&self) -> Result<(), CommandError> {
        let mut ids = Vec::new();
        for index in self.others() {
            let account = self.find_account(&self.population.accounts()[index]).await?;
            ids.extend(account.map(|account| account.id));
        }
        let resumed = AccountChange { is_active: Some(true), ..AccountChange::default() };
        self.write(async |write| account_change::update_all(write, &ids, &resumed).await).await?;
        Ok(())
    }

    /// Pauses the creator of an account that was imported as paused, instead of the account.
    async fn pause_creator(&self, account: &SimulatedAccount) -> Result<(), CommandError> {
        let Some(record) = self.find_account(account).await? else { return Ok(()) };
        let Some(creator) = record.creator_id else { return Ok(()) };
        let paused = CreatorChange { is_active: Some(false), ..CreatorChange::default() };
        let active = AccountChange { is_active: Some(true), ..AccountChange::default() };
        self.write(async |write| {
            creators::update(write, creator, &paused).await?;
            account_change::update(write, record.id, &active).await
        })
        .await?;
        Ok(())
    }

    /// Returns the ids of the posts.
    async fn watch_posts(&self) -> Result<Vec<Uuid>, CommandError> {
        let now = self.databases.clock.now().await;
        let mut watched = Vec::new();
        for index in WATCHED_POSTS.into_iter().filter(|index| *index < self.args.demo_accounts) {
            let account = &self.population.accounts()[index];
            let Some(post) = account.posts_at(now).nth(1) else { continue };
            let ids = VideoIds::new(platform(account), Some(&post.id), None);
            let video = VideoReference { ids, username: None };
            let tracking = NewTracking {
                is_active: index != PAUSED_POST,
                metadata: tags([("campaign", CAMPAIGNS[0]), ("contract", "paid post")]),
                scrape_interval_hours: DEFAULT_SCRAPE_INTERVAL_HOURS,
            };
            let new = NewVideo { platform: platform(account), video, tracking };
            match self.write(async |write| video_change::create(write, &new, now).await).await {
                // An interrupted start has tracked it.
                Ok(id) | Err(store::Error::Exists { id, .. }) => watched.push(id),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(watched)
    }

    /// Runs a unit of work, which is retried.
    pub(super) async fn write<T>(
        &self,
        change: impl AsyncFn(&mut Write) -> Result<T, store::Error>,
    ) -> Result<T, store::Error> {
        retry_on_conflict(async || {
            let mut write = Write::begin(&self.databases.pg, self.organization).await?;
            let result = change(&mut write).await?;
            write.commit().await?;
            Ok(result)
        })
        .await
    }
}

pub(super) fn tags<const N: usize>(tags: [(&str, &str); N]) -> Metadata {
    tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
