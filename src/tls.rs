//! Trust roots of outgoing HTTP: the machine's, or public ones where it has none, as in small container images.
//!
//! reqwest's default client cannot be built on a machine without trust roots, even if it never uses TLS.

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

#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct Error(#[from] rustls::Error);

/// Starts an HTTP client with these trust roots.
pub fn client_builder() -> Result<ClientBuilder, Error> {
    Ok(Client::builder().tls_backend_preconfigured(CONFIG.clone()?))
}
