//! Copies of pictures: which records have which, what is to be fetched, and the space that the copies occupy.
//!
//! Everything is idempotent: after a kill at any moment, a picture is fetched once more at worst.

mod references;
mod usage;

pub use references::{
    CopiedPicture, DuePicture, FailedPicture, OfferedPicture, PictureReference, delete, fetch_references,
    lease_due, merge, postpone, request, set_copies,
};
pub use usage::{
    MediaUsage, UsageSummary, begin_sweep, fetch_names, fetch_secret, fetch_summary, find_secret,
    record_served, remove_damaged,
};

/// The column of a record's picture, as `PictureUrl` reads it: the name of the copy and the URL at the platform.
macro_rules! picture_url {
    ($record:literal, $field:literal) => {
        concat!(
            "coalesce(encode((select p.name from record_pictures p where p.record_id = ",
            $record,
            ".id), 'hex') || ' ', '') || ",
            $record,
            ".",
            $field,
            "_original as ",
            $field
        )
    };
}
pub(in crate::store) use picture_url;
