//! Whether a caller takes JSON, which is all that the service speaks.

use salvo::http::header::ACCEPT;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::http::output::problem::Problem;

/// Lets only requests through that can be answered in JSON.
pub struct RequireAccept;

#[async_trait]
impl Handler for RequireAccept {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let ranges: Vec<_> =
            req.headers().get_all(ACCEPT).iter().map(|value| value.to_str().unwrap_or("?")).collect();
        if !takes_json(&ranges.join(",")) {
            Problem::not_acceptable().write(req, depot, res).await;
            ctrl.skip_rest();
        }
    }
}

/// Splits a header with weights into its values and their weights in thousandths.
pub fn weighted(header: &str) -> impl Iterator<Item = (&str, u16)> {
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

/// Whether an `Accept` header is satisfied: the most specific range that is about JSON decides.
fn takes_json(accept: &str) -> bool {
    if weighted(accept).next().is_none() {
        return true;
    }
    let best = |wanted: &str| {
        weighted(accept)
            .filter(|(range, _)| range.eq_ignore_ascii_case(wanted))
            .map(|(_, weight)| weight)
            .max()
    };
    let json = best("application/json").or_else(|| best("application/*")).or_else(|| best("*/*"));
    match json {
        Some(weight) if weight > 0 => true,
        _ => {
            best("application/json").is_none()
                && best("application/problem+json").is_some_and(|weight| weight > 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_range_decides() {
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
            assert!(takes_json(accept), "{accept}");
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
            assert!(!takes_json(accept), "{accept}");
        }
    }

    #[test]
    fn weights_are_read_in_thousandths() {
        assert_eq!(
            weighted("gzip;q=0.5, br , ;q=1, zstd;Q=x").collect::<Vec<_>>(),
            [("gzip", 500), ("br", 1000), ("zstd", 0)]
        );
    }
}
