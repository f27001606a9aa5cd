//! Encrypts secrets that are stored, under a key derived from the secret of the installation.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

/// Separates this key from others that are derived from the same secret.
const PURPOSE: &[u8] = b"tidemark stored secrets v1";

/// A key that encrypts and authenticates secrets.
pub struct SecretKey(LessSafeKey);

/// Nothing was encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot encrypt a secret: the system provides no random bytes")]
pub struct EncryptError;

impl From<Unspecified> for EncryptError {
    fn from(_: Unspecified) -> Self {
        EncryptError
    }
}

impl SecretKey {
    pub fn derive(installation_secret: &[u8; 32]) -> Result<Self, EncryptError> {
        let key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, installation_secret), PURPOSE);
        Ok(SecretKey(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.as_ref())?)))
    }

    /// Encrypts a secret. It can be decrypted only with the same context, such as the id of its record.
    pub fn encrypt(&self, context: &[u8], secret: &[u8]) -> Result<Vec<u8>, EncryptError> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce)?;
        let mut encrypted = secret.to_vec();
        let tag = self.0.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(context),
            &mut encrypted,
        )?;
        Ok([&nonce, encrypted.as_slice(), tag.as_ref()].concat())
    }

    /// Decrypts a secret; `None` if it was encrypted under another key or with another context.
    pub fn decrypt(&self, context: &[u8], encrypted: &[u8]) -> Option<Vec<u8>> {
        let (nonce, encrypted) = encrypted.split_first_chunk::<NONCE_LEN>()?;
        let mut secret = encrypted.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = self.0.open_in_place(nonce, Aad::from(context), &mut secret).ok()?.len();
        secret.truncate(length);
        Some(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_decrypted_under_its_key_and_context_only() {
        let key = SecretKey::derive(&[1; 32]).unwrap();
        let encrypted = key.encrypt(b"webhook", b"whsec_secret").unwrap();
        assert!(!encrypted.windows(6).any(|part| part == b"secret"));
        assert_ne!(encrypted, key.encrypt(b"webhook", b"whsec_secret").unwrap());
        assert_eq!(key.decrypt(b"webhook", &encrypted).unwrap(), b"whsec_secret");
        assert_eq!(key.decrypt(b"other", &encrypted), None);
        assert_eq!(SecretKey::derive(&[2; 32]).unwrap().decrypt(b"webhook", &encrypted), None);
        assert_eq!(key.decrypt(b"webhook", &encrypted[1..]), None);
        assert_eq!(key.decrypt(b"webhook", b"short"), None);
    }
}
