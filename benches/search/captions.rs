//! Generated captions, recombined from real ones in the folder `TIDEMARK_BENCH_CAPTIONS` or from the sandbox's phrases, and
//! queries that occur in them often or never.

use std::collections::HashSet;
use std::path::Path;

use sandbox::texts::{LANGUAGES, TOPICS};
use tidemark::model::text::search_key;

/// A small deterministic random number generator.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    pub fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A log-uniform number below 10^magnitude.
    pub fn log_uniform(&mut self, magnitude: f64) -> i64 {
        10f64.powf(magnitude * self.below(1_000_000) as f64 / 1_000_000.0) as i64
    }
}

/// Texts, split into words.
pub struct Captions {
    texts: Vec<Vec<String>>,
    pub origin: &'static str,
}

impl Captions {
    pub fn read() -> Self {
        match std::env::var("TIDEMARK_BENCH_CAPTIONS") {
            Ok(folder) => {
                Captions::new(from_csv(&Path::new(&folder).join("videos.csv")), "real captions, recombined")
            }
            Err(_) => Captions::new(from_sandbox(), "the sandbox's phrases, recombined"),
        }
    }

    fn new(texts: Vec<String>, origin: &'static str) -> Self {
        let texts: Vec<Vec<_>> =
            texts.iter().map(|text| text.split(' ').map(str::to_owned).collect()).collect();
        assert!(!texts.is_empty(), "no captions to recombine");
        Captions { texts, origin }
    }

    /// A caption as long as a source caption, built from runs of up to four words of others.
    pub fn next(&self, random: &mut Random) -> String {
        let length = random.one_of(&self.texts).len();
        let mut words: Vec<&str> = Vec::with_capacity(length);
        while words.len() < length {
            let text = random.one_of(&self.texts);
            let start = random.below(text.len());
            let run = (1 + random.below(4)).min(text.len() - start).min(length - words.len());
            words.extend(text[start..start + run].iter().map(String::as_str));
        }
        words.join(" ")
    }

    /// A short text, for names.
    pub fn word(&self, random: &mut Random) -> &str {
        let text = random.one_of(&self.texts);
        random.one_of::<String>(text)
    }
}

fn from_csv(file: &Path) -> Vec<String> {
    let mut reader =
        csv::Reader::from_path(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let column = reader.headers().unwrap().iter().position(|name| name == "description").unwrap();
    let texts: HashSet<String> =
        reader.records().map(|record| record.unwrap()[column].trim().to_owned()).collect();
    let mut texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.sort_unstable();
    texts
}

fn from_sandbox() -> Vec<String> {
    let mut texts = Vec::new();
    let names: Vec<_> = LANGUAGES.iter().flat_map(|language| &language.given_names).collect();
    for topic in TOPICS.iter() {
        let of_languages =
            LANGUAGES.iter().flat_map(|language| language.captions.iter().chain(&language.bios));
        for (number, caption) in of_languages.chain(&topic.captions).enumerate() {
            for (index, name) in names.iter().enumerate() {
                let n = (number * 37 + index * 11).to_string();
                let caption = caption.replace("{n}", &n).replace("{emoji}", &topic.emoji);
                let caption = caption.replace("{topic}", &topic.category);
                let tags = &topic.hashtags;
                texts.push(format!(
                    "{} @{} {}",
                    caption.replace("{tags}", &tags.join(" ")),
                    name.display,
                    tags[index % 4]
                ));
            }
        }
    }
    texts
}

/// Queries of this length that are frequent in the folded texts.
pub fn frequent(texts: &[String], characters: usize, count: usize, random: &mut Random) -> Vec<String> {
    let sample: Vec<&String> = (0..4_000).map(|_| random.one_of(texts)).collect();
    let mut runs: HashSet<String> = HashSet::new();
    for _ in 0..600 {
        runs.extend(run(random.one_of::<String>(texts), characters, random));
    }
    let mut runs: Vec<_> =
        runs.into_iter().map(|run| (sample.iter().filter(|text| text.contains(&run)).count(), run)).collect();
    runs.sort_unstable_by(|a, b| b.cmp(a));
    runs.into_iter().take(count).map(|(_, run)| run).collect()
}

/// Queries of this length in the same scripts that occur in none of the folded texts.
pub fn absent(texts: &[String], characters: usize, count: usize, random: &mut Random) -> Vec<String> {
    let occurring: HashSet<char> = texts.iter().flat_map(|text| text.chars()).collect();
    let mut letters: Vec<char> =
        occurring.iter().copied().filter(|letter| letter.is_alphanumeric()).collect();
    letters.sort_unstable();
    if characters == 1 {
        // Georgian, Armenian, Ethiopic and further Chinese letters.
        let others = ('\u{10d0}'..'\u{10ff}').chain('\u{561}'..'\u{587}').chain('\u{1200}'..'\u{1248}');
        let others = others.chain('\u{5000}'..'\u{5100}').filter(|letter| !occurring.contains(letter));
        return others.take(count).map(String::from).collect();
    }
    let mut queries = HashSet::new();
    while queries.len() < count {
        let Some(run) = run(random.one_of::<String>(texts), characters, random) else { continue };
        let mut run: Vec<char> = run.chars().collect();
        let index = random.below(run.len());
        run[index] = *random.one_of(&letters);
        let query: String = run.into_iter().collect();
        if search_key(&query) == query
            && query.trim() == query
            && !texts.iter().any(|text| text.contains(&query))
        {
            queries.insert(query);
        }
    }
    queries.into_iter().collect()
}

/// A trimmed run of characters of a text.
fn run(text: &str, characters: usize, random: &mut Random) -> Option<String> {
    let all: Vec<char> = text.chars().collect();
    let start = random.below((all.len() + 1).checked_sub(characters)?.max(1));
    let run: String = all.get(start..start + characters)?.iter().collect();
    (run.trim() == run).then_some(run)
}
