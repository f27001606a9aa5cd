//! What an import leaves out or assumes, in sentences, each said once.

use std::collections::{BTreeMap, BTreeSet};

use super::column::Column;

#[derive(Debug, Default)]
pub struct Notes {
    assumed: Vec<String>,
    said: BTreeSet<String>,
    left_out: BTreeMap<(Column, &'static str), LeftOut>,
    late_posts: u64,
    left_parts: Vec<String>,
    left_part_count: usize,
}

#[derive(Debug)]
struct LeftOut {
    line: u64,
    value: String,
    count: u64,
}

/// Files of an archive that are named.
const MAX_NAMED_PARTS: usize = 5;

impl Notes {
    pub fn assume(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if self.said.insert(sentence.clone()) {
            self.assumed.push(sentence);
        }
    }

    /// Records a value that is not stored.
    pub fn leave_out(&mut self, column: Column, why: &'static str, value: String, line: u64) {
        self.left_out.entry((column, why)).or_insert(LeftOut { line, value, count: 0 }).count += 1;
    }

    /// Counts a post whose written time is not the one in its id.
    pub const fn count_late_post(&mut self) {
        self.late_posts += 1;
    }

    pub fn leave_part(&mut self, name: &str) {
        self.left_part_count += 1;
        if self.left_parts.len() < MAX_NAMED_PARTS {
            self.left_parts.push(name.to_owned());
        }
    }

    pub const fn has_left_parts(&self) -> bool {
        self.left_part_count > 0
    }

    pub fn into_sentences(self) -> Vec<String> {
        let mut sentences = self.assumed;
        for ((column, why), LeftOut { line, value, count }) in self.left_out {
            let name = column.name();
            let rows = if count == 1 { "1 row".to_owned() } else { format!("{count} rows") };
            sentences.push(format!("left out `{name}` of {rows}: {value} in line {line} {why}"));
        }
        match self.late_posts {
            0 => {}
            1 => sentences.push(
                "1 posting time is over two minutes from that in the id: the written one is stored".to_owned(),
            ),
            posts => sentences.push(format!(
                "{posts} posting times are over two minutes from those in the ids: the written ones are stored"
            )),
        }
        if self.left_part_count > 0 {
            let others = self.left_part_count - self.left_parts.len();
            let named = self.left_parts.join(", ");
            let more = if others > 0 { format!(" and {others} more") } else { String::new() };
            sentences.push(format!("left {named}{more}: no tables that are known"));
        }
        sentences
    }
}
