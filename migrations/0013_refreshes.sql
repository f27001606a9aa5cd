-- Refreshes: accounts and videos that a user asked to read now (store::tracking::refreshes).

alter table scrape_targets
    -- When, by the database's clock. Null once an attempt has ended. Until then the target is leased, due or not.
    add column refresh_requested_at timestamptz;
alter table source_requests
    -- Those for refreshes, which have a share of the day's budget.
    add column refresh_requests integer not null default 0;
