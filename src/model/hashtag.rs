//! Hashtags of captions: lower-case, in Unicode's normal form C, without `#`.

use schemars::{Schema, SchemaGenerator, json_schema};
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::limits::{MAX_HASHTAG_CHARS, MAX_HASHTAGS};

/// `#` and its full-width form.
const SIGNS: [char; 2] = ['#', '\u{FF03}'];
/// Join letters within a word, for example in Persian and Malayalam.
const JOINERS: [char; 2] = ['\u{200C}', '\u{200D}'];

/// The hashtags of a caption, in order of appearance, each once.
pub fn hashtags(caption: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (position, sign) in caption.match_indices(SIGNS) {
        if caption[..position].chars().next_back().is_some_and(prevents_hashtag) {
            continue;
        }
        let rest = &caption[position + sign.len()..];
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        let tag = &rest[..end];
        let starts_with_mark =
            tag.chars().next().is_some_and(|first| group(first) == GeneralCategoryGroup::Mark);
        if tag.chars().all(is_digit) || starts_with_mark {
            continue;
        }
        let tag = normalize(tag);
        if !found.contains(&tag) {
            found.push(tag);
        }
    }
    found
}

/// The form in which a hashtag is stored, of what a client sends: `#` is optional, and case does not matter.
pub fn parse(text: &str) -> Option<String> {
    let text = text.trim();
    let tag = normalize(text.strip_prefix(SIGNS).unwrap_or(text));
    (!tag.is_empty()).then_some(tag)
}

/// The schema of a filter by hashtags: texts in any form that [`parse`] reads.
pub fn hashtags_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "null"],
        "minItems": 1,
        "maxItems": MAX_HASHTAGS,
        "items": {"type": "string", "minLength": 1, "maxLength": MAX_HASHTAG_CHARS, "x-hashtag": true},
    })
}

fn normalize(tag: &str) -> String {
    let lower = tag.nfc().collect::<String>().to_lowercase();
    lower.nfc().collect()
}

/// Whether a `#` right after this character belongs to a word, a path or an HTML entity.
fn prevents_hashtag(before: char) -> bool {
    matches!(before, '_' | '/' | '&')
        || matches!(group(before), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

fn is_part(character: char) -> bool {
    character == '_'
        || JOINERS.contains(&character)
        || matches!(
            group(character),
            GeneralCategoryGroup::Letter | GeneralCategoryGroup::Mark | GeneralCategoryGroup::Number
        )
}

fn is_digit(character: char) -> bool {
    group(character) == GeneralCategoryGroup::Number
}

fn group(character: char) -> GeneralCategoryGroup {
    character.general_category_group()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashtags_follow_the_rule() {
        for (caption, expected) in [
            ("", &[][..]),
            ("#Surf at #dawn, #surf again", &["surf", "dawn"]),
            ("\u{FF03}東京 #東京 #Straße #ÉTÉ", &["東京", "straße", "été"]),
            // Not right after a letter, a digit, `_`, `/` or `&`.
            ("a#b 1#c _#d /#e &#39;#f &#g é#h", &["f"]),
            ("#a#b ##c (#d) .#e\n#f", &["a", "c", "d", "e", "f"]),
            // Not digits alone, in any script.
            ("#2026 #２０２６ #² #2026goals #a1 #1_", &["2026goals", "a1", "1_"]),
            ("# #! #- #_ #a-b #a.b #a😀b", &["_", "a"]),
            // The first is no mark.
            ("#\u{301}a #e\u{301}te\u{301} #été", &["été"]),
            ("#می\u{200C}خواهم #हिन्दी", &["می\u{200C}خواهم", "हिन्दी"]),
            ("#ΣΑΣ #İstanbul", &["σας", "i\u{307}stanbul"]),
        ] {
            assert_eq!(hashtags(caption), expected, "{caption}");
        }
    }

    #[test]
    fn sent_hashtags_are_normalized() {
        for (text, expected) in [
            ("#Surf", Some("surf")),
            (" \u{FF03}E\u{301}te\u{301} ", Some("été")),
            ("##a", Some("#a")),
            ("#", None),
            ("  ", None),
        ] {
            assert_eq!(parse(text).as_deref(), expected, "{text}");
        }
    }
}
