-- The feed of the search indexes (store::search::changes). Every API process follows it with an index of its own.

-- Which records changed; a follower reads their current state. Rows are read in the order of transaction ids, and only
-- below the oldest transaction that is still open, so that a late commit is not skipped.
create table search_changes (
    txid xid8 not null default pg_current_xact_id(),
    position bigint generated always as identity,
    -- the nil UUID where the organization itself is gone
    organization_id uuid not null,
    -- organization: all its documents are gone
    entity text not null check (entity in ('account', 'creator', 'video', 'organization')),
    entity_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (txid, position)
);
-- Waiting until an organization's changes are searchable (store::outbox::visibility), and its deletion.
create index search_changes_organization on search_changes (organization_id, txid);

-- API processes with a search index. Each has applied every transaction below its horizon.
create table search_followers (
    id uuid primary key,
    horizon bigint not null,
    -- the generation of its index
    generation bigint not null,
    seen_at timestamptz not null default now()
);

-- One row per `tidemark reindex`. Followers rebuild an index that is older than the latest generation.
create table search_generations (
    generation bigint generated always as identity primary key,
    requested_at timestamptz not null default now()
);
