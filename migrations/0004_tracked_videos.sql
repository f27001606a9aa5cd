-- Individually tracked videos are listed by the time at which they were added: that of POST /videos, which is later
-- than the row's own where the video had been found on an account before.
update videos set tracked_at = added_at where is_tracked and tracked_at is null;
create index videos_tracked_by_tracked_at on videos (organization_id, tracked_at, id) where is_tracked;
