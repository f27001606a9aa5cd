//! How a text is cut into the terms of the index: every run of one, two and three characters of its folded form.
//!
//! A query of up to three characters is itself a term, so its documents need no further look. A longer one is the
//! conjunction of its three-character runs, which finds candidates; whoever asks verifies them against the text.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The longest run of characters that is a term.
pub(super) const LONGEST: usize = 3;

/// Returns the terms that every text containing the query has.
pub(super) fn required(query: &str) -> Vec<&str> {
    let starts = starts(query);
    let characters = starts.len() - 1;
    let size = characters.min(LONGEST);
    let mut grams: Vec<_> = starts.windows(size + 1).map(|window| &query[window[0]..window[size]]).collect();
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Returns whether having the required terms already means containing the query.
pub(super) fn is_term(query: &str) -> bool {
    query.chars().nth(LONGEST).is_none()
}

/// The offsets at which the characters start, and the text's length.
fn starts(text: &str) -> Vec<usize> {
    text.char_indices().map(|(start, _)| start).chain([text.len()]).collect()
}

/// Cuts a text that is already folded.
#[derive(Clone, Default)]
pub(super) struct Grams;

pub(super) struct GramStream<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// The character at which the next run starts, and the number of its characters.
    next: (usize, usize),
    token: Token,
}

impl Tokenizer for Grams {
    type TokenStream<'a> = GramStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> GramStream<'a> {
        GramStream { text, starts: starts(text), next: (0, 1), token: Token::default() }
    }
}

impl TokenStream for GramStream<'_> {
    fn advance(&mut self) -> bool {
        let (first, size) = self.next;
        let Some(&end) = self.starts.get(first + size) else {
            if size == 1 {
                return false;
            }
            self.next = (first + 1, 1);
            return self.advance();
        };
        let start = self.starts[first];
        self.token.text.clear();
        self.token.text.push_str(&self.text[start..end]);
        self.token.offset_from = start;
        self.token.offset_to = end;
        self.token.position = first;
        self.next = if size == LONGEST { (first + 1, 1) } else { (first, size + 1) };
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
        let mut tokenizer = Grams;
        let mut stream = tokenizer.token_stream(text);
        std::iter::from_fn(|| stream.next().map(|token| token.text.clone())).collect()
    }

    #[test]
    fn every_run_of_up_to_three_characters_is_a_term() {
        assert_eq!(
            terms("añ\u{1F600}b"),
            ["a", "añ", "añ\u{1F600}", "ñ", "ñ\u{1F600}", "ñ\u{1F600}b", "\u{1F600}", "\u{1F600}b", "b"]
        );
        assert!(terms("").is_empty());
    }

    #[test]
    fn a_query_requires_only_terms_of_the_texts_that_contain_it() {
        let text = "กำ %_\\'\n\u{200D}👩\u{200D}🚀 e\u{301}été";
        let all = terms(text);
        let characters: Vec<char> = text.chars().collect();
        for start in 0..characters.len() {
            for end in start + 1..=characters.len() {
                let query: String = characters[start..end].iter().collect();
                for gram in required(&query) {
                    assert!(all.iter().any(|term| term == gram), "{gram:?} of {query:?}");
                }
                assert_eq!(is_term(&query), end - start <= LONGEST);
            }
        }
    }
}
