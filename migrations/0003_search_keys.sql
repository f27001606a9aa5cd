-- The name as it is searched, folded by model::text::search_key; null where that is name_key.
alter table creators add column name_search text collate "C";

-- Changes of stored rows that tidemark migrate makes once.
create table backfills (
    name text primary key,
    finished_at timestamptz not null
);
