-- The shortcode of a private post on Instagram, which is longer than others. `shortcode` has its first 11 characters, which
-- are the pk, so that one unique index holds for both. Null where `shortcode` is all of it. Rows of earlier versions are
-- completed by `tidemark migrate`.
alter table videos add column whole_shortcode text;
-- The UTC day of the earliest observation of the profile itself, from which `tracked_since` is found again when a video of the
-- account is merged into another's. Null also for accounts that earlier versions observed.
alter table accounts add column profile_since date;
