//! The events of the outbox and their encoding.
//!
//! Events refer to records by id. The relay reads the records when it applies an event, so that applying it late or twice
//! has the same result. Only snapshots are stored in events, because Postgres has no history.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    AccountsChanged(Vec<Uuid>),
    CreatorsChanged(Vec<Uuid>),
    VideosChanged(Vec<Uuid>),
    /// The subjects' gains have to be recomputed without a new snapshot (a post's creation time became known).
    SubjectsChanged(Vec<i64>),
    AccountSnapshots(Vec<AccountSnapshot>),
    VideoSnapshots(Vec<VideoSnapshot>),
    /// A video was attached to an account, detached from one or merged: its history moves.
    VideoMoved {
        from: SubjectVideo,
        to: SubjectVideo,
    },
    /// A subject was deleted with its history.
    SubjectRemoved {
        subject_id: i64,
        account: Option<Uuid>,
        videos: Vec<RemovedVideo>,
    },
    CreatorRemoved(Uuid),
    /// All days of the subjects' rollup have to be rewritten.
    SubjectsRebuilt(Vec<i64>),
    /// Videos that Postgres does not have are removed with their history.
    HistoryRemoved(Vec<SubjectVideo>),
    /// Collections were created, changed or deleted, or other posts are in them by hand.
    CollectionsChanged(Vec<Uuid>),
}

/// The key of a video's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SubjectVideo {
    pub subject_id: i64,
    pub video_id: i64,
}

/// A video that was deleted with its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedVideo {
    pub id: Uuid,
    pub video_id: i64,
}

/// The first byte of encoded events.
const FORMAT_VERSION: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("unknown event format {0}: run the version that wrote it until the outbox is empty")]
    Format(u8),
    #[error("no bytes")]
    Empty,
    #[error("cannot decompress events: {0}")]
    Compression(#[from] lz4_flex::block::DecompressError),
    #[error("cannot decode events: {0}")]
    Content(#[from] postcard::Error),
}

pub fn encode(events: &[Event]) -> Result<Vec<u8>, postcard::Error> {
    let plain = postcard::to_stdvec(events)?;
    let mut bytes = vec![FORMAT_VERSION];
    bytes.extend(lz4_flex::compress_prepend_size(&plain));
    Ok(bytes)
}

pub fn decode(bytes: &[u8]) -> Result<Vec<Event>, DecodeError> {
    match bytes.split_first() {
        Some((&FORMAT_VERSION, rest)) => {
            Ok(postcard::from_bytes(&lz4_flex::decompress_size_prepended(rest)?)?)
        }
        Some((&other, _)) => Err(DecodeError::Format(other)),
        None => Err(DecodeError::Empty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;

    #[test]
    fn events_round_trip_and_unknown_formats_fail() {
        let events = vec![
            Event::AccountsChanged(vec![Uuid::nil()]),
            Event::VideoSnapshots(vec![VideoSnapshot {
                subject_id: 1,
                video_id: 2,
                observed_at: "2026-01-01T00:00:00Z".parse().unwrap(),
                counters: Counters { view_count: Some(5), ..Counters::default() },
            }]),
            Event::VideoMoved {
                from: SubjectVideo { subject_id: 1, video_id: 2 },
                to: SubjectVideo { subject_id: 2, video_id: 2 },
            },
        ];
        let bytes = encode(&events).unwrap();
        assert_eq!(decode(&bytes).unwrap(), events);
        assert!(matches!(decode(&[9, 9]), Err(DecodeError::Format(9))));
        assert!(decode(&bytes[..bytes.len() - 3]).is_err());
        assert!(matches!(decode(&[]), Err(DecodeError::Empty)));
    }
}
