//! What outgoing HTTP trusts: the authorities of this machine, or the usual public ones where it has none.
//!
//! A client that is left to itself reads the machine's authorities when it is made, whether or not it will ever speak TLS, and
//! cannot be made on a machine without any, such as a small container image.

use std::sync::{Arc, LazyLock};

use reqwest::{Client, ClientBuilder};
use rustls::{ClientConfig, RootCertStore};

static CONFIG: LazyLock<Result<ClientConfig, rustls::Error>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
});

/// Why no HTTP client can be made.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct Error(#[from] rustls::Error);

/// Begins an HTTP client.
pub fn client() -> Result<ClientBuilder, Error> {
    Ok(Client::builder().tls_backend_preconfigured(CONFIG.clone()?))
}
