//! What the records of a post are after steps that name it by different ids: the oracle of `one_post`.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use fastrand::Rng;
use tidemark::model::identifier::VideoIds;
use tidemark::model::platform::Platform;

/// The ids of a post.
pub struct Post {
    pub pk: String,
    pub code: String,
    pub graph_id: String,
}

impl Post {
    pub fn new(number: usize) -> Self {
        let pk = (3_371_837_490_061_265_204 + 977 * number as u64).to_string();
        let ids = VideoIds::new(Platform::Instagram, Some(&pk), None);
        let code = ids.shortcode().unwrap().to_owned();
        Post { pk, code, graph_id: (17_900_000_000_000_000 + number as u64).to_string() }
    }
}

/// The ids that a step gives: of the Graph API, or those that are one number, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    pub graph_id: bool,
    pub number: bool,
}

/// Why a step finds the post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Account(usize),
    Individual,
}

#[derive(Debug, Clone)]
pub struct Observation {
    pub at: DateTime<Utc>,
    pub views: i64,
    pub likes: Option<i64>,
}

#[derive(Debug, Clone)]
pub enum Step {
    Import {
        text: String,
        given: Given,
        origin: Origin,
        observation: Observation,
    },
    Add {
        identifier: String,
        given: Given,
    },
    Scrape {
        external_id: String,
        shortcode: Option<String>,
        given: Given,
        origin: Origin,
        observation: Observation,
    },
    Delete,
}

/// A record as the model expects it.
#[derive(Debug, Clone)]
pub struct Record {
    pub given: Given,
    pub account: Option<usize>,
    pub is_tracked: bool,
    /// By day: the latest observation.
    pub history: BTreeMap<NaiveDate, Observation>,
}

impl Record {
    fn observe(&mut self, observation: Observation) {
        let day = self.history.entry(observation.at.date_naive()).or_insert_with(|| observation.clone());
        if day.at <= observation.at {
            *day = observation;
        }
    }

    fn merge(&mut self, newer: Record) {
        self.given.graph_id |= newer.given.graph_id;
        self.given.number |= newer.given.number;
        self.account = self.account.or(newer.account);
        self.is_tracked |= newer.is_tracked;
        for observation in newer.history.into_values() {
            self.observe(observation);
        }
    }

    /// The gains of views and likes: nothing is known of the time before the first observation.
    pub fn gains(&self) -> [i64; 2] {
        let views = self.history.values().map(|observation| observation.views);
        let likes = self.history.values().filter_map(|observation| observation.likes);
        [gain(views), gain(likes)]
    }
}

fn gain(mut values: impl Iterator<Item = i64>) -> i64 {
    let first = values.next().unwrap_or_default();
    values.last().map_or(0, |last| last - first)
}

/// The records of one post, the oldest first.
#[derive(Debug, Default)]
pub struct Model(pub Vec<Record>);

impl Model {
    /// Returns the record of a post by ids, after merging those that turn out to be one.
    pub fn find_or_create(&mut self, given: Given) -> &mut Record {
        let matches =
            |record: &Record| given.graph_id && record.given.graph_id || given.number && record.given.number;
        let position = self.0.iter().position(matches).unwrap_or(self.0.len());
        let (same, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.0).into_iter().partition(matches);
        self.0 = others;
        let mut same = same.into_iter();
        let mut record = same.next().unwrap_or_else(|| Record {
            given,
            account: None,
            is_tracked: false,
            history: BTreeMap::new(),
        });
        same.for_each(|newer| record.merge(newer));
        record.given.graph_id |= given.graph_id;
        record.given.number |= given.number;
        self.0.insert(position, record);
        &mut self.0[position]
    }

    pub fn observe(&mut self, given: Given, origin: Origin, observation: Observation) {
        let record = self.find_or_create(given);
        match origin {
            Origin::Account(account) => record.account = record.account.or(Some(account)),
            Origin::Individual => record.is_tracked = true,
        }
        record.observe(observation);
    }

    /// Deletes the individual tracking of a record, and the record if it has no account.
    pub fn delete(&mut self, given: Given) {
        self.0.retain_mut(|record| {
            let is_deleted = record.given == given;
            record.is_tracked &= !is_deleted;
            !is_deleted || record.account.is_some()
        });
    }
}

/// Two forms of one id, and both ids.
fn random_given(rng: &mut Rng) -> Given {
    match rng.usize(0..5) {
        0 | 1 => Given { graph_id: true, number: false },
        2 | 3 => Given { graph_id: false, number: true },
        _ => Given { graph_id: true, number: true },
    }
}

pub fn random_step(rng: &mut Rng, post: &Post, observation: Observation) -> Step {
    let origin = match rng.usize(0..4) {
        0 => Origin::Account(0),
        1 => Origin::Account(1),
        _ => Origin::Individual,
    };
    let given = random_given(rng);
    match rng.usize(0..8) {
        0..3 => {
            let given = Given { graph_id: given.graph_id && !given.number, number: given.number };
            let text = match (given.graph_id, rng.usize(0..3)) {
                (true, _) => post.graph_id.clone(),
                (false, 0) => format!("{}_1784", post.pk),
                (false, 1) => post.code.clone(),
                (false, _) => post.pk.clone(),
            };
            Step::Import { text, given, origin, observation }
        }
        3 | 4 => {
            let given = Given { graph_id: given.graph_id && !given.number, number: given.number };
            let identifier = match (given.graph_id, rng.usize(0..4)) {
                (true, _) => post.graph_id.clone(),
                (false, 0) => format!("https://www.instagram.com/some.one/reel/{}/?igsh=x", post.code),
                (false, 1) => post.pk.clone(),
                (false, 2) => format!("instagram.com/p/{}UqFW2xiLWLQiIg_TxuOIQ_OQPTM0", post.code),
                (false, _) => post.code.clone(),
            };
            Step::Add { identifier, given }
        }
        5 | 6 => {
            let (external_id, shortcode) = match (given.graph_id, given.number) {
                (true, false) => (post.graph_id.clone(), None),
                (true, true) => (post.graph_id.clone(), Some(post.code.clone())),
                _ => (post.pk.clone(), rng.bool().then(|| post.code.clone())),
            };
            Step::Scrape { external_id, shortcode, given, origin, observation }
        }
        _ => Step::Delete,
    }
}
