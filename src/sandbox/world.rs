//! What has happened in the sandbox: its clock, what was renamed, lost or set by hand, and the failures to come.
//!
//! The population itself never changes. Everything that must outlive the process is in one small file, replaced
//! as a whole at every change, so that a kill leaves either the old state or the new one.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::population::{Population, ProfileCounts, SimulatedAccount, SimulatedPost};
use crate::model::counters::Counters;
use crate::model::platform::Platform;

/// A way in which a platform fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    RateLimit,
    Error,
    Hang,
    Html,
    Truncate,
    Unauthorized,
}

/// The sandbox's world.
pub struct World {
    population: Population,
    file: Option<PathBuf>,
    state: Mutex<State>,
}

/// What a restart keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    seed: u64,
    /// How far the sandbox's clock is ahead of the real one.
    offset_ms: i64,
    /// Usernames by the account's index.
    #[serde(default)]
    renames: BTreeMap<usize, String>,
    #[serde(default)]
    lost: BTreeSet<usize>,
    /// Deleted posts by the account's index.
    #[serde(default)]
    lost_posts: BTreeMap<usize, BTreeSet<String>>,
    #[serde(default)]
    followers: BTreeMap<usize, i64>,
    /// Counters by the account's index and the post's id; null where the platform is to say nothing.
    #[serde(default)]
    counters: BTreeMap<usize, BTreeMap<String, BTreeMap<String, Option<i64>>>>,
}

struct State {
    saved: Saved,
    faults: HashMap<Platform, VecDeque<Fault>>,
    /// Requests to a platform since the start, those that failed included.
    requests: BTreeMap<Platform, u64>,
    /// TikTok's access tokens and searches, with the time at which they expire.
    issued: HashMap<String, (DateTime<Utc>, String)>,
    serial: u64,
}

/// An account as the platform shows it at this moment.
pub struct VisibleAccount<'a> {
    pub account: &'a SimulatedAccount,
    pub username: String,
    pub profile: ProfileCounts,
    pub now: DateTime<Utc>,
    counters: BTreeMap<String, BTreeMap<String, Option<i64>>>,
    lost: BTreeSet<String>,
}

/// Why a change was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    #[error("the sandbox has no {0} account @{1}")]
    NoAccount(Platform, String),
    #[error("@{0} has no post {1} yet")]
    NoPost(String, String),
    #[error("there is no counter {0}; there are followers and {names}", names = Counters::NAMES.join(", "))]
    NoCounter(String),
    #[error("a number of followers cannot be unknown")]
    NoFollowers,
    #[error("@{0} is taken")]
    Taken(String),
    #[error("@{0} cannot be a username on {1}")]
    BadUsername(String, Platform),
    #[error("hours has to be a number from 0 to 87600")]
    Hours,
    #[error("the state file {0} could not be written: {1}")]
    Save(PathBuf, String),
}

/// Why a sandbox could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the state file {0} cannot be read: {1}; mend it, or remove it to begin anew")]
    Read(PathBuf, String),
    #[error(
        "the state file {path} belongs to seed {theirs}, not {ours}: pass --seed {theirs}, or another --state"
    )]
    Seed { path: PathBuf, theirs: u64, ours: u64 },
}

impl World {
    /// Opens the world of a population, with its file's state when there is one. The clock of a new world starts
    /// at `start`, or at the real time.
    pub fn open(
        population: Population,
        file: Option<PathBuf>,
        start: Option<DateTime<Utc>>,
    ) -> Result<World, OpenError> {
        let known = match &file {
            Some(path) => read(path).map_err(|error| OpenError::Read(path.clone(), error))?,
            None => None,
        };
        let saved = match (known, &file) {
            (Some(saved), Some(path)) if saved.seed != population.seed() => {
                return Err(OpenError::Seed {
                    path: path.clone(),
                    theirs: saved.seed,
                    ours: population.seed(),
                });
            }
            (Some(saved), _) => saved,
            (None, _) => {
                let offset = start.map_or(TimeDelta::zero(), |start| start - Utc::now());
                Saved { seed: population.seed(), offset_ms: offset.num_milliseconds(), ..Saved::default() }
            }
        };
        let world = World {
            population,
            file,
            state: Mutex::new(State {
                saved,
                faults: HashMap::new(),
                requests: Platform::ALL.into_iter().map(|platform| (platform, 0)).collect(),
                issued: HashMap::new(),
                serial: 0,
            }),
        };
        let saved = world.state().saved.clone();
        world.save(&saved).map_err(|error| match error {
            WorldError::Save(path, reason) => OpenError::Read(path, reason),
            other => OpenError::Read(PathBuf::new(), other.to_string()),
        })?;
        Ok(world)
    }

