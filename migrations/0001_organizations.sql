-- Organizations (tenants) and what requests in their name need: API keys, rate limits, idempotency keys.
--
-- Postgres is the source of truth for records: owners, names, latest counters. History is in ClickHouse and the search
-- index is in each API process; both are fed from Postgres (0004_outbox.sql, 0005_search.sql).
-- Ids are UUIDs of version 7, so sorting by id is sorting by time of creation.

create table organizations (
    id uuid primary key,
    name text not null check (char_length(name) between 1 and 255),
    subscription text not null default 'active' check (subscription in ('active', 'inactive')),
    -- null: unlimited
    account_cap integer check (account_cap >= 0),
    -- requests per minute and key; null: model::limits::DEFAULT_RATE_PER_MINUTE
    rate_limit integer check (rate_limit > 0),
    default_max_recent_posts integer not null default 500 check (default_max_recent_posts between 50 and 5000),
    default_post_lookback_days integer not null default 365 check (default_post_lookback_days between 90 and 7300),
    -- Cache versions of analytics responses (store::outbox::data_version). accounts_version grows with every change of
    -- accounts, creators and links, videos_version with every change of videos. They are separate because videos change
    -- with every scrape.
    accounts_version bigint not null default 0,
    videos_version bigint not null default 0,
    -- Retention (store::lifecycle::retention); null: history is kept for ever.
    retention_days integer check (retention_days >= 30),
    -- The first day of history that requests see. It never moves back.
    history_since date,
    history_since_set_at timestamptz,
    -- Snapshots and rollup of earlier days are compacted; null while compaction to history_since is pending.
    history_compacted_before date,
    created_at timestamptz not null default now(),
    -- Set first when an organization is deleted: from then on every request is refused. Its rows are then deleted in
    -- batches, this one last (store::lifecycle::organizations).
    deleted_at timestamptz
);
-- store::lifecycle::organizations finds organizations whose rows remain to be deleted.
create index organizations_deleted on organizations (deleted_at) where deleted_at is not null;

-- Ids of organizations that are completely deleted. History of theirs that comes back with a ClickHouse backup is
-- deleted again.
create table erased_organizations (
    id uuid primary key,
    deleted_at timestamptz not null,
    -- when their last row in Postgres was deleted
    erased_at timestamptz not null default now()
);

create table api_keys (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    name text not null check (char_length(name) between 1 and 255),
    -- SHA-256 of the key. The key itself is shown once and never stored.
    hash bytea not null check (length(hash) = 32),
    scopes text[] not null check (scopes <@ array['read', 'write', 'admin'] and cardinality(scopes) > 0),
    status text not null default 'active' check (status in ('active', 'inactive', 'disabled')),
    -- requests per minute; null: the organization's
    rate_limit integer check (rate_limit > 0),
    -- After a rotation this is the end of the overlap with the new key.
    expires_at timestamptz,
    -- The key that a rotation created; a key is rotated only once. Not a foreign key: the new key may be deleted.
    replaced_by uuid,
    created_at timestamptz not null default now()
);
-- Authentication of every request.
create unique index api_keys_hash on api_keys (hash);
-- `tidemark key list`, and the deletion of an organization.
create index api_keys_organization on api_keys (organization_id, id);

-- Requests per key and clock minute, shared by all API processes (TIDEMARK_RATE_LIMIT_STORE=postgres).
-- Unlogged: a crash that empties the table costs one minute of counting. Half of each page stays free so that counting is
-- a HOT update, which leaves the index alone.
create unlogged table rate_limit_windows (
    -- minutes since the Unix epoch
    minute bigint not null,
    key_id uuid not null,
    requests integer not null,
    primary key (minute, key_id)
) with (fillfactor = 50);

-- Responses to requests with an Idempotency-Key, written in the transaction of the request. Valid for 24 hours.
create table idempotency_keys (
    organization_id uuid not null references organizations on delete cascade,
    method text not null,
    path text not null,
    key text not null,
    -- A retry must have the same body: hash of its canonical form.
    body_hash bytea not null,
    status smallint not null,
    location text,
    body bytea not null,
    created_at timestamptz not null default now(),
    primary key (organization_id, method, path, key)
);
-- Housekeeping deletes expired rows, the oldest first.
create index idempotency_keys_created on idempotency_keys (created_at);
