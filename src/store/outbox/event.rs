//! What a committed change tells ClickHouse, and the bytes in which the outbox keeps it.
//!
//! Records are named, not copied: the relay reads their state when it applies the event, so applying one twice,
//! or late, ends the same. Only snapshots travel whole, because Postgres keeps no history.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};

/// One thing that happened in a unit of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    AccountsChanged(Vec<Uuid>),
    CreatorsChanged(Vec<Uuid>),
    VideosChanged(Vec<Uuid>),
    /// The subject's own gains have to be computed again, although no snapshot is new (a posting date was learned).
    SubjectsChanged(Vec<i64>),
    AccountSnapshots(Vec<AccountSnapshot>),
    VideoSnapshots(Vec<VideoSnapshot>),
    /// A video's history belongs elsewhere from now on: it was attached, detached or merged.
    VideoMoved {
        from: SubjectVideo,
        to: SubjectVideo,
    },
    /// A subject of tracking is gone with all its history.
    SubjectRemoved {
        subject_id: i64,
        account: Option<Uuid>,
        videos: Vec<RemovedVideo>,
    },
    CreatorRemoved(Uuid),
    /// The subjects' rollup has to be written anew, every day of it, whether it looks right or not.
    SubjectsRebuilt(Vec<i64>),
}

/// Where a video's facts lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectVideo {
    pub subject_id: i64,
    pub video_id: i64,
}

/// A video that went with its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedVideo {
    pub id: Uuid,
    pub video_id: i64,
}

/// The first byte of an encoded list of events: how the rest is to be read.
const FORMAT: u8 = 1;

/// Why stored events cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error(
        "events in format {0}, which this version does not know: run the version that wrote them until its outbox is empty"
    )]
    Format(u8),
    #[error("events are cut short")]
    Empty,
    #[error("events do not decompress: {0}")]
    Compression(#[from] lz4_flex::block::DecompressError),
    #[error("events do not decode: {0}")]
    Content(#[from] postcard::Error),
}

/// Encodes events for the outbox.
pub fn encode(events: &[Event]) -> Result<Vec<u8>, postcard::Error> {
    let plain = postcard::to_stdvec(events)?;
    let mut bytes = vec![FORMAT];
    bytes.extend(lz4_flex::compress_prepend_size(&plain));
    Ok(bytes)
}

/// Reads events back.
pub fn decode(bytes: &[u8]) -> Result<Vec<Event>, DecodeError> {
    match bytes.split_first() {
        Some((&FORMAT, rest)) => Ok(postcard::from_bytes(&lz4_flex::decompress_size_prepended(rest)?)?),
        Some((&other, _)) => Err(DecodeError::Format(other)),
        None => Err(DecodeError::Empty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;

    #[test]
    fn events_round_trip_and_unknown_formats_are_refused() {
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
