//! White space and invisible characters, which texts copied from chats and web pages begin or end with.

/// The white space and invisible characters that are trimmed, as a class of a regular expression: without U+2028 and U+2029,
/// which generators of clients write into literals that end at the end of a line.
pub(super) const INVISIBLE_CLASS: &str =
    "[\\t-\\r \\u0085\\u00A0\\u1680\\u2000-\\u200F\\u202A-\\u202F\\u205F-\\u2069\\u3000\\uFEFF]";

/// Removes white space and invisible characters at both ends.
pub fn trim_invisible(text: &str) -> &str {
    text.trim_matches(is_invisible)
}

fn is_invisible(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202F}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_trimmed_and_the_middle_is_not() {
        for invisible in [
            " ",
            "\t\r\n",
            "\u{A0}",
            "\u{200B}",
            "\u{200F}",
            "\u{2028}",
            "\u{202F}",
            "\u{2060}",
            "\u{2069}",
            "\u{3000}",
            "\u{FEFF}",
            "\u{FEFF} \u{200E}",
        ] {
            let text = format!("{invisible}a{invisible}b{invisible}");
            assert_eq!(trim_invisible(&text), format!("a{invisible}b"), "{invisible:?}");
        }
        assert_eq!(trim_invisible(" \u{200B} "), "");
    }
}
