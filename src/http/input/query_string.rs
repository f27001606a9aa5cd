//! Decodes query strings strictly: an invalid escape or invalid UTF-8 is an error.

/// Decodes a query string into pairs; `None` if any part of it is invalid.
pub fn decode_query(query: &str) -> Option<Vec<(String, String)>> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((percent_decode(name)?, percent_decode(value)?))
        })
        .collect()
}

/// Decodes percent-encoded UTF-8.
pub fn percent_decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_query_strings_are_rejected() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            decode_query("q=a+b%20c&&x&y=%C3%89=").unwrap(),
            [pair("q", "a b c"), pair("x", ""), pair("y", "É=")]
        );
        assert_eq!(decode_query(""), Some(vec![]));
        for invalid in ["q=%", "q=%4", "q=%zz", "q=%ff", "%C3=1"] {
            assert_eq!(decode_query(invalid), None, "{invalid}");
        }
    }
}
