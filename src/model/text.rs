//! How text is compared: by Unicode's simple lower-casing, character by character, without normalisation.
//!
//! Searching, filtering and sorting all use this one form, so they agree on every machine and in every
//! database locale; the stores keep it beside the text it was made from.

/// Returns the text in the form in which it is searched and sorted.
pub fn folded(text: &str) -> String {
    text.chars().map(simple_lowercase).collect()
}

/// Unicode's simple lower-case mapping: one character for one.
fn simple_lowercase(character: char) -> char {
    let mut full = character.to_lowercase();
    match (full.next(), full.next()) {
        (Some(lower), None) => lower,
        // The one character whose full mapping is longer than its simple one: İ, whose simple mapping is i.
        _ if character == '\u{130}' => 'i',
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_casing_keeps_the_number_of_characters() {
        for code in 0..=u32::from(char::MAX) {
            let Some(character) = char::from_u32(code) else { continue };
            assert!(
                character.to_lowercase().count() == 1 || character == '\u{130}',
                "{character:?} has a longer lower-case form, whose simple one is unknown here"
            );
        }
        assert_eq!(folded("ÉCOLE İstanbul ΣΑΣ"), "école istanbul σασ");
    }
}