    pub fn population(&self) -> &Population {
        &self.population
    }

    /// The sandbox's time.
    pub fn now(&self) -> DateTime<Utc> {
        now(&self.state())
    }

    /// Lets time pass at once.
    pub fn advance(&self, hours: f64) -> Result<(), WorldError> {
        if !(0.0..=87_600.0).contains(&hours) {
            return Err(WorldError::Hours);
        }
        self.change(|saved| {
            saved.offset_ms += (hours * 3_600_000.0) as i64;
            Ok(())
        })
    }

    /// Gives an account another username.
    pub fn rename(&self, platform: Platform, username: &str, to: &str) -> Result<(), WorldError> {
        let index = self.index(platform, username)?;
        let parsed = crate::model::identifier::Username::parse(platform, to)
            .map_err(|_| WorldError::BadUsername(to.to_owned(), platform))?;
        self.change(|saved| {
            // A name whose owner is gone may be taken.
            let holder = self.username_owner(saved, platform, parsed.as_str());
            if holder.is_some_and(|holder| holder != index && !saved.lost.contains(&holder)) {
                return Err(WorldError::Taken(to.to_owned()));
            }
            saved.renames.insert(index, parsed.as_str().to_owned());
            Ok(())
        })
    }

    /// Makes an account disappear, or brings it back.
    pub fn set_account_deleted(
        &self,
        platform: Platform,
        username: &str,
        lost: bool,
    ) -> Result<(), WorldError> {
        let index = self.index(platform, username)?;
        self.change(|saved| {
            if lost {
                saved.lost.insert(index);
            } else {
                saved.lost.remove(&index);
            }
            Ok(())
        })
    }

    /// Deletes a post, or brings it back.
    pub fn set_post_deleted(
        &self,
        platform: Platform,
        username: &str,
        post: &str,
        lost: bool,
    ) -> Result<(), WorldError> {
        let index = self.index(platform, username)?;
        let known = self.post(index, username, post)?;
        self.change(|saved| {
            let posts = saved.lost_posts.entry(index).or_default();
            if lost {
                posts.insert(known.id);
            } else {
                posts.remove(&known.id);
            }
            Ok(())
        })
    }

    /// A post of an account by its id or its shortcode, deleted or not.
    fn post(&self, index: usize, username: &str, post: &str) -> Result<SimulatedPost, WorldError> {
        let account = &self.population.accounts()[index];
        let is_meant = |known: &SimulatedPost| known.id == post || known.shortcode.as_deref() == Some(post);
        let known = account.posts_at(self.now()).find(is_meant);
        known.ok_or_else(|| WorldError::NoPost(username.to_owned(), post.to_owned()))
    }

    /// Fixes a counter of a post, or, without a post, the followers of an account, at a value from now on.
    pub fn set_counter(
        &self,
        platform: Platform,
        username: &str,
        post: Option<&str>,
        counter: &str,
        value: Option<i64>,
    ) -> Result<(), WorldError> {
        let index = self.index(platform, username)?;
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
        let known = self.post(index, username, post)?;
        self.change(|saved| {
            let posts = saved.counters.entry(index).or_default();
            posts.entry(known.id).or_default().insert(counter.to_owned(), value);
            Ok(())
        })
    }

    /// Makes the next requests to a platform fail; none at all clears what is still to come.
    pub fn fail_next(&self, platform: Platform, fault: Fault, count: u32) {
        let mut state = self.state();
        let faults = state.faults.entry(platform).or_default();
        if count == 0 {
            faults.clear();
        }
        faults.extend(std::iter::repeat_n(fault, count as usize));
    }

    /// Counts a request to a platform, and takes the failure that it meets.
    pub fn next_fault(&self, platform: Platform) -> Option<Fault> {
        let mut state = self.state();
        *state.requests.entry(platform).or_default() += 1;
        state.faults.get_mut(&platform)?.pop_front()
    }

    /// How many requests each platform has had since the start.
    pub fn requests(&self) -> BTreeMap<Platform, u64> {
        self.state().requests.clone()
    }

