-- Machines on which a tracker does not scrape, because their clock differs from Postgres'. A row counts for two minutes
-- (store::tracking::skewed_clocks).
create table skewed_clocks (
    -- its address as Postgres sees it; local over a Unix socket
    machine text primary key,
    -- negative if its clock is behind
    seconds_ahead double precision not null,
    seen_at timestamptz not null
);
