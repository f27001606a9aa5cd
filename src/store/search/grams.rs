//! How a text is cut into the terms of the index: every run of one, two and three characters of its folded form, how it
//! begins, and what it is as a whole.
//!
//! A query of up to three characters is itself a term. A longer one is the conjunction of its three-character runs,
//! which finds candidates; whoever asks verifies them against the text.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// The longest run of characters that is a term.
const LONGEST: usize = 3;
/// The most runs that a query is looked up by: all of a short one's, of a longer one's some, evenly spread.
const MOST: usize = 32;
/// Stands before terms that say how a text begins, twice before those of whole texts. Postgres stores none in a text.
const MARK: char = '\0';

/// Returns terms that every text containing the query has.
pub(super) fn anywhere(query: &str) -> Vec<String> {
    let starts = starts(query);
    let size = LONGEST.min(starts.len() - 1);
    let runs: Vec<_> = starts.windows(size + 1).map(|window| &query[window[0]..window[size]]).collect();
    let mut grams: Vec<_> = if runs.len() <= MOST {
        runs.into_iter().map(str::to_owned).collect()
    } else {
        (0..MOST).map(|part| runs[part * (runs.len() - 1) / (MOST - 1)].to_owned()).collect()
    };
    grams.sort_unstable();
    grams.dedup();
    grams
}

/// Returns terms that every text beginning with the query has.
pub(super) fn beginning(query: &str) -> Vec<String> {
    let starts = starts(query);
    let size = LONGEST.min(starts.len() - 1);
    let mut grams = if starts.len() - 1 > LONGEST { anywhere(query) } else { Vec::new() };
    grams.push(format!("{MARK}{}", &query[..starts[size]]));
    grams
}

/// Returns the term that the query itself has as a text, and next to no other.
pub(super) fn whole(query: &str) -> Vec<String> {
    vec![format!("{MARK}{MARK}{:08x}", crc32fast::hash(query.as_bytes()))]
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
    next: Next,
    token: Token,
}

/// The term that comes next.
#[derive(Clone, Copy)]
enum Next {
    Whole,
    /// With so many characters.
    Beginning(usize),
    /// From a character on, with so many.
    Run(usize, usize),
}

impl Tokenizer for Grams {
    type TokenStream<'a> = GramStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> GramStream<'a> {
        GramStream {
            text,
            starts: starts(text),
            next: Next::Whole,
            token: Token { position: 0, ..Token::default() },
        }
    }
}

impl GramStream<'_> {
    /// Sets the term to the characters of the text from one to before another, behind a mark or without.
    fn set(&mut self, mark: &str, from: usize, to: usize) {
        self.token.text.clear();
        self.token.text.push_str(mark);
        self.token.text.push_str(&self.text[self.starts[from]..self.starts[to]]);
    }
}

impl TokenStream for GramStream<'_> {
    fn advance(&mut self) -> bool {
        let characters = self.starts.len() - 1;
        match self.next {
            _ if characters == 0 => return false,
            Next::Whole => {
                self.token.text = whole(self.text).swap_remove(0);
                self.next = Next::Beginning(1);
            }
            Next::Beginning(size) => {
                self.set("\0", 0, size);
                self.next =
                    if size == LONGEST.min(characters) { Next::Run(0, 1) } else { Next::Beginning(size + 1) };
            }
            Next::Run(first, _) if first == characters => return false,
            Next::Run(first, size) => {
                self.set("", first, first + size);
                let longest = LONGEST.min(characters - first);
                self.next =
                    if size == longest { Next::Run(first + 1, 1) } else { Next::Run(first, size + 1) };
            }
        }
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
    fn the_whole_its_beginnings_and_every_run_of_up_to_three_characters_are_terms() {
        let all = terms("añ\u{1F600}b");
        assert_eq!(all[..1], whole("añ\u{1F600}b"));
        assert_eq!(all[1..4], ["\0a", "\0añ", "\0añ\u{1F600}"]);
        assert_eq!(
            all[4..],
            ["a", "añ", "añ\u{1F600}", "ñ", "ñ\u{1F600}", "ñ\u{1F600}b", "\u{1F600}", "\u{1F600}b", "b"]
        );
        assert_eq!(terms("é"), [whole("é").swap_remove(0), "\0é".to_owned(), "é".to_owned()]);
        assert!(terms("").is_empty());
    }

    #[test]
    fn a_query_asks_for_terms_that_every_text_containing_it_has() {
        let text = "กำ %_\\'\n\u{200D}👩\u{200D}🚀 e\u{301}été ".repeat(4);
        let all = terms(&text);
        let characters: Vec<char> = text.chars().collect();
        for start in 0..characters.len() {
            for end in start + 1..=characters.len() {
                let query: String = characters[start..end].iter().collect();
                let grams = anywhere(&query);
                assert!(!grams.is_empty() && grams.len() <= MOST);
                for gram in grams {
                    assert!(all.contains(&gram), "{gram:?} of {query:?}");
                }
                if start == 0 {
                    assert!(beginning(&query).iter().all(|gram| all.contains(gram)), "{query:?}");
                }
            }
        }
        assert!(whole(&text).iter().all(|term| all.contains(term)));
        assert!(!whole("other").iter().any(|term| all.contains(term)));
    }
}
