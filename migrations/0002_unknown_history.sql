-- Organizations of whose history ClickHouse has more than Postgres knows, because an older Postgres was restored: until
-- `tidemark rebuild` has removed it, or an older ClickHouse is restored as well.
create table unknown_history (
    organization_id uuid primary key references organizations on delete cascade,
    -- The last delivery that Postgres knew. A ClickHouse without later ones has no such history.
    after_delivery bigint not null
);
