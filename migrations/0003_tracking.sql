-- Tracking: what is scraped when, by which tracker process, and which sources are paused (docs/tracking.md).

-- What is scraped regularly: an account, or a video that is tracked individually. Separate from the record, because it
-- changes with every attempt and only the scheduler writes it.
create table scrape_targets (
    -- the id of the account or video
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    platform text not null check (platform in ('instagram', 'tiktok')),
    kind text not null check (kind in ('account', 'video')),
    -- false while the account, its creator or the video is paused
    enabled boolean not null default true,
    -- by the service's clock, as all times of attempts
    next_attempt_at timestamptz not null,
    last_attempt_at timestamptz,
    last_error text,
    -- attempts that failed since the last success
    failures integer not null default 0,
    -- attempts since the last success in which the platform did not find it; after some it is marked unavailable
    not_found_runs integer not null default 0,
    -- The tracker process that leases it, and until when by the database's clock (store::tracking::leases).
    lease_owner uuid,
    lease_until timestamptz,
    -- When posts of an account up to 90 days old were last read, which happens weekly, and when all were, monthly.
    weekly_read_at timestamptz,
    monthly_read_at timestamptz
);
-- Whether anything of a platform is due, how much and since when: leases, queue metrics, /health.
create index scrape_targets_due on scrape_targets (platform, next_attempt_at) where enabled;
-- Leases are taken round-robin over organizations.
create index scrape_targets_due_of_organization on scrape_targets (platform, organization_id, next_attempt_at)
    where enabled;
-- Queue metrics count the targets whose last attempt failed: few among many.
create index scrape_targets_failing on scrape_targets (platform) where enabled and failures > 0;
-- The deletion of an organization.
create index scrape_targets_organization on scrape_targets (organization_id);

-- Sources that must not be called for a while. Every tracker obeys, after a restart as well. Once the time is over, one
-- successful attempt deletes the row. A platform's queue pauses only while all of its sources do.
create table source_pauses (
    platform text not null check (platform in ('instagram', 'tiktok')),
    -- its name in TIDEMARK_INSTAGRAM_SOURCES or TIDEMARK_TIKTOK_SOURCES
    source text not null,
    until timestamptz not null,
    cause text not null check (cause in ('rate_limit', 'credentials')),
    reason text not null,
    since timestamptz not null,
    primary key (platform, source)
);

-- Requests of all processes to a source with a daily budget, per UTC day.
create table source_requests (
    source text not null,
    day date not null,
    requests integer not null,
    primary key (source, day)
);
