//! The mutable state of the sandbox: its clock, accounts that were renamed, deleted, broken or given counters, and injected
//! faults.
//!
//! The population itself never changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::{Mutex, MutexGuard};

use super::error::{OpenError, WorldError};
use super::fault::{Fault, PictureFault};
use super::pictures::{PictureKind, picture_key};
use super::platform::{Counters, Platform};
use super::population::{Population, SimulatedAccount, SimulatedPost};
use super::saved_state::{SavedState, VisibleAccount};
use super::served::{RecordError, ServedItem, ServedRecord};

/// How far the clock can be advanced at once.
const MAX_ADVANCE_HOURS: f64 = 87_600.0;

/// The population and what has happened to it.
pub struct World {
    population: Population,
    file: Option<PathBuf>,
    state: Mutex<State>,
    served: ServedRecord,
}

struct State {
    saved: SavedState,
    faults: HashMap<Platform, VecDeque<Fault>>,
    /// Requests to each platform since the start, failed ones included.
    requests: BTreeMap<Platform, u64>,
    /// Requests for each picture since the start.
    picture_requests: BTreeMap<String, u64>,
    /// TikTok's access tokens and search ids, with their expiry and value.
    tokens: HashMap<String, (DateTime<Utc>, String)>,
    token_serial: u64,
}

impl State {
    fn now(&self) -> DateTime<Utc> {
        self.saved.now()
    }
}

impl World {
    /// Opens the world of a population with the state of the file, if it exists. The clock of a new world starts at
    /// `start`, or at the real time.
    pub fn open(
        population: Population,
        file: Option<PathBuf>,
        start: Option<DateTime<Utc>>,
    ) -> Result<World, OpenError> {
        let saved = match &file {
            Some(path) => SavedState::read(path).map_err(|error| OpenError::Read(path.clone(), error))?,
            None => None,
        };
        let seed = population.seed();
        let saved = match (saved, &file) {
            (Some(saved), Some(path)) if saved.seed != seed => {
                return Err(OpenError::Seed { path: path.clone(), theirs: saved.seed, ours: seed });
            }
            (Some(saved), _) => saved,
            (None, _) => {
                let offset = start.map_or(TimeDelta::zero(), |start| start - Utc::now());
                SavedState { seed, offset_ms: offset.num_milliseconds(), ..SavedState::default() }
            }
        };
        let world = World {
            population,
            file,
            state: Mutex::new(State {
                saved,
                faults: HashMap::new(),
                requests: Platform::ALL.into_iter().map(|platform| (platform, 0)).collect(),
                picture_requests: BTreeMap::new(),
                tokens: HashMap::new(),
                token_serial: 0,
            }),
            served: ServedRecord::default(),
        };
        world.save(&world.state().saved)?;
        Ok(world)
    }

    pub fn population(&self) -> &Population {
        &self.population
    }

    /// Returns the time of the sandbox's clock.
    pub fn now(&self) -> DateTime<Utc> {
        self.state().now()
    }

    /// Advances the clock.
    pub fn advance(&self, hours: f64) -> Result<(), WorldError> {
        if !(0.0..=MAX_ADVANCE_HOURS).contains(&hours) {
            return Err(WorldError::Hours);
        }
        let milliseconds = (hours * 3_600_000.0) as i64;
        self.change(|saved| {
            match &mut saved.stopped_at {
                Some(time) => *time += TimeDelta::milliseconds(milliseconds),
                None => saved.offset_ms += milliseconds,
            }
            Ok(())
        })
    }

    /// Stops the clock: from now on it moves only by [`World::advance`], so that responses in between are equal.
    pub fn stop_clock(&self) -> Result<(), WorldError> {
        self.change(|saved| {
            saved.stopped_at = Some(saved.now());
            Ok(())
        })
    }

    /// Starts a new record of what is served, instead of the last one.
    pub fn start_record(&self) {
        self.served.start();
    }

    pub(super) fn record_served(&self, items: Vec<ServedItem>) {
        self.served.add(items);
    }

    /// Returns what was served since the record was started.
    pub fn served(&self) -> Result<Vec<ServedItem>, RecordError> {
        self.served.get()
    }

