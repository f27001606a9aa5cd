-- Postgres is the truth about records: who owns what, what it is called, what it counted last.
-- History lives in ClickHouse, the search index can be rebuilt; both follow the sequences at the end.

-- Integers that ClickHouse knows accounts and videos by: one sequence, so that no two of them ever collide.
create sequence internal_ids as bigint;

create table organizations (
    id uuid primary key,
    name text not null check (char_length(name) between 1 and 255),
    subscription text not null default 'active' check (subscription in ('active', 'inactive')),
    account_cap integer check (account_cap >= 0),
    rate_limit integer check (rate_limit > 0),
    default_max_recent_posts integer not null default 500 check (default_max_recent_posts between 50 and 5000),
    default_post_lookback_days integer not null default 365 check (default_post_lookback_days between 90 and 7300),
    -- grows with every committed change of the organization
    data_version bigint not null default 0,
    created_at timestamptz not null default now()
);

create table api_keys (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    name text not null check (char_length(name) between 1 and 255),
    -- SHA-256 of the key; the key itself is shown once and stored nowhere
    hash bytea not null check (length(hash) = 32),
    scopes text[] not null check (scopes <@ array['read', 'write', 'admin'] and cardinality(scopes) > 0),
    status text not null default 'active' check (status in ('active', 'inactive', 'disabled')),
    rate_limit integer check (rate_limit > 0),
    expires_at timestamptz,
    created_at timestamptz not null default now()
);
create unique index api_keys_hash on api_keys (hash);
create index api_keys_organization on api_keys (organization_id, id);

create table creators (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    name text not null check (char_length(name) between 1 and 255),
    -- the name in the form in which it is searched and sorted (model::text), never the database's lower()
    name_key text not null collate "C",
    is_active boolean not null default true,
    metadata jsonb not null default '{}',
    added_at timestamptz not null,
    updated_at timestamptz not null
);
create index creators_by_name on creators (organization_id, name_key, id);
create index creators_by_added_at on creators (organization_id, added_at, id);

create table accounts (
    id uuid primary key,
    internal_id bigint not null default nextval('internal_ids'),
    organization_id uuid not null references organizations on delete cascade,
    platform text not null check (platform in ('instagram', 'tiktok')),
    -- always lower-case; no longer held once the name belongs to another platform id
    username text not null collate "C",
    holds_username boolean not null default true,
    platform_id text,
    name text,
    description text,
    profile_pic_url text,
    profile_pic_url_original text,
    link_in_bio text,
    is_verified boolean not null default false,
    is_active boolean not null default true,
    is_unavailable boolean not null default false,
    creator_id uuid references creators on delete set null,
    linked_at timestamptz,
    category text check (char_length(category) <= 128),
    -- when the category was observed, where an import brought it: a later one replaces it, and nothing else does
    category_observed_at timestamptz,
    metadata jsonb not null default '{}',
    added_at timestamptz not null,
    updated_at timestamptz not null,
    first_scrape_time timestamptz,
    last_scrape_time timestamptz,
    scrape_interval_hours integer not null default 24 check (scrape_interval_hours between 6 and 720),
    max_recent_posts integer check (max_recent_posts between 50 and 5000),
    post_lookback_days integer check (post_lookback_days between 90 and 7300),
    -- the latest observation of the profile, and the fields last known at another time (model::latest)
    observed_at timestamptz,
    known_at jsonb,
    follower_count bigint not null default 0,
    following_count bigint not null default 0,
    profile_post_count bigint not null default 0,
    -- sums over the latest counters of the discovered videos, kept by the unit of work
    total_post_count bigint not null default 0,
    view_count bigint not null default 0,
    like_count bigint not null default 0,
    comment_count bigint not null default 0,
    share_count bigint not null default 0,
    play_count bigint not null default 0,
    saved_count bigint,
    ig_play_count bigint,
    fb_play_count bigint,
    fb_like_count bigint,
    -- UTC day of the earliest observation of the account or of any of its videos
    tracked_since date,
    unique (internal_id)
);
create unique index accounts_username on accounts (organization_id, platform, username) where holds_username;
create unique index accounts_platform_id on accounts (organization_id, platform, platform_id)
    where platform_id is not null;
create index accounts_by_added_at on accounts (organization_id, added_at, id);
create index accounts_by_username on accounts (organization_id, username, id);
create index accounts_by_last_scrape on accounts (organization_id, last_scrape_time, id);
create index accounts_by_followers on accounts (organization_id, follower_count, id);
create index accounts_by_views on accounts (organization_id, view_count, id);
create index accounts_by_likes on accounts (organization_id, like_count, id);
create index accounts_by_plays on accounts (organization_id, play_count, id);
create index accounts_by_creator on accounts (creator_id) where creator_id is not null;

