-- no-transaction
-- GET /tracking: since when targets fail, by reason.
create index concurrently if not exists scrape_targets_by_failure
    on scrape_targets (organization_id, counted_failure, platform, found_by, failing_since) where status = 'failing';
