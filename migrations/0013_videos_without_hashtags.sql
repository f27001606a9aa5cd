-- no-transaction
-- Rows whose hashtags `tidemark migrate` and housekeeping fill. Other rows do not pay for it.
create index concurrently if not exists videos_without_hashtags on videos (id) where hashtags is null;
