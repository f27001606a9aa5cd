-- Links to the report of a collection (store::records::collections::shares): bearer tokens that reach nothing else.
create table collection_shares (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    collection_id uuid not null references collections on delete cascade,
    name text not null check (char_length(name) between 1 and 255),
    -- the window of the report unless the reader chooses another one
    period text not null check (period in ('7d', '30d', '90d')),
    -- the parts of the report
    show text[] not null check (cardinality(show) > 0),
    -- SHA-256 of the token. The token itself is shown once and never stored.
    hash bytea not null check (length(hash) = 32),
    -- by the service's clock, as last_viewed_at
    expires_at timestamptz not null,
    -- requests for the report as a whole
    views bigint not null default 0,
    last_viewed_at timestamptz,
    added_at timestamptz not null
);
-- Authentication of every request for a report.
create unique index collection_shares_hash on collection_shares (hash);
-- GET /collections/{collection_id}/shares, and their number.
create index collection_shares_of_collection on collection_shares (collection_id, added_at, id);
-- The deletion of an organization.
create index collection_shares_organization on collection_shares (organization_id);
