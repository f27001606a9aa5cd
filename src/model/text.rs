//! Case folding for search, filters and sorting: Unicode's simple lower-case mapping, without normalization.
//!
//! Stores hold the folded text in a column of its own, because the locale of a database changes its `lower()`.

pub fn fold_case(text: &str) -> String {
    text.chars().map(simple_lowercase).collect()
}

/// Unicode's simple lower-case mapping, which maps one character to one.
fn simple_lowercase(character: char) -> char {
    let mut full = character.to_lowercase();
    match (full.next(), full.next()) {
        (Some(lower), None) => lower,
        // İ is the only character with a longer full mapping; its simple one is i.
        _ if character == '\u{130}' => 'i',
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fold_case_preserves_the_number_of_characters() {
        for code in 0..=u32::from(char::MAX) {
            let Some(character) = char::from_u32(code) else { continue };
            assert!(
                character.to_lowercase().count() == 1 || character == '\u{130}',
                "{character:?} has a full mapping of several characters: add its simple mapping"
            );
        }
        assert_eq!(fold_case("ÉCOLE İstanbul ΣΑΣ"), "école istanbul σασ");
    }
}