    /// Finds an account that its platform shows, by its username.
    pub fn find_by_username(&self, platform: Platform, username: &str) -> Option<VisibleAccount<'_>> {
        let state = self.state();
        let index = self.username_owner(&state.saved, platform, &username.to_lowercase())?;
        self.seen(&state, index)
    }

    /// Finds an account that its platform shows, by the platform's id.
    pub fn find_by_id(&self, platform: Platform, id: &str) -> Option<VisibleAccount<'_>> {
        let is_meant = |account: &&SimulatedAccount| account.platform == platform && account.id == id;
        let index = self.population.accounts().iter().find(is_meant)?.index;
        self.seen(&self.state(), index)
    }

    /// An account by its place in the population, if its platform shows it.
    pub fn account_at(&self, index: usize) -> Option<VisibleAccount<'_>> {
        self.seen(&self.state(), index)
    }

    /// Every account that the platforms show.
    pub fn visible_accounts(&self) -> Vec<VisibleAccount<'_>> {
        let state = self.state();
        (0..self.population.accounts().len()).filter_map(|index| self.seen(&state, index)).collect()
    }

    /// Notes that something was given out until a time, and returns its name.
    pub fn issue_token(&self, prefix: &str, life: TimeDelta, what: String) -> String {
        let mut state = self.state();
        let now = now(&state);
        state.issued.retain(|_, (until, _)| *until > now);
        state.serial += 1;
        let name = format!("{prefix}{}{:04}", now.timestamp_micros(), state.serial % 10_000);
        state.issued.insert(name.clone(), (now + life, what));
        name
    }

    /// What was given out under a name, while it lasts.
    pub fn issued(&self, name: &str) -> Option<String> {
        let state = self.state();
        let now = now(&state);
        state.issued.get(name).filter(|(until, _)| *until > now).map(|(_, what)| what.clone())
    }

    fn seen<'a>(&'a self, state: &State, index: usize) -> Option<VisibleAccount<'a>> {
        if state.saved.lost.contains(&index) {
            return None;
        }
        let account = self.population.accounts().get(index)?;
        let now = now(state);
        let mut profile = account.profile_at(now);
        if let Some(&followers) = state.saved.followers.get(&index) {
            profile.follower_count = followers;
        }
        let username = state.saved.renames.get(&index).unwrap_or(&account.username).clone();
        let counters = state.saved.counters.get(&index).cloned().unwrap_or_default();
        let lost = state.saved.lost_posts.get(&index).cloned().unwrap_or_default();
        profile.post_count -= lost.len() as i64;
        Some(VisibleAccount { account, username, profile, now, counters, lost })
    }

    /// Who goes by a username: whoever is shown before whoever is lost.
    fn username_owner(&self, saved: &Saved, platform: Platform, username: &str) -> Option<usize> {
        let holds = |account: &&SimulatedAccount| {
            let name = saved.renames.get(&account.index).unwrap_or(&account.username);
            account.platform == platform && name == username
        };
        let holders = || self.population.accounts().iter().filter(holds).map(|account| account.index);
        holders().find(|index| !saved.lost.contains(index)).or_else(|| holders().next())
    }

    fn index(&self, platform: Platform, username: &str) -> Result<usize, WorldError> {
        let name = username.trim_start_matches('@').to_lowercase();
        let holder = self.username_owner(&self.state().saved, platform, &name);
        holder.ok_or_else(|| WorldError::NoAccount(platform, username.to_owned()))
    }

    fn change(&self, how: impl FnOnce(&mut Saved) -> Result<(), WorldError>) -> Result<(), WorldError> {
        let mut state = self.state();
        let mut saved = state.saved.clone();
        how(&mut saved)?;
        self.save(&saved)?;
        state.saved = saved;
        Ok(())
    }

    fn save(&self, saved: &Saved) -> Result<(), WorldError> {
        let Some(path) = &self.file else { return Ok(()) };
        write(path, saved).map_err(|error| WorldError::Save(path.clone(), error.to_string()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VisibleAccount<'_> {
    /// Its posts, newest first, with their counters.
    pub fn posts(&self) -> impl Iterator<Item = (SimulatedPost, Counters)> + '_ {
        let is_there = |post: &SimulatedPost| !self.lost.contains(&post.id);
        self.account.posts_at(self.now).filter(is_there).map(|post| {
            let counters = self.counters(&post);
            (post, counters)
        })
    }

    /// The counters of a post: as they grew, or as they were set.
    pub fn counters(&self, post: &SimulatedPost) -> Counters {
        let mut values = post.counters_at(self.now).to_array();
        if let Some(set) = self.counters.get(&post.id) {
            for (name, value) in Counters::NAMES.iter().zip(&mut values) {
                *value = set.get(*name).copied().unwrap_or(*value);
            }
        }
        Counters::from_array(values).on(self.account.platform)
    }
}

fn now(state: &State) -> DateTime<Utc> {
    Utc::now() + TimeDelta::milliseconds(state.saved.offset_ms)
}

fn read(path: &Path) -> Result<Option<Saved>, String> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| error.to_string()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Replaces the file as a whole.
fn write(path: &Path, saved: &Saved) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = fs::File::create(&beside)?;
    serde_json::to_writer_pretty(&mut file, saved)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    fs::File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
