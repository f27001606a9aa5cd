-- Imports over HTTP: a file that an API process took, and what became of it. Kept for 30 days.
create table uploads (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    -- The API process that has the file and alone can load it.
    process_id uuid not null,
    -- Until when the process counts as alive; it extends this while the import has not ended.
    lease_until timestamptz not null,
    status text not null default 'queued' check (status in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    -- When a client cancelled it while it was running: the process stops it soon.
    cancelled_at timestamptz,
    filename text,
    -- model::upload::UploadOptions
    options jsonb not null,
    rows_read bigint not null default 0,
    accounts bigint not null default 0,
    videos bigint not null default 0,
    snapshots_written bigint not null default 0,
    refused bigint not null default 0,
    -- What the file was found to be: the format, what was assumed, the first refusals and rows. model::upload::FileFindings
    findings jsonb not null default '{}',
    -- Why it failed.
    error text,
    -- By the service's clock, which observations use.
    received_at timestamptz not null,
    created_at timestamptz not null,
    finished_at timestamptz
);
-- GET /imports
create index uploads_by_creation on uploads (organization_id, created_at, id);
-- One at a time of an organization.
create unique index uploads_running on uploads (organization_id) where status = 'running';
-- The queue, and imports whose process ended.
create index uploads_unfinished on uploads (lease_until) where status in ('queued', 'running');
-- Housekeeping deletes expired rows.
create index uploads_created on uploads (created_at);
