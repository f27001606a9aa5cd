//! The people and projects behind simulated accounts.

use std::collections::HashSet;

use super::platform::Platform;
use super::rng::SeededRng;
use super::texts::{LANGUAGES, Language, Name, TOPICS};

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
    /// The name as in usernames.
    username: String,
    /// The given name, or that of a project.
    short: &'static Name,
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
            (rng.choose(&TOPICS[topic].projects), &NO_FAMILY)
        } else {
            (rng.choose(&language.given_names), rng.choose(&language.family_names))
        };
        let name = language.name.replace("{given}", &short.display).replace("{family}", &family.display);
        let mut name = name.trim().to_owned();
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
            username: format!("{}{}", short.username, family.username),
            short,
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
        let (name, full, Name { username: short, display }) = (&self.name, &self.username, self.short);
        let topic = &TOPICS[topic];
        let (username, display_name) = match position {
            0 | 1 => (full.clone(), name.clone()),
            2 => (format!("{short}.{}", rng.choose(&topic.hashtags)), name.clone()),
            3 => (format!("{}_{short}", rng.choose(&topic.hashtags)), format!("{name} | {}", topic.category)),
            4 => (format!("its{short}{}", rng.next_below(90) + 10), format!("{} {display}", topic.emoji)),
            _ => {
                let (suffix, side_name) = SIDE_ACCOUNTS[(position - 5) % SIDE_ACCOUNTS.len()];
                (format!("{suffix}.{short}"), format!("{display} · {side_name}"))
            }
        };
        // Five characters are left for a number.
        let max_chars = platform.max_username_chars() - 5;
        let username: String = username.chars().take(max_chars).collect();
        (username.trim_end_matches(['.', '_']).to_owned(), display_name)
    }
}

static NO_FAMILY: Name = Name { username: String::new(), display: String::new() };

/// Additions that tell creators of one name apart.
const SECOND_NAMES: [&str; 8] = ["II", "Jr.", "& Co.", "Studio", "(Berlin)", "(Lisboa)", "TV", "Official"];

/// Names of further accounts of a creator: as in a username, and as displayed.
const SIDE_ACCOUNTS: [(&str, &str); 6] = [
    ("daily", "daily"),
    ("clips", "Clips"),
    ("behind", "behind the scenes"),
    ("shorts", "Shorts"),
    ("live", "live"),
    ("archive", "Archive"),
];
