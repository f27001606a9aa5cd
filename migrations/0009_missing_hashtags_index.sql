-- no-transaction
-- Housekeeping fills hashtags of rows that an earlier version inserted.
create index concurrently if not exists videos_without_hashtags on videos (id) where hashtags is null;
