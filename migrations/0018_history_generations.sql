-- Erasing an organization's deleted data makes its cached responses outdated, not everyone's.
alter table organizations
    -- Added to clickhouse_generation (store::outbox::data_version).
    add column history_generation bigint not null default 0;
