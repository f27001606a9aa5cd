//! Rules for the code as a whole: dependencies and their licences, supported databases, edges between modules, where
//! statements are built, and which clock tests read.

mod clocks;
mod licences;
mod modules;
mod releases;
mod skipped;
mod statements;

use std::collections::BTreeSet;
use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Paths and texts of all files in a folder.
fn files(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.push((name, std::fs::read_to_string(&path).unwrap_or_default()));
        }
    }
    files
}

/// The source files that contain one of the patterns, with the pattern.
fn occurrences(patterns: &[&'static str]) -> BTreeSet<(String, &'static str)> {
    let sources = files("src");
    let matches = |(name, text): &(String, String)| {
        let found = patterns.iter().filter(|pattern| text.contains(**pattern));
        found.map(|pattern| (name.clone(), *pattern)).collect::<Vec<_>>()
    };
    sources.iter().flat_map(matches).collect()
}
