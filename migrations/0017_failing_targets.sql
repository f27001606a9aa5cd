-- no-transaction
-- Those whose last attempt failed are few among many, and counted again and again.
create index concurrently scrape_targets_failing on scrape_targets (platform) where enabled and failures > 0;
