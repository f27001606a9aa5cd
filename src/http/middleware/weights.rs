//! Parses headers with weights, such as `Accept`.

/// Returns the values of a header, with their weights in thousandths.
pub(super) fn parse_weights(header: &str) -> impl Iterator<Item = (&str, u16)> {
    header.split(',').filter_map(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let value = parts.next().filter(|value| !value.is_empty())?;
        let weight = parts.find_map(|part| {
            let (name, weight) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| weight.trim().parse::<f32>().unwrap_or(0.0))
        });
        Some((value, (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u16))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_in_thousandths() {
        assert_eq!(
            parse_weights("gzip;q=0.5, br , ;q=1, zstd;Q=x").collect::<Vec<_>>(),
            [("gzip", 500), ("br", 1000), ("zstd", 0)]
        );
    }
}
