//! How the migrations that a store has applied compare to those of this version.

use std::collections::BTreeMap;

use super::error::Error;

/// Checksums of migrations, by version.
pub(super) type Checksums = BTreeMap<i64, Vec<u8>>;

/// The schema of a store, compared to this version's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    Current,
    /// Migrations of this version are missing.
    Older {
        missing: usize,
    },
    /// A newer version has added migrations, which this version works with.
    Newer,
    /// A migration differs from this version's: the store was created by an incompatible Tidemark.
    Incompatible {
        version: i64,
    },
}

impl SchemaState {
    pub(super) fn compare(expected: &Checksums, applied: &Checksums) -> Self {
        let missing = expected.keys().filter(|version| !applied.contains_key(version)).count();
        let mut different =
            applied.iter().filter(|(version, checksum)| expected.get(version) != Some(checksum));
        let Some((&version, _)) = different.next() else {
            return if missing == 0 { SchemaState::Current } else { SchemaState::Older { missing } };
        };
        if missing == 0 && !expected.contains_key(&version) {
            SchemaState::Newer
        } else {
            SchemaState::Incompatible { version }
        }
    }

    /// Fails where this version cannot work with the schema.
    pub fn check_usable(self, store: &'static str) -> Result<(), Error> {
        match self {
            SchemaState::Current | SchemaState::Newer => Ok(()),
            SchemaState::Older { missing } => Err(Error::Older { store, missing }),
            SchemaState::Incompatible { version } => Err(Error::Incompatible { store, version }),
        }
    }

    /// Fails where this version cannot migrate the schema.
    pub(super) fn check_upgradable(self, store: &'static str) -> Result<(), Error> {
        match self {
            SchemaState::Current | SchemaState::Older { .. } => Ok(()),
            SchemaState::Newer => Err(Error::Newer { store }),
            SchemaState::Incompatible { version } => Err(Error::Incompatible { store, version }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksums(migrations: &[(i64, &str)]) -> Checksums {
        migrations.iter().map(|(version, checksum)| (*version, checksum.as_bytes().to_vec())).collect()
    }

    #[test]
    fn applied_migrations_are_compared_by_version_and_checksum() {
        let expected = [(1, "a"), (3, "b")];
        for (applied, state) in [
            (&[(1, "a"), (3, "b")][..], SchemaState::Current),
            (&[], SchemaState::Older { missing: 2 }),
            (&[(1, "a")], SchemaState::Older { missing: 1 }),
            (&[(1, "a"), (3, "b"), (4, "c")], SchemaState::Newer),
            (&[(1, "changed")], SchemaState::Incompatible { version: 1 }),
            (&[(1, "changed"), (2, "x"), (3, "y"), (4, "z")], SchemaState::Incompatible { version: 1 }),
            (&[(1, "a"), (3, "changed"), (4, "c")], SchemaState::Incompatible { version: 3 }),
            (&[(1, "a"), (2, "of another branch")], SchemaState::Incompatible { version: 2 }),
        ] {
            assert_eq!(
                SchemaState::compare(&checksums(&expected), &checksums(applied)),
                state,
                "{applied:?}"
            );
        }
    }
}
