-- no-transaction
-- GET /accounts by next_attempt_at. A paused account has a target whose time does not count.
create index concurrently if not exists scrape_targets_by_next_attempt
    on scrape_targets (organization_id, (case when enabled then next_attempt_at end), id) where kind = 'account';
