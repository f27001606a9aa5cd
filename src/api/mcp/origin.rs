//! Rejects requests of foreign web pages, which a browser may send to a server on its own machine under any host name.

use salvo::http::header::ORIGIN;
use salvo::{Depot, Request, handler};
use url::{Host, Url};

use crate::app::App;
use crate::http::Problem;
use crate::http::forwarded::base_url;

/// Allows the configured origins, and on a loopback address the service itself: a host name that merely equals the
/// request's proves nothing.
pub(super) struct RejectForeignOrigin;

#[handler]
impl RejectForeignOrigin {
    fn handle(&self, req: &Request, depot: &Depot) -> Result<(), Problem> {
        let Some(origin) = req.headers().get(ORIGIN) else { return Ok(()) };
        let app = depot.get_typed::<App>().map_err(|_| Problem::internal("no application state"))?;
        let origin = origin.to_str().unwrap_or_default();
        let settings = &app.settings;
        let is_configured = settings.public_url.as_deref() == Some(origin)
            || settings.cors_origins.iter().any(|allowed| allowed == "*" || allowed == origin);
        if is_configured || (is_loopback(origin) && base_url(req, depot) == origin) {
            return Ok(());
        }
        let detail = "this Origin is not allowed: add it to TIDEMARK_CORS_ORIGINS";
        Err(Problem::forbidden(detail))
    }
}

fn is_loopback(origin: &str) -> bool {
    match Url::parse(origin).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for origin in ["http://localhost:8080", "http://127.0.0.1", "https://[::1]:1"] {
            assert!(is_loopback(origin), "{origin}");
        }
        for origin in ["null", "", "http://evil.example", "http://localhost.evil.example", "file:///x"] {
            assert!(!is_loopback(origin), "{origin}");
        }
    }
}
