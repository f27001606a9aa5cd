//! The two users of a data directory, with passwords generated at the first start, and their authentication.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hyper::HeaderMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::exception::Exception;

/// The users of a data directory, as in its `credentials.json`.
#[derive(Clone, Serialize, Deserialize)]
pub struct Credentials {
    /// The user with all rights.
    pub user: String,
    pub password: String,
    /// The user that only reads.
    pub readonly_user: String,
    pub readonly_password: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("readonly_user", &self.readonly_user)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("cannot read {}: {}; the first start of the server creates it", .0.display(), .1)]
    Read(PathBuf, std::io::Error),
    #[error("cannot write {}: {}; make the directory writable", .0.display(), .1)]
    Write(PathBuf, std::io::Error),
    #[error("{} is malformed: {}; remove it to generate new passwords", .0.display(), .1)]
    Parse(PathBuf, serde_json::Error),
    #[error("the system provides no random bytes for a password: {0}")]
    Random(getrandom::Error),
}

impl Credentials {
    pub fn read(data: &Path) -> Result<Self, CredentialsError> {
        let path = data.join("credentials.json");
        let text = std::fs::read(&path).map_err(|error| CredentialsError::Read(path.clone(), error))?;
        serde_json::from_slice(&text).map_err(|error| CredentialsError::Parse(path, error))
    }

    /// Reads the credentials of a data directory, or generates passwords at the first start.
    pub(crate) fn read_or_create(
        data: &Path,
        user: &str,
        readonly_user: &str,
    ) -> Result<Self, CredentialsError> {
        match Self::read(data) {
            Err(CredentialsError::Read(_, error)) if error.kind() == std::io::ErrorKind::NotFound => {}
            result => return result,
        }
        let new = Self {
            user: user.to_owned(),
            password: generate_password()?,
            readonly_user: readonly_user.to_owned(),
            readonly_password: generate_password()?,
        };
        new.write(data).map_err(|error| CredentialsError::Write(data.join("credentials.json"), error))?;
        Ok(new)
    }

    fn write(&self, data: &Path) -> std::io::Result<()> {
        let draft = data.join("credentials.json.new");
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&draft, data.join("credentials.json"))?;
        std::fs::File::open(data)?.sync_all()
    }
}

pub(crate) fn generate_password() -> Result<String, CredentialsError> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(CredentialsError::Random)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(random))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Admin,
    Readonly,
}

impl Credentials {
    /// The role of a user with the right password.
    pub(crate) fn role(&self, (user, password): (&str, &str)) -> Option<Role> {
        let matches = |name: &str, secret: &str| user == name && is_equal(password, secret);
        if matches(&self.user, &self.password) {
            Some(Role::Admin)
        } else {
            matches(&self.readonly_user, &self.readonly_password).then_some(Role::Readonly)
        }
    }

    /// Whether a user is one of these two, whatever its password.
    pub(crate) fn names(&self, user: &str) -> bool {
        user == self.user || user == self.readonly_user
    }
}

pub(crate) fn authentication_failed(user: &str) -> Exception {
    let user: String = user.chars().take(64).collect();
    let text =
        format!("{user}: Authentication failed: password is incorrect, or there is no user with such name.");
    Exception::new(516, "AUTHENTICATION_FAILED", text)
}

/// Compares in constant time. Digests have equal lengths.
fn is_equal(given: &str, secret: &str) -> bool {
    Sha256::digest(given).as_slice().ct_eq(Sha256::digest(secret).as_slice()).into()
}

/// User and password of a request: basic authentication, else ClickHouse's headers, else the query string.
pub(crate) fn presented(
    headers: &HeaderMap,
    query: (Option<&str>, Option<&str>),
) -> Result<(String, String), Exception> {
    presented_login(headers, query).ok_or_else(|| {
        let text = "user and password are required: send basic authentication, or X-ClickHouse-User and \
                    X-ClickHouse-Key";
        Exception::new(194, "REQUIRED_PASSWORD", text)
    })
}

fn presented_login(headers: &HeaderMap, query: (Option<&str>, Option<&str>)) -> Option<(String, String)> {
    let header =
        |name: &str| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    if let Some(authorization) = header("authorization") {
        let (scheme, value) = authorization.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return Some((String::new(), String::new()));
        }
        let decoded = String::from_utf8(BASE64_STANDARD.decode(value.trim()).ok()?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        return Some((user.to_owned(), password.to_owned()));
    }
    if let Some(user) = header("x-clickhouse-user") {
        return Some((user, header("x-clickhouse-key").unwrap_or_default()));
    }
    let (user, password) = query;
    user.map(|user| (user.to_owned(), password.unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn header(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn passwords_are_generated_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let first = Credentials::read_or_create(folder.path(), "admin", "analyst").unwrap();
        let second = Credentials::read_or_create(folder.path(), "admin", "analyst").unwrap();
        assert_eq!(first.password, second.password);
        assert_ne!(first.password, first.readonly_password);
        assert_eq!(first.password.len(), 32);
        let mode = std::fs::metadata(folder.path().join("credentials.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{first:?}").contains(&first.password));
    }

    #[test]
    fn role_follows_from_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = Credentials::read_or_create(folder.path(), "admin", "analyst").unwrap();
        let role = |headers: &HeaderMap, query| {
            let (user, password) = presented(headers, query)?;
            credentials.role((&user, &password)).ok_or_else(|| authentication_failed(&user))
        };
        let basic = |user: &str, password: &str| {
            let value = BASE64_STANDARD.encode(format!("{user}:{password}"));
            role(&header("authorization", &format!("Basic {value}")), (None, None))
        };
        assert_eq!(basic("admin", &credentials.password).ok(), Some(Role::Admin));
        assert_eq!(basic("analyst", &credentials.readonly_password).ok(), Some(Role::Readonly));
        assert_eq!(basic("analyst", &credentials.password).unwrap_err().code, 516);
        assert!(basic("admin", "").is_err());
        assert_eq!(role(&HeaderMap::new(), (None, None)).unwrap_err().code, 194);
        let in_query = (Some("admin"), Some(&*credentials.password));
        assert!(role(&header("authorization", "Bearer x"), in_query).is_err());
        assert_eq!(role(&HeaderMap::new(), in_query).ok(), Some(Role::Admin));
        assert!(credentials.names("analyst") && !credentials.names("reports"));
    }
}
