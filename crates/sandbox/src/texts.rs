//! Names, biographies and captions of simulated accounts by language and topic, from the files in `data`.

use std::sync::LazyLock;

/// The people and texts of a language.
#[derive(Debug, Default)]
pub struct Language {
    /// How many of a hundred creators speak it.
    pub share: u64,
    /// The order of the two names.
    pub name: String,
    pub given_names: Vec<Name>,
    pub family_names: Vec<Name>,
    pub bios: Vec<String>,
    /// None in English, which has those of the topic.
    pub captions: Vec<String>,
}

/// The subject of an account.
#[derive(Debug, Default)]
pub struct Topic {
    pub category: String,
    pub emoji: String,
    pub hashtags: Vec<String>,
    /// Names of creators that are no person.
    pub projects: Vec<Name>,
    pub captions: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Name {
    pub username: String,
    pub display: String,
}

pub static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    parse_records(include_str!("../data/languages.txt"), |language: &mut Language, key, value| match key {
        "share" => language.share = value.parse().unwrap_or_default(),
        "name" => language.name = value,
        "given" => language.given_names.push(parse_name(&value)),
        "family" => language.family_names.push(parse_name(&value)),
        "bio" => language.bios.push(value),
        "caption" => language.captions.push(value),
        _ => {}
    })
});

pub static TOPICS: LazyLock<Vec<Topic>> = LazyLock::new(|| {
    parse_records(include_str!("../data/topics.txt"), |topic: &mut Topic, key, value| match key {
        "topic" => topic.category = value,
        "emoji" => topic.emoji = value,
        "hashtag" => topic.hashtags.push(value),
        "project" => topic.projects.push(parse_name(&value)),
        "caption" => topic.captions.push(value),
        _ => {}
    })
});

/// Parses lines of a key and a value. The first key begins a record.
fn parse_records<T: Default>(text: &str, set: impl Fn(&mut T, &str, String)) -> Vec<T> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut lines = lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).peekable();
    let first = lines.peek().map_or("", |(key, _)| *key);
    let mut records: Vec<T> = Vec::new();
    for (key, value) in lines {
        if key == first {
            records.push(T::default());
        }
        if let Some(record) = records.last_mut() {
            set(record, key, value.replace("\\n", "\n"));
        }
    }
    records
}

/// Parses a name: as in a username, then as displayed.
fn parse_name(text: &str) -> Name {
    let (username, display) = text.split_once(' ').unwrap_or((text, text));
    Name { username: username.to_owned(), display: display.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_complete() {
        assert_eq!(LANGUAGES.iter().map(|language| language.share).sum::<u64>(), 100);
        for language in LANGUAGES.iter() {
            assert!(language.name.contains("{given}") && language.name.contains("{family}"), "{language:?}");
            let names = [&language.given_names, &language.family_names];
            assert!(names.iter().all(|names| !names.is_empty()) && !language.bios.is_empty(), "{language:?}");
        }
        assert_eq!(LANGUAGES.iter().filter(|language| language.captions.is_empty()).count(), 1);
        for topic in TOPICS.iter() {
            let counts = (topic.hashtags.len(), topic.projects.len(), topic.captions.len());
            assert_eq!(counts, (4, 4, 8), "{topic:?}");
        }
        assert!(TOPICS[0].captions.iter().any(|caption| caption.contains("flour\n")));
    }
}
