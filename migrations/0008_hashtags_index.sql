-- no-transaction
-- `hashtag` on lists of videos. Videos without hashtags do not pay for it.
create index concurrently if not exists videos_by_hashtags on videos using gin (hashtag_keys(organization_id, hashtags))
    where hashtags <> '{}';