create table videos (
    id uuid primary key,
    internal_id bigint not null default nextval('internal_ids'),
    -- where its history lies: the account's internal id; without account the video's own, or a fresh number once it
    -- was detached, because a place that history was moved away from is never used again
    subject_id bigint not null,
    organization_id uuid not null references organizations on delete cascade,
    platform text not null check (platform in ('instagram', 'tiktok')),
    external_id text,
    shortcode text,
    -- set: found on a tracked account; is_tracked: added on its own. A video is at least one of the two.
    account_id uuid references accounts on delete cascade,
    is_tracked boolean not null default false,
    url text,
    description text,
    description_key text,
    media_type text,
    duration double precision,
    cover_image_url text,
    cover_image_url_original text,
    video_url text,
    video_url_original text,
    platform_account_id text,
    platform_data jsonb not null default '{}',
    create_time timestamptz,
    added_at timestamptz not null,
    tracked_at timestamptz,
    updated_at timestamptz not null,
    is_active boolean not null default true,
    is_unavailable boolean not null default false,
    metadata jsonb not null default '{}',
    scrape_interval_hours integer not null default 24 check (scrape_interval_hours between 6 and 720),
    first_scrape_time timestamptz,
    last_scrape_time timestamptz,
    -- the latest observation, and the fields last known at another time (model::latest)
    observed_at timestamptz,
    known_at jsonb,
    -- UTC day of the earliest observation of the video itself
    tracked_since date,
    view_count bigint not null default 0,
    like_count bigint not null default 0,
    comment_count bigint not null default 0,
    share_count bigint not null default 0,
    play_count bigint not null default 0,
    saved_count bigint,
    ig_play_count bigint,
    fb_play_count bigint,
    fb_like_count bigint,
    unique (internal_id),
    check (account_id is not null or is_tracked),
    check (external_id is not null or shortcode is not null)
);
create unique index videos_external_id on videos (organization_id, platform, external_id) where external_id is not null;
create unique index videos_shortcode on videos (organization_id, platform, shortcode) where shortcode is not null;
create index videos_of_account on videos (account_id, create_time desc nulls last, id desc) where account_id is not null;
create index videos_discovered_by_create_time on videos (organization_id, create_time desc nulls last, id desc)
    where account_id is not null;
create index videos_discovered_by_views on videos (organization_id, view_count, id) where account_id is not null;
create index videos_discovered_by_likes on videos (organization_id, like_count, id) where account_id is not null;
create index videos_discovered_by_plays on videos (organization_id, play_count, id) where account_id is not null;
create index videos_of_subject on videos (subject_id);
create index videos_posted on videos (organization_id, create_time) where create_time is not null;

-- What the tracker reads regularly: an account, or a video that is tracked individually. Kept apart from the
-- record itself, because it changes at every attempt and belongs to the scheduler alone.
create table scrape_targets (
    -- the id of the account or of the video
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    platform text not null check (platform in ('instagram', 'tiktok')),
    kind text not null check (kind in ('account', 'video')),
    -- false while the account (or its creator) or the video is paused
    enabled boolean not null default true,
    next_attempt_at timestamptz not null,
    last_attempt_at timestamptz,
    last_error text,
    failures integer not null default 0,
    not_found_runs integer not null default 0,
    lease_owner uuid,
    lease_until timestamptz
);
create index scrape_targets_due on scrape_targets (platform, next_attempt_at) where enabled;
create index scrape_targets_organization on scrape_targets (organization_id);

-- The outbox: what ClickHouse has to learn. One row holds the events of one unit of work (store::event), written
-- at its very end, so that two units that touched the same rows have their positions in the order of their locks.
-- The relay marks what it has applied, so a transaction that commits late is not skipped.
create table outbox (
    position bigint generated always as identity primary key,
    organization_id uuid not null,
    events bytea not null,
    created_at timestamptz not null default now(),
    -- the delivery that this row was put into; recorded in ClickHouse too, which shows what it lacks
    delivery bigint,
    applied_at timestamptz
);
create index outbox_pending on outbox (position) where applied_at is null;
create index outbox_pending_of_organization on outbox (organization_id, position) where applied_at is null;
create index outbox_deliveries on outbox (delivery) where delivery is not null;

-- Subjects of tracking that are deleted here and not yet in ClickHouse: every total leaves them out at once.
create table removed_subjects (
    organization_id uuid not null,
    subject_id bigint not null,
    removed_at timestamptz not null default now(),
    primary key (organization_id, subject_id)
);

-- The change sequence that search indexes follow, each from its own place: which document to read again. A reader
-- goes only as far as the oldest transaction still open (txid below pg_snapshot_xmin) and in the order of txid,
-- so that a late commit is never skipped.
create table search_changes (
    txid xid8 not null default pg_current_xact_id(),
    position bigint generated always as identity,
    organization_id uuid not null,
    entity text not null check (entity in ('account', 'creator', 'video')),
    entity_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (txid, position)
);
create index search_changes_created on search_changes (created_at);
create index search_changes_organization on search_changes (organization_id, txid);

-- The processes that keep a search index, and the transaction below which each has seen every change.
create table search_followers (
    id uuid primary key,
    horizon bigint not null,
    seen_at timestamptz not null default now()
);

create table idempotency_keys (
    organization_id uuid not null references organizations on delete cascade,
    method text not null,
    path text not null,
    key text not null,
    body_hash bytea not null,
    status smallint not null,
    location text,
    body bytea not null,
    created_at timestamptz not null default now(),
    primary key (organization_id, method, path, key)
);
create index idempotency_keys_created on idempotency_keys (created_at);
