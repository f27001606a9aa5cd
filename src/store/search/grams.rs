//! The tokenizer: the terms of a folded text are its runs of one to three characters, its prefixes, and its hash.
//!
//! A query of up to three characters is a term. A longer one is the conjunction of its three-character runs, which finds
//! candidates to verify against the text.

use std::ops::Range;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

const MAX_GRAM_LENGTH: usize = 3;
/// Runs that a query is looked up by; of a longer query evenly spread ones.
const MAX_GRAMS_PER_QUERY: usize = 32;
/// Precedes prefix terms, twice the exact term. Postgres cannot store it in a text.
const MARK: &str = "\0";

/// Terms that every text containing the query has.
pub(super) fn substring_terms(query: &str) -> Vec<String> {
    let offsets = offsets(query);
    let size = MAX_GRAM_LENGTH.min(offsets.len() - 1);
    let runs: Vec<_> = offsets.windows(size + 1).map(|window| &query[window[0]..window[size]]).collect();
    // A short query has all its runs; a long one some at equal distances.
    let (last, count) = (runs.len() - 1, runs.len().min(MAX_GRAMS_PER_QUERY));
    let mut grams: Vec<_> = (0..count).map(|n| runs[n * last / (count - 1).max(1)].to_owned()).collect();
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Terms that every text starting with the query has.
pub(super) fn prefix_terms(query: &str) -> Vec<String> {
    let offsets = offsets(query);
    let size = MAX_GRAM_LENGTH.min(offsets.len() - 1);
    let mut grams = if offsets.len() - 1 > MAX_GRAM_LENGTH { substring_terms(query) } else { Vec::new() };
    grams.push(format!("{MARK}{}", &query[..offsets[size]]));
    grams
}

/// The term of a text that equals the query; others rarely have it.
pub(super) fn exact_term(query: &str) -> String {
    format!("{MARK}{MARK}{:08x}", crc32fast::hash(query.as_bytes()))
}

/// The offsets of the characters, and the length of the text.
fn offsets(text: &str) -> Vec<usize> {
    text.char_indices().map(|(start, _)| start).chain([text.len()]).collect()
}

/// Tokenizes folded texts.
#[derive(Clone, Default)]
pub(super) struct GramTokenizer;

pub(super) struct GramStream<'a> {
    text: &'a str,
    /// The first term; None afterwards.
    exact: Option<String>,
    /// The marks and ranges of the other terms.
    ranges: Box<dyn Iterator<Item = (&'static str, Range<usize>)>>,
    token: Token,
}

impl Tokenizer for GramTokenizer {
    type TokenStream<'a> = GramStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> GramStream<'a> {
        let offsets = offsets(text);
        let length = offsets.len() - 1;
        let longest_end = move |start: usize| length.min(start + MAX_GRAM_LENGTH);
        let prefixes = (1..=longest_end(0)).map(|end| (MARK, 0, end));
        let runs = (0..length)
            .flat_map(move |start| (start + 1..=longest_end(start)).map(move |end| ("", start, end)));
        let terms = prefixes.chain(runs);
        GramStream {
            text,
            exact: (length > 0).then(|| exact_term(text)),
            ranges: Box::new(terms.map(move |(mark, start, end)| (mark, offsets[start]..offsets[end]))),
            token: Token { position: 0, ..Token::default() },
        }
    }
}

impl TokenStream for GramStream<'_> {
    fn advance(&mut self) -> bool {
        if let Some(exact) = self.exact.take() {
            self.token.text = exact;
            return true;
        }
        let Some((mark, range)) = self.ranges.next() else { return false };
        self.token.text.clear();
        self.token.text.push_str(mark);
        self.token.text.push_str(&self.text[range]);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut tokenizer = GramTokenizer;
        let mut stream = tokenizer.token_stream(text);
        std::iter::from_fn(|| stream.next().map(|token| token.text.clone())).collect()
    }

    #[test]
    fn terms_are_the_hash_prefixes_and_runs_up_to_three() {
        let all = terms("añ\u{1F600}b");
        assert_eq!(all[0], exact_term("añ\u{1F600}b"));
        assert_eq!(all[1..4], ["\0a", "\0añ", "\0añ\u{1F600}"]);
        assert_eq!(
            all[4..],
            ["a", "añ", "añ\u{1F600}", "ñ", "ñ\u{1F600}", "ñ\u{1F600}b", "\u{1F600}", "\u{1F600}b", "b"]
        );
        assert_eq!(terms("é"), [exact_term("é"), "\0é".to_owned(), "é".to_owned()]);
        assert!(terms("").is_empty());
    }

    #[test]
    fn query_terms_are_terms_of_every_matching_text() {
        let text = "กำ %_\\'\n\u{200D}👩\u{200D}🚀 e\u{301}été ".repeat(4);
        let all = terms(&text);
        let characters: Vec<char> = text.chars().collect();
        for start in 0..characters.len() {
            for end in start + 1..=characters.len() {
                let query: String = characters[start..end].iter().collect();
                let grams = substring_terms(&query);
                assert!(!grams.is_empty() && grams.len() <= MAX_GRAMS_PER_QUERY);
                for gram in grams {
                    assert!(all.contains(&gram), "{gram:?} of {query:?}");
                }
                if start == 0 {
                    assert!(prefix_terms(&query).iter().all(|gram| all.contains(gram)), "{query:?}");
                }
            }
        }
        assert!(all.contains(&exact_term(&text)));
        assert!(!all.contains(&exact_term("other")));
    }
}
