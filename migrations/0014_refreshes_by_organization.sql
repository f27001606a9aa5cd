-- no-transaction
-- Leases of refreshes take turns over organizations. Few targets have one.
create index concurrently if not exists scrape_targets_refreshes
    on scrape_targets (platform, organization_id, refresh_requested_at) where refresh_requested_at is not null;
