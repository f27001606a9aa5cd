//! The accounts that the demo does not merely read every day, by their index in the sandbox's population.

use sandbox::Fault;

/// The fate of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Requests for it have failed for so many days.
    Failing(Fault, u32),
    /// It was deleted so many days ago.
    Deleted(u32),
    /// It was deleted, and another account took its username.
    Replaced,
    Renamed,
    /// It was paused so many days ago.
    Paused(u32),
    /// Its creator was paused so many days ago.
    PausedByCreator(u32),
    /// It was added yesterday, without history.
    New,
}

/// All are among the first forty accounts, so that small demos have them too. Accounts with an even index are on
/// Instagram; without the platform's id, which TikTok's source does not report, a rename cannot be followed.
pub(super) const ROLES: [(usize, Role); 17] = [
    (10, Role::Failing(Fault::Error, 3)),
    (12, Role::Deleted(41)),
    (13, Role::Failing(Fault::Html, 9)),
    (14, Role::Renamed),
    (17, Role::Paused(20)),
    (19, Role::Deleted(6)),
    (21, Role::Failing(Fault::Truncate, 1)),
    (22, Role::Renamed),
    (24, Role::Failing(Fault::Html, 2)),
    (25, Role::Paused(45)),
    (26, Role::PausedByCreator(33)),
    (27, Role::PausedByCreator(33)),
    (32, Role::Replaced),
    (33, Role::New),
    (34, Role::New),
    (37, Role::New),
    (38, Role::New),
];

/// Takes the username of the account that is replaced. Untracked, and on Instagram.
pub(super) const SUCCESSOR: usize = 328;
/// Untracked accounts of which one post is tracked individually, and the one of them whose post was deleted.
pub(super) const SINGLE_POSTS: [usize; 5] = [320, 321, 323, 325, 326];
pub(super) const DELETED_POST: usize = 323;
/// Tracked accounts of which one post is also tracked individually, and the one of them whose post is paused.
pub(super) const WATCHED_POSTS: [usize; 4] = [0, 3, 6, 11];
pub(super) const PAUSED_POST: usize = 6;

impl Role {
    /// Returns how many days before yesterday its history ends.
    pub(super) const fn days_without_history(self) -> u32 {
        match self {
            Role::Failing(_, days)
            | Role::Deleted(days)
            | Role::Paused(days)
            | Role::PausedByCreator(days) => days,
            Role::Replaced | Role::Renamed | Role::New => 0,
        }
    }

    pub(super) const fn is_paused(self) -> bool {
        matches!(self, Role::Paused(_) | Role::PausedByCreator(_))
    }
}