    /// Changes the username of an account.
    pub fn rename(&self, platform: Platform, username: &str, to: &str) -> Result<(), WorldError> {
        let index = self.find_index(platform, username)?;
        let new = platform.parse_username(to);
        let new = new.ok_or_else(|| WorldError::BadUsername(to.to_owned(), platform))?;
        self.change(|saved| {
            // The username of a deleted account can be taken.
            let owner = self.find_username_owner(saved, platform, &new);
            if owner.is_some_and(|owner| owner != index && !saved.lost.contains(&owner)) {
                return Err(WorldError::Taken(to.to_owned()));
            }
            saved.renames.insert(index, new);
            Ok(())
        })
    }

    /// Deletes or restores a post, or without a post the account.
    pub fn set_deleted(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
        deleted: bool,
    ) -> Result<(), WorldError> {
        let index = self.find_index(platform, username)?;
        let post = post.map(|key| self.find_post(index, username, key)).transpose()?;
        self.change(|saved| {
            match post {
                Some(post) => set_member(saved.lost_posts.entry(index).or_default(), post.id, deleted),
                None => set_member(&mut saved.lost, index, deleted),
            }
            Ok(())
        })
    }

    /// Returns a post of an account by id or shortcode, deleted or not.
    fn find_post(&self, index: usize, username: &str, key: &str) -> Result<SimulatedPost, WorldError> {
        let account = &self.population.accounts()[index];
        let matches = |post: &SimulatedPost| post.id == key || post.shortcode.as_deref() == Some(key);
        let post = account.posts_at(self.now()).find(matches);
        post.ok_or_else(|| WorldError::NoPost(username.to_owned(), key.to_owned()))
    }

    /// Fixes a counter of a post, or without a post the followers of an account, at a value.
    pub fn set_counter(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
        counter: &str,
        value: Option<i64>,
    ) -> Result<(), WorldError> {
        let index = self.find_index(platform, username)?;
        let Some(post) = post else {
            if !matches!(counter, "followers" | "follower_count") {
                return Err(WorldError::NoCounter(counter.to_owned()));
            }
            let value = value.ok_or(WorldError::NoFollowers)?;
            return self.change(|saved| {
                saved.followers.insert(index, value);
                Ok(())
            });
        };
        if !Counters::NAMES.contains(&counter) {
            return Err(WorldError::NoCounter(counter.to_owned()));
        }
        let post = self.find_post(index, username, post)?;
        self.change(|saved| {
            let posts = saved.counters.entry(index).or_default();
            posts.entry(post.id).or_default().insert(counter.to_owned(), value);
            Ok(())
        })
    }

    /// Makes every request for an account fail, or none.
    pub fn set_broken(
        &self,
        platform: Platform,
        username: &str,
        fault: Option<Fault>,
    ) -> Result<(), WorldError> {
        let index = self.find_index(platform, username)?;
        self.change(|saved| {
            match fault {
                Some(fault) => _ = saved.broken.insert(index, fault),
                None => _ = saved.broken.remove(&index),
            }
            Ok(())
        })
    }

    /// Makes the next `count` requests to a platform fail; 0 cancels all pending faults.
    pub fn fail_next(&self, platform: Platform, fault: Fault, count: u32) {
        let mut state = self.state();
        let faults = state.faults.entry(platform).or_default();
        if count == 0 {
            faults.clear();
        }
        faults.extend(std::iter::repeat_n(fault, count as usize));
    }

    /// Counts a request to a platform, and takes the fault injected into it.
    pub fn next_fault(&self, platform: Platform) -> Option<Fault> {
        let mut state = self.state();
        *state.requests.entry(platform).or_default() += 1;
        state.faults.get_mut(&platform)?.pop_front()
    }

    /// Returns the number of requests to each platform since the start.
    pub fn requests(&self) -> BTreeMap<Platform, u64> {
        self.state().requests.clone()
    }

    /// Makes the picture of an account or a post bad, or good again.
    pub fn set_picture_fault(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
        fault: Option<PictureFault>,
    ) -> Result<(), WorldError> {
        let key = self.find_picture(platform, username, post)?;
        self.change(|saved| {
            match fault {
                Some(fault) => _ = saved.picture_faults.insert(key, fault),
                None => _ = saved.picture_faults.remove(&key),
            }
            Ok(())
        })
    }

    /// Replaces the picture of an account or a post by another one.
    pub fn replace_picture(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
    ) -> Result<(), WorldError> {
        let key = self.find_picture(platform, username, post)?;
        self.change(|saved| {
            *saved.picture_versions.entry(key).or_default() += 1;
            Ok(())
        })
    }

