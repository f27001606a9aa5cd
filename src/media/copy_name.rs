//! The names of copies.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::model::picture::PictureName;

/// Names a copy by its content, under the secret of the installation.
pub fn name_copy(secret: &[u8; 32], copy: &[u8]) -> PictureName {
    // HMAC pads a shorter key with zeros.
    let mut key = [0; 64];
    key[..secret.len()].copy_from_slice(secret);
    let mut mac = <Hmac<Sha256> as KeyInit>::new(&key.into());
    mac.update(copy);
    PictureName::from_bytes(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_depends_on_content_and_secret() {
        let name = name_copy(&[1; 32], b"content");
        assert_eq!(name, name_copy(&[1; 32], b"content"));
        assert_ne!(name, name_copy(&[2; 32], b"content"));
        assert_ne!(name, name_copy(&[1; 32], b"other content"));
    }
}
