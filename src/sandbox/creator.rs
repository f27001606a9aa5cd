//! The people and projects behind simulated accounts.

use std::collections::HashSet;

use super::languages::{LANGUAGES, Language};
use super::phrases::{SIDE_ACCOUNTS, TOPICS};
use super::rng::SeededRng;
use crate::model::platform::Platform;

/// How many accounts each creator has, on both platforms together, repeated over all creators.
pub const CREATOR_SIZES: [usize; 20] = [5, 1, 2, 4, 1, 3, 1, 2, 6, 1, 2, 1, 11, 1, 3, 1, 2, 8, 1, 2];
/// The random stream of a creator.
const CREATOR_STREAM: u64 = 6;
/// A creator of accounts.
pub struct SimulatedCreator {
    /// The display name.
    pub name: String,
    /// Whether its accounts are linked to it.
    pub is_linked: bool,
    pub language: &'static Language,
    pub topic: usize,
    /// From a standard normal distribution.
    pub fame: f64,
    /// The name as in usernames, and its first part.
    username: String,
    short_username: &'static str,
    /// The first part of the display name.
    short_name: &'static str,
}

impl SimulatedCreator {
    /// The creator of this number. Names that are taken get a further part.
    pub fn new(seed: u64, number: usize, accounts: usize, taken: &mut HashSet<String>) -> Self {
        let mut rng = SeededRng::new(seed, &[CREATOR_STREAM, number as u64]);
        // Coprime to the sum of the shares, so that a few creators speak many languages already.
        let mut draw = (number as u64 * 37 + 11) % 100;
        let language = LANGUAGES.iter().find(|language| {
            let is_drawn = draw < language.share;
            draw = draw.saturating_sub(language.share);
            is_drawn
        });
        let language = language.unwrap_or(&LANGUAGES[0]);
        let topic = number % TOPICS.len();
        let fame = rng.next_normal();
        let is_project = language.captions.is_empty() && rng.next_bool(0.4);
        let (short, family) = if is_project {
            (*rng.choose(&TOPICS[topic].projects), ("", ""))
        } else {
            (*rng.choose(language.given_names), *rng.choose(language.family_names))
        };
        let mut name = if language.family_first {
            format!("{}{}{}", family.1, language.separator, short.1)
        } else {
            format!("{}{}{}", short.1, language.separator, family.1).trim().to_owned()
        };
        if !taken.insert(name.clone()) {
            name = format!("{name} {}", rng.choose(&SECOND_NAMES));
            taken.insert(name.clone());
        }
        SimulatedCreator {
            name,
            // Nobody has linked the only accounts of some.
            is_linked: accounts > 1 || !number.is_multiple_of(3),
            language,
            topic,
            fame,
            username: format!("{}{}", short.0, family.0),
            short_username: short.0,
            short_name: short.1,
        }
    }

    /// Returns the username and the display name of the creator's account of this position.
    pub fn account_names(
        &self,
        platform: Platform,
        position: usize,
        topic: usize,
        rng: &mut SeededRng,
    ) -> (String, String) {
        let (name, full, short) = (&self.name, &self.username, self.short_username);
        let topic = &TOPICS[topic];
        let (username, display_name) = match position {
            0 | 1 => (full.clone(), name.clone()),
            2 => (format!("{short}.{}", rng.choose(&topic.hashtags)), name.clone()),
            3 => (format!("{}_{short}", rng.choose(&topic.hashtags)), format!("{name} | {}", topic.category)),
            4 => (
                format!("its{short}{}", rng.next_below(90) + 10),
                format!("{} {}", topic.emoji, self.short_name),
            ),
            _ => {
                let (suffix, side_name) = SIDE_ACCOUNTS[(position - 5) % SIDE_ACCOUNTS.len()];
                (format!("{suffix}.{short}"), format!("{} · {side_name}", self.short_name))
            }
        };
        // Five of the platform's characters are left for a number.
        let max_chars = match platform {
            Platform::Instagram => 25,
            Platform::Tiktok => 19,
        };
        let username: String = username.chars().take(max_chars).collect();
        (username.trim_end_matches(['.', '_']).to_owned(), display_name)
    }
}

/// What tells creators of one name apart.
const SECOND_NAMES: [&str; 8] = ["II", "Jr.", "& Co.", "Studio", "(Berlin)", "(Lisboa)", "TV", "Official"];
