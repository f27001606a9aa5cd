//! Rejects requests that do not accept the content type of the response, and parses weighted headers such as `Accept`.

use salvo::http::header::ACCEPT;
use salvo::{Request, handler};

use crate::http::output::problem::Problem;

/// The content type of successful responses, which requests have to accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequireAccept {
    Json,
    Csv,
    Parquet,
    EventStream,
}

#[handler]
impl RequireAccept {
    fn handle(&self, req: &Request) -> Result<(), Problem> {
        let ranges: Vec<_> =
            req.headers().get_all(ACCEPT).iter().map(|value| value.to_str().unwrap_or("?")).collect();
        if self.is_accepted(&ranges.join(",")) {
            Ok(())
        } else {
            Err(Problem::not_acceptable(self.ranges()[0]))
        }
    }
}

impl RequireAccept {
    /// The ranges that allow it, the most specific first.
    const fn ranges(self) -> [&'static str; 3] {
        match self {
            RequireAccept::Json => ["application/json", "application/*", "*/*"],
            RequireAccept::Csv => ["text/csv", "text/*", "*/*"],
            RequireAccept::Parquet => ["application/vnd.apache.parquet", "application/*", "*/*"],
            RequireAccept::EventStream => ["text/event-stream", "text/*", "*/*"],
        }
    }

    /// Whether an `Accept` header allows it. The most specific matching range decides.
    fn is_accepted(self, accept: &str) -> bool {
        if parse_weights(accept).next().is_none() {
            return true;
        }
        let weight_of = |wanted: &str| {
            parse_weights(accept)
                .filter(|(range, _)| range.eq_ignore_ascii_case(wanted))
                .map(|(_, weight)| weight)
                .max()
        };
        let [exact, subtype, any] = self.ranges().map(weight_of);
        match exact.or(subtype).or(any) {
            Some(weight) if weight > 0 => true,
            // Problems are JSON, too.
            _ if self == RequireAccept::Json && exact.is_none() => {
                weight_of("application/problem+json").is_some_and(|weight| weight > 0)
            }
            _ => false,
        }
    }
}

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
    fn most_specific_accept_range_decides() {
        for accept in [
            "",
            " , ",
            "*/*",
            "application/*",
            "application/json",
            "Application/JSON; charset=utf-8",
            "text/html, application/json;q=0.1",
            "text/html, */*; q=0.01",
            "application/problem+json",
            "application/*;q=0, application/json",
        ] {
            assert!(RequireAccept::Json.is_accepted(accept), "{accept}");
        }
        for accept in [
            "text/html",
            "application/json;q=0, */*",
            "application/*;q=0, */*",
            "application/json;q=0",
            "application/xml",
            "application/problem+json;q=0",
            "nonsense",
        ] {
            assert!(!RequireAccept::Json.is_accepted(accept), "{accept}");
        }
        for accept in
            ["", "*/*", "text/*", "text/csv", "application/json, Text/CSV;q=0.1", "text/*;q=0, text/csv"]
        {
            assert!(RequireAccept::Csv.is_accepted(accept), "{accept}");
        }
        for accept in ["application/json", "application/problem+json", "text/csv;q=0, */*", "text/*;q=0, */*"]
        {
            assert!(!RequireAccept::Csv.is_accepted(accept), "{accept}");
        }
    }

    #[test]
    fn parquet_needs_a_client_that_reads_it() {
        for accept in ["", "*/*", "application/*", "application/vnd.apache.parquet", "text/csv, */*;q=0.1"] {
            assert!(RequireAccept::Parquet.is_accepted(accept), "{accept}");
        }
        for accept in ["application/json", "text/csv", "application/vnd.apache.parquet;q=0, */*"] {
            assert!(!RequireAccept::Parquet.is_accepted(accept), "{accept}");
        }
    }

    #[test]
    fn stream_needs_a_client_that_reads_events() {
        for accept in ["", "*/*", "text/event-stream", "text/event-stream, application/json;q=0.5"] {
            assert!(RequireAccept::EventStream.is_accepted(accept), "{accept}");
        }
        for accept in ["application/json", "text/csv", "text/event-stream;q=0, */*"] {
            assert!(!RequireAccept::EventStream.is_accepted(accept), "{accept}");
        }
    }

    #[test]
    fn weights_are_in_thousandths() {
        assert_eq!(
            parse_weights("gzip;q=0.5, br , ;q=1, zstd;Q=x").collect::<Vec<_>>(),
            [("gzip", 500), ("br", 1000), ("zstd", 0)]
        );
    }
}
