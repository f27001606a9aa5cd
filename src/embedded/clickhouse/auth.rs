//! Who may ask: the two generated users of a data folder, and how a request names one of them.
//! What each user may do is decided where statements run.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hyper::HeaderMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::reply::Failure;

/// The users of one data folder, as `credentials.json` holds them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Credentials {
    /// The service's user, who may do everything.
    pub user: String,
    pub password: String,
    /// The analysts' user, who only reads.
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

/// Why the credentials of a data folder cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("cannot read {}: {}; start `tidemark clickhouse` on that folder once", .0.display(), .1)]
    Read(PathBuf, std::io::Error),
    #[error("cannot write {}: {}; make the folder writable", .0.display(), .1)]
    Write(PathBuf, std::io::Error),
    #[error("{} is not what was written there: {}; remove it to have new passwords generated", .0.display(), .1)]
    Parse(PathBuf, serde_json::Error),
    #[error("the system gives no random bytes for a password: {0}")]
    Random(getrandom::Error),
}

/// Reads the credentials of the data folder `data`.
pub fn credentials(data: &Path) -> Result<Credentials, CredentialsError> {
    let path = data.join("credentials.json");
    let text = std::fs::read(&path).map_err(|error| CredentialsError::Read(path.clone(), error))?;
    serde_json::from_slice(&text).map_err(|error| CredentialsError::Parse(path, error))
}

/// Reads the credentials of `data`, or generates them at the first start.
pub(super) fn ensure(data: &Path) -> Result<Credentials, CredentialsError> {
    match credentials(data) {
        Err(CredentialsError::Read(_, error)) if error.kind() == std::io::ErrorKind::NotFound => {
            generate(data)
        }
        found => found,
    }
}

fn generate(data: &Path) -> Result<Credentials, CredentialsError> {
    let new = Credentials {
        user: "tidemark".to_owned(),
        password: password()?,
        readonly_user: "analyst".to_owned(),
        readonly_password: password()?,
    };
    let path = data.join("credentials.json");
    let draft = data.join("credentials.json.new");
    let write = || {
        let mut text = serde_json::to_vec_pretty(&new)?;
        text.push(b'\n');
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&text)?;
        file.sync_all()?;
        std::fs::rename(&draft, &path)?;
        std::fs::File::open(data)?.sync_all()
    };
    write().map_err(|error| CredentialsError::Write(path, error))?;
    Ok(new)
}

fn password() -> Result<String, CredentialsError> {
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(CredentialsError::Random)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(random))
}

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Service,
    Analyst,
}

impl Credentials {
    /// The role of whoever sent these headers, or the `user` and `password` of the query string.
    pub(super) fn role(
        &self,
        headers: &HeaderMap,
        query: (Option<&str>, Option<&str>),
    ) -> Result<Role, Failure> {
        let Some((user, password)) = named(headers, query) else {
            return Err(Failure::new(
                194,
                "REQUIRED_PASSWORD",
                "this server wants a user and a password: send them by basic authentication or as \
                 X-ClickHouse-User and X-ClickHouse-Key",
            ));
        };
        let is = |name: &str, secret: &str| user == name && same(&password, secret);
        if is(&self.user, &self.password) {
            Ok(Role::Service)
        } else if is(&self.readonly_user, &self.readonly_password) {
            Ok(Role::Analyst)
        } else {
            let user: String = user.chars().take(64).collect();
            let text = format!(
                "{user}: Authentication failed: password is incorrect, or there is no user with such name."
            );
            Err(Failure::new(516, "AUTHENTICATION_FAILED", text))
        }
    }
}

/// Compares without telling by time how much of a secret was right.
fn same(given: &str, secret: &str) -> bool {
    // Of digests, since two texts of different lengths are told apart at once.
    Sha256::digest(given).as_slice().ct_eq(Sha256::digest(secret).as_slice()).into()
}

/// The user and the password that a request names, from the first place that names one.
fn named(headers: &HeaderMap, query: (Option<&str>, Option<&str>)) -> Option<(String, String)> {
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
    fn passwords_are_generated_once_and_kept_private() {
        let folder = tempfile::tempdir().unwrap();
        let first = ensure(folder.path()).unwrap();
        let again = ensure(folder.path()).unwrap();
        assert_eq!(first.password, again.password);
        assert_ne!(first.password, first.readonly_password);
        assert_eq!(first.password.len(), 32);
        let mode = std::fs::metadata(folder.path().join("credentials.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{first:?}").contains(&first.password));
    }

    #[test]
    fn a_request_is_who_it_proves_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let known = ensure(folder.path()).unwrap();
        let basic = |user: &str, password: &str| {
            let value = BASE64_STANDARD.encode(format!("{user}:{password}"));
            known.role(&header("authorization", &format!("Basic {value}")), (None, None))
        };
        assert_eq!(basic("tidemark", &known.password).ok(), Some(Role::Service));
        assert_eq!(basic("analyst", &known.readonly_password).ok(), Some(Role::Analyst));
        assert!(basic("analyst", &known.password).is_err());
        assert!(basic("tidemark", "").is_err());
        assert!(known.role(&HeaderMap::new(), (None, None)).is_err());
        assert!(
            known
                .role(&header("authorization", "Bearer x"), (Some("tidemark"), Some(&known.password)))
                .is_err()
        );
        let by_query = known.role(&HeaderMap::new(), (Some("tidemark"), Some(&known.password)));
        assert_eq!(by_query.ok(), Some(Role::Service));
    }
}