    fn find_picture(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
    ) -> Result<String, WorldError> {
        let index = self.find_index(platform, username)?;
        Ok(match post {
            Some(post) => {
                picture_key(platform, PictureKind::Cover, &self.find_post(index, username, post)?.id)
            }
            None => picture_key(platform, PictureKind::Profile, &self.population.accounts()[index].id),
        })
    }

    /// Counts a request for a picture, and returns the picture's fault.
    pub(super) fn request_picture(&self, key: &str) -> Option<PictureFault> {
        let mut state = self.state();
        *state.picture_requests.entry(key.to_owned()).or_default() += 1;
        state.saved.picture_faults.get(key).copied()
    }

    /// Returns the number of requests for each picture since the start.
    pub fn picture_requests(&self) -> BTreeMap<String, u64> {
        self.state().picture_requests.clone()
    }

    /// Finds a visible account by username.
    pub fn find_by_username(&self, platform: Platform, username: &str) -> Option<VisibleAccount<'_>> {
        let state = self.state();
        let index = self.find_username_owner(&state.saved, platform, &username.to_lowercase())?;
        self.visible(&state, index)
    }

    /// Finds a visible account by the platform's id.
    pub fn find_by_id(&self, platform: Platform, id: &str) -> Option<VisibleAccount<'_>> {
        let matches = |account: &&SimulatedAccount| account.platform == platform && account.id == id;
        let index = self.population.accounts().iter().find(matches)?.index;
        self.visible(&self.state(), index)
    }

    /// Returns the account of this index, if it is visible.
    pub fn account_at(&self, index: usize) -> Option<VisibleAccount<'_>> {
        self.visible(&self.state(), index)
    }

    /// Returns all visible accounts.
    pub fn visible_accounts(&self) -> Vec<VisibleAccount<'_>> {
        let state = self.state();
        (0..self.population.accounts().len()).filter_map(|index| self.visible(&state, index)).collect()
    }

    /// Stores a value for a limited time, and returns a token for it.
    pub fn issue_token(&self, prefix: &str, lifetime: TimeDelta, value: String) -> String {
        let mut state = self.state();
        let now = state.now();
        state.tokens.retain(|_, (expiry, _)| *expiry > now);
        state.token_serial += 1;
        let token = format!("{prefix}{}{:04}", now.timestamp_micros(), state.token_serial % 10_000);
        state.tokens.insert(token.clone(), (now + lifetime, value));
        token
    }

    /// Returns the value of a token that has not expired.
    pub fn token_value(&self, token: &str) -> Option<String> {
        let state = self.state();
        let now = state.now();
        state.tokens.get(token).filter(|(expiry, _)| *expiry > now).map(|(_, value)| value.clone())
    }

    fn visible<'a>(&'a self, state: &State, index: usize) -> Option<VisibleAccount<'a>> {
        state.saved.visible_account(self.population.accounts().get(index)?, state.now())
    }

    /// Returns the account with this username; a visible one if several had it.
    fn find_username_owner(&self, saved: &SavedState, platform: Platform, username: &str) -> Option<usize> {
        let has_username =
            |account: &&SimulatedAccount| account.platform == platform && saved.username(account) == username;
        let owners = || self.population.accounts().iter().filter(has_username).map(|account| account.index);
        owners().find(|index| !saved.lost.contains(index)).or_else(|| owners().next())
    }

    fn find_index(&self, platform: Platform, username: &str) -> Result<usize, WorldError> {
        let name = username.trim_start_matches('@').to_lowercase();
        let owner = self.find_username_owner(&self.state().saved, platform, &name);
        owner.ok_or_else(|| WorldError::NoAccount(platform, username.to_owned()))
    }

    /// Applies a change and saves it; a change that fails or cannot be saved has no effect.
    fn change(
        &self,
        change: impl FnOnce(&mut SavedState) -> Result<(), WorldError>,
    ) -> Result<(), WorldError> {
        let mut state = self.state();
        let mut saved = state.saved.clone();
        change(&mut saved)?;
        self.save(&saved)?;
        state.saved = saved;
        Ok(())
    }

    fn save(&self, saved: &SavedState) -> Result<(), WorldError> {
        let Some(path) = &self.file else { return Ok(()) };
        saved.write(path).map_err(|error| WorldError::Save(path.clone(), error.to_string()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

fn set_member<T: Ord>(set: &mut BTreeSet<T>, item: T, is_member: bool) {
    if is_member {
        set.insert(item);
    } else {
        set.remove(&item);
    }
}
