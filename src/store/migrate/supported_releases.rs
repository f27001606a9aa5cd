//! The releases of ClickHouse and Postgres that this version supports. README.md and docs/install.md name the same.

use std::fmt;

pub const CLICKHOUSE: SupportedReleases =
    SupportedReleases { product: "ClickHouse", oldest: &[26, 3], newest: &[26, 7] };
pub const POSTGRES: SupportedReleases =
    SupportedReleases { product: "Postgres", oldest: &[15], newest: &[18] };

/// The first numbers of a version, for example 26.7 of 26.7.13.12.
type Release = &'static [u32];

#[derive(Debug, Clone, Copy)]
pub struct SupportedReleases {
    pub product: &'static str,
    pub oldest: Release,
    /// The newest one that is tested.
    pub newest: Release,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedRelease {
    #[error("{product} {version} is too old: upgrade it to {} or newer", dotted(.oldest))]
    TooOld { product: &'static str, version: String, oldest: Release },
    #[error("{product} {version} is untested: use {} to {}, or a newer Tidemark", dotted(.oldest), dotted(.newest))]
    Untested { product: &'static str, version: String, oldest: Release, newest: Release },
}

impl SupportedReleases {
    /// Fails unless the version of a server, as it reports it, is tested. An unreadable one is not.
    pub fn check(self, version: &str) -> Result<(), UnsupportedRelease> {
        let SupportedReleases { product, oldest, newest } = self;
        let release = parse(version, oldest.len());
        let version = version.to_owned();
        match release.as_deref() {
            Some(release) if release < oldest => Err(UnsupportedRelease::TooOld { product, version, oldest }),
            Some(release) if release <= newest => Ok(()),
            _ => Err(UnsupportedRelease::Untested { product, version, oldest, newest }),
        }
    }

    /// Fails if the server is too old, and logs a warning if it is not tested.
    pub fn require(self, version: &str) -> Result<(), UnsupportedRelease> {
        match self.check(version) {
            Err(error @ UnsupportedRelease::Untested { .. }) => {
                tracing::warn!(%error, "a database server is untested");
                Ok(())
            }
            result => result,
        }
    }
}

/// Formats as `ClickHouse 26.3 to 26.7`.
impl fmt::Display for SupportedReleases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} to {}", self.product, dotted(self.oldest), dotted(self.newest))
    }
}

/// Parses the first numbers of `26.7.13.12`, `15.18 (Debian 15.18-0+deb12u1)` or `18beta1`.
fn parse(version: &str, numbers: usize) -> Option<Vec<u32>> {
    let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).collect::<String>();
    let release: Option<Vec<u32>> =
        version.split('.').take(numbers).map(|part| digits(part).parse().ok()).collect();
    release.filter(|release| release.len() == numbers)
}

fn dotted(release: &[u32]) -> String {
    release.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_release() {
        for (supported, old, tested, untested) in [
            (
                CLICKHOUSE,
                ["25.12.9.1", "26.2.99.1", "1.1.54388"],
                ["26.3.0.1", "26.7.13.12", "26.7.2.1.altinitystable"],
                ["26.8.1.1", "26.10.1.1", "26", "", "unknown"],
            ),
            (
                POSTGRES,
                ["14.22", "9.6.24", "14.9 (Debian 14.9-1)"],
                ["15.0", "15.18 (Debian 15.18-0+deb12u1)", "18beta1"],
                ["19.1", "19devel", "v15", "", "PostgreSQL"],
            ),
        ] {
            for version in old {
                let error = supported.check(version).unwrap_err();
                assert!(error.to_string().contains("too old: upgrade it to "), "{error}");
                assert!(supported.require(version).is_err());
            }
            for version in tested {
                assert_eq!(supported.check(version), Ok(()), "{version}");
            }
            for version in untested {
                let error = supported.check(version).unwrap_err();
                assert!(error.to_string().contains("untested: use "), "{error}");
                assert_eq!(supported.require(version), Ok(()), "{version}");
            }
        }
    }
}
