//! Texts as they are sorted and as they are searched. Stores hold both in columns of their own, because the locale of a
//! database changes its `lower()`.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// The key by which names are sorted: Unicode's simple lower-case mapping, without normalization.
pub fn fold_case(text: &str) -> String {
    text.chars().map(simple_lowercase).collect()
}

/// The key by which texts are searched: NFKC (UAX #15), without variation selectors, in lower case, with one sigma. So `Ａ`
/// and `a`, composed and decomposed `é`, `❤` and `❤️`, `σας` and `ΣΑΣ` are equal. It never contains an upper-case letter.
pub fn search_key(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let visible = text.chars().filter(|character| !is_variation_selector(*character)).collect();
    let folded =
        normalize(visible).chars().map(|character| fold_sigma(simple_lowercase(character))).collect();
    // A lower-case letter may have a composed form that its upper-case one lacks, such as ǰ.
    normalize(folded)
}

fn normalize(text: String) -> String {
    match is_nfkc_quick(text.chars()) {
        IsNormalized::Yes => text,
        IsNormalized::No | IsNormalized::Maybe => text.nfkc().collect(),
    }
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

const fn fold_sigma(character: char) -> char {
    if character == 'ς' { 'σ' } else { character }
}

const fn is_variation_selector(character: char) -> bool {
    matches!(character, '\u{FE00}'..='\u{FE0F}' | '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{E0100}'..='\u{E01EF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_characters() -> impl Iterator<Item = char> {
        (0..=u32::from(char::MAX)).filter_map(char::from_u32)
    }

    #[test]
    fn fold_case_preserves_the_number_of_characters() {
        for character in all_characters() {
            assert!(
                character.to_lowercase().count() == 1 || character == '\u{130}',
                "{character:?} has a full mapping of several characters: add its simple mapping"
            );
        }
        assert_eq!(fold_case("ÉCOLE İstanbul ΣΑΣ"), "école istanbul σασ");
    }

    #[test]
    fn texts_that_look_alike_have_one_search_key() {
        for (text, key) in [
            ("Cafe\u{301} CAFÉ", "café café"),
            ("ＡＢＣ１２", "abc12"),
            ("ｶﾞﾝ", "ガン"),
            ("❤\u{FE0F} ❤", "❤ ❤"),
            ("葛\u{E0100}", "葛"),
            ("ΣΑΣ σας", "σασ σασ"),
            ("J\u{30C}", "\u{1F0}"),
            ("𝐀ﬁ①", "afi1"),
            ("İI", "ii"),
            ("\u{212A}", "k"),
            ("\u{FE0F}", ""),
        ] {
            assert_eq!(search_key(text), key, "{text:?}");
        }
    }

    #[test]
    fn search_key_is_final_and_has_no_upper_case() {
        let combined =
            ('\u{80}'..'\u{3000}').flat_map(|other| [format!("e{other}"), format!("{other}\u{301}")]);
        for text in all_characters().map(String::from).chain(combined) {
            let key = search_key(&text);
            assert_eq!(search_key(&key), key, "{text:?}");
            assert!(!key.contains(|folded: char| folded.is_ascii_uppercase()), "{text:?}");
        }
    }
}
