-- By what the API knows that an answer it has finished before is still right (store::versions).

-- They grow with every committed change of what analytics reads here: of accounts, creators and who belongs to whom;
-- and of videos. One number for any change would grow with every scrape.
alter table organizations
    add column accounts_version bigint not null default 0,
    add column videos_version bigint not null default 0;

-- The earliest day whose numbers the row changes; infinity when it changes none.
alter table outbox add column since date not null default '1970-01-01';

-- For the numbers of a day and all days before it: the last delivery that changed any of them. A day without a row has
-- that of the row before it, and a row whose delivery is older than that of an earlier day says nothing and is removed.
create table history_versions (
    organization_id uuid not null,
    day date not null,
    delivery bigint not null,
    primary key (organization_id, day)
) with (fillfactor = 50);

-- How often ClickHouse turned out to stand elsewhere than where deliveries had brought it: with other files.
create table clickhouse_replaced (
    single boolean primary key default true check (single),
    times bigint not null default 0
);
insert into clickhouse_replaced default values;
