-- Requests by key in a clock minute, where API processes count together (TIDEMARK_RATE_LIMIT_STORE=postgres).
-- Unlogged: a row matters for a minute, and a crash that empties the table costs nobody more than one window.
-- Half of each page stays free, so that counting writes beside the row and never touches the index.
create unlogged table rate_limit_windows (
    -- since the epoch
    minute bigint not null,
    key_id uuid not null,
    taken integer not null,
    primary key (minute, key_id)
) with (fillfactor = 50);
