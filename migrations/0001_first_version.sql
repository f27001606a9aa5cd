-- The schema of version 0.1.0, by subject: organizations, creators and accounts, videos, tracking, the outbox, search,
-- pictures.
--
-- Postgres is the source of truth for records: owners, names, latest counters. History is in ClickHouse and the search
-- index is in each API process; both are fed from Postgres.
-- Ids are UUIDs of version 7, so sorting by id is sorting by time of creation.

-- ORGANIZATIONS: tenants, and what requests in their name need.

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
    -- Added to clickhouse_generation, so that erasing deleted data of one organization invalidates only its responses.
    history_generation bigint not null default 0,
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

-- CREATORS AND ACCOUNTS. A link between both is a column of the account, because it has at most one creator.
--
-- Every sort of every list is a range of one index, read in either direction (docs/paging.md): the organization first (or
-- the account, where a list is filtered by it), then the sort column, then the id.

-- Ids of accounts and videos in ClickHouse. One sequence for both, so that a subject_id is never ambiguous.
create sequence internal_ids as bigint;

create table creators (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    name text not null check (char_length(name) between 1 and 255),
    -- The name as it is searched and sorted, folded by model::text; lower() of a database depends on its locale.
    name_key text not null collate "C",
    -- false pauses tracking of all accounts of the creator
    is_active boolean not null default true,
    metadata jsonb not null default '{}',
    added_at timestamptz not null,
    updated_at timestamptz not null
);
-- GET /creators, by sort. An import finds creators by name, too.
create index creators_by_name on creators (organization_id, name_key, id);
create index creators_by_added_at on creators (organization_id, added_at, id);

create table accounts (
    id uuid primary key,
    -- the subject_id of its snapshots and rollup in ClickHouse
    internal_id bigint not null default nextval('internal_ids'),
    organization_id uuid not null references organizations on delete cascade,
    platform text not null check (platform in ('instagram', 'tiktok')),
    -- Always lower-case.
    username text not null collate "C",
    -- false once the username belongs to another account of the platform; others may be added under it then
    holds_username boolean not null default true,
    -- true while a corrected username is unverified: the next scrape compares the platform's id, or looks for a known post
    username_unchecked boolean not null default false,
    platform_id text,
    name text,
    description text,
    profile_pic_url text,
    profile_pic_url_original text,
    link_in_bio text,
    is_verified boolean not null default false,
    -- false pauses tracking
    is_active boolean not null default true,
    -- the platform does not show it
    is_unavailable boolean not null default false,
    creator_id uuid references creators on delete set null,
    linked_at timestamptz,
    category text check (char_length(category) <= 128),
    -- Time of observation of an imported category: only a later one replaces it. Null: set through the API.
    category_observed_at timestamptz,
    metadata jsonb not null default '{}',
    added_at timestamptz not null,
    updated_at timestamptz not null,
    first_scrape_time timestamptz,
    last_scrape_time timestamptz,
    scrape_interval_hours integer not null default 24 check (scrape_interval_hours between 6 and 720),
    -- null: the organization's default
    max_recent_posts integer check (max_recent_posts between 50 and 5000),
    post_lookback_days integer check (post_lookback_days between 90 and 7300),
    -- Time of the latest observation of the profile.
    observed_at timestamptz,
    -- Times of fields whose last known value is from another observation (model::latest).
    known_at jsonb,
    -- the latest profile
    follower_count bigint not null default 0,
    following_count bigint not null default 0,
    profile_post_count bigint not null default 0,
    -- Sums over the latest counters of its discovered videos, updated in the transaction that changes one
    -- (store::observations).
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
    -- Tracking start: UTC day of the earliest observation of the account or of any of its videos.
    tracked_since date,
    unique (internal_id)
);
-- An organization tracks an account of a platform once. Requests name accounts by username.
create unique index accounts_username on accounts (organization_id, platform, username) where holds_username;
create unique index accounts_platform_id on accounts (organization_id, platform, platform_id)
    where platform_id is not null;
-- GET /accounts, by sort.
create index accounts_by_added_at on accounts (organization_id, added_at, id);
create index accounts_by_username on accounts (organization_id, username, id);
create index accounts_by_last_scrape on accounts (organization_id, last_scrape_time, id);
create index accounts_by_followers on accounts (organization_id, follower_count, id);
create index accounts_by_views on accounts (organization_id, view_count, id);
create index accounts_by_likes on accounts (organization_id, like_count, id);
create index accounts_by_plays on accounts (organization_id, play_count, id);
create index accounts_by_posts on accounts (organization_id, total_post_count, id);
-- GET /accounts?creator_id=, the videos of a creator's accounts, and the foreign key.
create index accounts_by_creator on accounts (creator_id) where creator_id is not null;
-- GET /accounts?category=, of which there may be thousands.
create index accounts_by_category on accounts (organization_id, category) where category is not null;
-- GET /search ranks creators by the followers of all their accounts, and accounts by accounts_by_followers.
create index accounts_of_creators on accounts (organization_id, creator_id) include (follower_count)
    where creator_id is not null;
-- One response of a platform serves all organizations that track the account (store::tracking::leases).
create index accounts_by_platform_username on accounts (platform, username);

-- VIDEOS

-- A row serves two lists: a video discovered on a tracked account (account_id is set), a video that is tracked
-- individually (is_tracked), or both.
create table videos (
    id uuid primary key,
    internal_id bigint not null default nextval('internal_ids'),
    -- The subject of its snapshots in ClickHouse: the account's internal id, or without an account its own. A video that
    -- is detached from an account gets a new one: a (subject, video) pair is never reused.
    subject_id bigint not null,
    -- Triggers do what foreign keys to organizations and accounts would.
    organization_id uuid not null,
    platform text not null check (platform in ('instagram', 'tiktok')),
    -- Ids on the platform; at least one is known.
    external_id text,
    shortcode text,
    account_id uuid,
    is_tracked boolean not null default false,
    url text,
    description text,
    -- the caption as it is searched, folded by model::text
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
    -- When it was added individually, shown as its added_at; later than the row's own if it was discovered before.
    tracked_at timestamptz,
    updated_at timestamptz not null,
    -- false pauses individual tracking
    is_active boolean not null default true,
    is_unavailable boolean not null default false,
    metadata jsonb not null default '{}',
    scrape_interval_hours integer not null default 24 check (scrape_interval_hours between 6 and 720),
    first_scrape_time timestamptz,
    last_scrape_time timestamptz,
    -- as in accounts
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
-- An organization has one row per video of a platform. Observations find it by either id.
create unique index videos_external_id on videos (organization_id, platform, external_id) where external_id is not null;
create unique index videos_shortcode on videos (organization_id, platform, shortcode) where shortcode is not null;
-- Videos of an account, by sort: GET /accounts/{account_id}/videos, GET /account-videos, /videos and /content with an
-- account or a creator. The first also serves the tracker and the deletion of an account.
create index videos_of_account on videos (account_id, create_time desc nulls last, id desc) where account_id is not null;
create index videos_of_account_by_views on videos (account_id, view_count, id) where account_id is not null;
create index videos_of_account_by_likes on videos (account_id, like_count, id) where account_id is not null;
create index videos_of_account_by_plays on videos (account_id, play_count, id) where account_id is not null;
create index videos_of_account_by_added_at on videos (account_id, added_at, id) where account_id is not null;
-- GET /content, by sort, and GET /account-videos: nearly all videos are discovered on an account, and two sets would make
-- every insert and counter update maintain each sort twice. The first also finds the posts of some days (GET
-- /accounts/stats, `posted_after`). GET /search ranks videos by views.
create index videos_by_create_time on videos (organization_id, create_time desc nulls last, id desc);
create index videos_by_views on videos (organization_id, view_count, id);
create index videos_by_likes on videos (organization_id, like_count, id);
create index videos_by_plays on videos (organization_id, play_count, id);
create index videos_by_added_at on videos (organization_id, added_at, id);
-- GET /content/top with include_all lists the videos without a gain by id.
create index videos_by_id on videos (organization_id, id);
-- GET /videos, by sort. Partial, so that discovered videos, by far the most, do not pay for them.
create index videos_tracked_by_tracked_at on videos (organization_id, tracked_at, id) where is_tracked;
create index videos_tracked_by_create_time on videos (organization_id, create_time desc nulls last, id desc)
    where is_tracked;
create index videos_tracked_by_views on videos (organization_id, view_count, id) where is_tracked;
create index videos_tracked_by_likes on videos (organization_id, like_count, id) where is_tracked;
create index videos_tracked_by_plays on videos (organization_id, play_count, id) where is_tracked;
-- `tidemark verify` and `rebuild` read the videos of a subject. The subject of a video on an account is the account's, and
-- videos_of_account finds it. Partial, so that discovered videos do not pay for it.
create index videos_of_own_subject on videos (subject_id) where account_id is null;

-- Triggers that do what foreign keys to accounts and organizations would, for a whole statement: those of a foreign key look
-- up and lock the account and the organization once for each video, which takes a quarter of the time of an insert
-- (docs/measurements/import.md).

-- Locks the parents as a foreign key does: a concurrent deletion waits, or is seen.
create function check_parents_of_videos() returns trigger language plpgsql as $$
declare
    parents uuid[] := array(select distinct account_id from added where account_id is not null);
    found_parents bigint;
begin
    perform from accounts where id = any(parents) order by id for key share;
    get diagnostics found_parents = row_count;
    if found_parents < cardinality(parents) then
        raise foreign_key_violation using message = 'a video refers to an account that does not exist',
            table = 'videos', constraint = 'videos_account_id_fkey';
    end if;
    parents := array(select distinct organization_id from added);
    perform from organizations where id = any(parents) order by id for key share;
    get diagnostics found_parents = row_count;
    if found_parents < cardinality(parents) then
        raise foreign_key_violation using message = 'a video refers to an organization that does not exist',
            table = 'videos', constraint = 'videos_organization_id_fkey';
    end if;
    return null;
end $$;

create function check_new_account_of_video() returns trigger language plpgsql as $$
begin
    perform from accounts where id = new.account_id for key share;
    if not found then
        raise foreign_key_violation using message = 'a video refers to an account that does not exist',
            table = 'videos', constraint = 'videos_account_id_fkey';
    end if;
    return null;
end $$;

create function remove_videos_of_accounts() returns trigger language plpgsql as $$
begin
    delete from videos where account_id = any(array(select id from removed));
    return null;
end $$;

create function remove_videos_of_organizations() returns trigger language plpgsql as $$
begin
    delete from videos where organization_id = any(array(select id from removed));
    return null;
end $$;

create trigger check_parents_of_videos after insert on videos
    referencing new table as added for each statement execute function check_parents_of_videos();
create trigger check_new_account_of_video after update of account_id on videos
    for each row when (new.account_id is not null and old.account_id is distinct from new.account_id)
    execute function check_new_account_of_video();
create trigger remove_videos_of_accounts after delete on accounts
    referencing old table as removed for each statement execute function remove_videos_of_accounts();
create trigger remove_videos_of_organizations after delete on organizations
    referencing old table as removed for each statement execute function remove_videos_of_organizations();

-- Captions, sixteen videos to a row, for `q` on lists of videos (docs/paging.md). A search reads a tenth of the pages that
-- the records take. It finds any text in any script, however short, and costs an insert little; an index of trigrams does
-- neither.
--
-- Each transaction inserts rows of its own for new videos, and rebuilds the blocks of changed and deleted captions
-- (store::records::captions). Concurrent rebuilds may leave an outdated caption behind until the next one: readers compare with
-- the record.
create table caption_blocks (
    organization_id uuid not null references organizations on delete cascade,
    -- internal_id / 16 of its videos
    block bigint not null,
    -- internal ids, in the order of the captions
    videos bigint[] not null,
    -- description_key of each, separated by A: folded text has no upper-case letters
    captions text not null collate "C"
) with (toast_tuple_target = 8160);
-- Uncompressed, because every search reads them.
alter table caption_blocks alter column captions set storage external;
create index caption_blocks_by_block on caption_blocks (organization_id, block);

-- Posts per UTC day, so that GET /overview need not count videos. A transaction appends its changes (is_sum = false), which
-- housekeeping adds to the sums. The count of a day is always the sum over all of its rows.
create table post_days (
    organization_id uuid not null references organizations on delete cascade,
    platform text not null,
    day date not null,
    posts bigint not null,
    is_sum boolean not null
);
-- GET /overview adds up the days of a window.
create index post_days_by_day on post_days (organization_id, day, platform) include (posts);
-- Housekeeping: the row of a day's sum, and the changes that are not in it yet.
create unique index post_days_sums on post_days (organization_id, day, platform) where is_sum;
create index post_days_changes on post_days (organization_id) where not is_sum;

-- TRACKING: what is scraped when, by which tracker process, and which sources are paused (docs/tracking.md).

-- What is scraped regularly: an account, or a video that is tracked individually. Separate from the record, because it
-- changes with every attempt and only the scheduler writes it.
create table scrape_targets (
    -- the id of the account or video
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    platform text not null check (platform in ('instagram', 'tiktok')),
    kind text not null check (kind in ('account', 'video')),
    -- What a source must be able to look up: username, id, shortcode or id_or_shortcode (model::readable::FoundBy).
    -- Without such a source the target is unsupported, whatever its status here.
    found_by text not null default 'username',
    -- model::tracking::TrackingStatus. Null only in the transaction that adds the target.
    status text,
    -- false while the account, its creator or the video is paused
    enabled boolean not null default true,
    -- by the service's clock, as all times of attempts
    next_attempt_at timestamptz not null,
    last_attempt_at timestamptz,
    last_error text,
    -- Why the last attempt failed (model::tracking::FailureReason); null after a success.
    last_failure text,
    -- The failure under which target_counts counts it; null unless it is failing.
    counted_failure text,
    -- attempts that failed since the last success
    failures integer not null default 0,
    -- attempts since the last success in which the platform did not find it; after some it is marked unavailable
    not_found_runs integer not null default 0,
    -- The tracker process that leases it, and until when by the database's clock (store::tracking::leases).
    lease_owner uuid,
    lease_until timestamptz,
    -- When a user asked to scrape it now, by the database's clock (store::tracking::refreshes). Null once an attempt has
    -- ended. Until then the target is leased, due or not.
    refresh_requested_at timestamptz,
    -- When posts of an account up to 90 days old were last read, which happens weekly, and when all were, monthly.
    weekly_read_at timestamptz,
    monthly_read_at timestamptz
);
-- Whether anything of a platform is due, how much and since when: leases, queue metrics, /health.
create index scrape_targets_due on scrape_targets (platform, next_attempt_at) where enabled;
-- Leases are taken round-robin over organizations.
create index scrape_targets_due_of_organization on scrape_targets (platform, organization_id, next_attempt_at)
    where enabled;
-- Leases of refreshes take turns over organizations. Few targets have one.
create index scrape_targets_refreshes on scrape_targets (platform, organization_id, refresh_requested_at)
    where refresh_requested_at is not null;
-- GET /accounts by next_attempt_at. A paused account has a target whose time does not count.
create index scrape_targets_by_next_attempt
    on scrape_targets (organization_id, (case when enabled then next_attempt_at end), id) where kind = 'account';
-- Queue metrics count the targets whose last attempt failed: few among many.
create index scrape_targets_failing on scrape_targets (platform) where enabled and failures > 0;
-- The deletion of an organization.
create index scrape_targets_organization on scrape_targets (organization_id);

-- Numbers of targets by status. A transaction appends its changes (is_sum = false), which housekeeping adds to the sums. A
-- number is always the sum over all rows. Writers never wait for each other here.
create table target_counts (
    organization_id uuid not null references organizations on delete cascade,
    platform text not null,
    found_by text not null,
    status text not null,
    -- of failing targets, else empty
    failure text not null,
    targets bigint not null,
    is_sum boolean not null
);
create index target_counts_organization on target_counts (organization_id);
-- Housekeeping: the sums, and the changes that are not in them yet.
create unique index target_counts_sums on target_counts (organization_id, platform, found_by, status, failure)
    where is_sum;
create index target_counts_changes on target_counts (organization_id) where not is_sum;

-- When to look for due targets of an organization: every enabled target has a wakeup of its organization, platform and kind
-- at its next attempt or earlier. Leases look only at organizations with a passed wakeup. Where nothing is due, it is
-- replaced by the time of the next attempt (store::tracking::wakeups).
--
-- A transaction that adds or enables a target, or makes it due earlier, appends a row. Nothing updates a row or waits for
-- one, and no transaction deletes a row that it does not see, so a concurrent change of targets is never missed.
create table scrape_wakeups (
    organization_id uuid not null references organizations on delete cascade,
    platform text not null,
    kind text not null,
    -- by the service's clock
    wake_at timestamptz not null
);
-- Leases.
create index scrape_wakeups_passed on scrape_wakeups (platform, wake_at);
-- The deletion of an organization, and organizations without a wakeup.
create index scrape_wakeups_organization on scrape_wakeups (organization_id);

-- Attempts of the last 24 hours, per minute in which they ended. An attempt appends a row (is_sum = false); housekeeping
-- adds such rows to the sum of their minute, and deletes old sums. No foreign key: a scrape should not lock its
-- organization before its commit does. The deletion of an organization deletes its rows.
create table ended_attempts (
    organization_id uuid not null,
    -- by the service's clock
    minute timestamptz not null,
    succeeded bigint not null,
    failed bigint not null,
    is_sum boolean not null
);
-- GET /tracking adds up those of an organization.
create index ended_attempts_of_organization on ended_attempts (organization_id, minute);
-- Housekeeping: the sums, the oldest first, and the attempts that are not in them yet.
create unique index ended_attempts_sums on ended_attempts (minute, organization_id) where is_sum;
create index ended_attempts_new on ended_attempts (minute) where not is_sum;

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
    -- Those for refreshes, which have a share of the day's budget.
    refresh_requests integer not null default 0,
    primary key (source, day)
);

-- Pages of posts that a source delivered, per UTC day: what reading an account costs (store::tracking::source_pages).
create table source_pages (
    platform text not null,
    source text not null,
    day date not null,
    -- accounts that were read
    reads bigint not null,
    -- pages that another one followed, and their posts
    full_pages bigint not null,
    full_page_posts bigint not null,
    -- pages with only posts older than asked for
    surplus_pages bigint not null,
    primary key (platform, source, day)
);

-- Machines on which a tracker does not scrape, because their clock differs from Postgres'. A row counts for two minutes
-- (store::tracking::skewed_clocks).
create table skewed_clocks (
    -- its address as Postgres sees it; local over a Unix socket
    machine text primary key,
    -- negative if its clock is behind
    seconds_ahead double precision not null,
    seen_at timestamptz not null
);

-- THE OUTBOX: changes to deliver to ClickHouse, and the state of deliveries (store::outbox).
--
-- The relay puts waiting rows into a delivery, applies it to ClickHouse, records its number there and marks the rows here.
-- Applied rows stay for seven days, so that they can be replayed after ClickHouse lost data.

-- Numbers of deliveries. Each attempt takes a new one, so that what an abandoned attempt still writes to ClickHouse has a
-- lower number than that of the next attempt, and loses.
create sequence deliveries;

-- One row per transaction that changed something: its events (store::outbox::event). The row is inserted at the end of
-- the transaction, so two transactions that changed the same records have their positions in the order of their locks.
-- A transaction that commits late, with a lower position than rows already applied, is still found: the relay looks for
-- rows that are not marked, not for positions.
create table outbox (
    position bigint generated always as identity primary key,
    organization_id uuid not null,
    events bytea not null,
    -- The earliest day whose numbers the events change; infinity if they change none.
    since date not null,
    created_at timestamptz not null default now(),
    -- The delivery of the current attempt, or the one that succeeded.
    delivery bigint,
    applied_at timestamptz
);
-- The relay's next delivery, and the lag in metrics and /health.
create index outbox_pending on outbox (position) where applied_at is null;
-- Waiting until the changes of an organization are visible (store::outbox::visibility).
create index outbox_pending_of_organization on outbox (organization_id, position) where applied_at is null;
-- Marking a delivery, and delivering again after ClickHouse lost some.
create index outbox_deliveries on outbox (delivery) where delivery is not null;
-- Pruning after seven days.
create index outbox_applied on outbox (applied_at) where applied_at is not null;

-- The last delivery whose rows are pruned. A ClickHouse that has only earlier ones lacks history that the outbox cannot
-- bring back. No row: nothing is pruned yet.
create table outbox_pruned (
    single boolean primary key default true check (single),
    delivery bigint not null,
    -- when that delivery was applied
    applied_at timestamptz not null
);

-- History that only a backup of ClickHouse can bring back: committed between two times, lost there and pruned here.
create table missing_history (
    -- The last delivery when the loss was detected. Files of ClickHouse with a later delivery have the gap as well.
    detected_at_delivery bigint primary key,
    -- null: from the beginning
    since timestamptz,
    until timestamptz not null
);

-- Deleted subjects of tracking. Totals leave them out from the commit of the deletion until ClickHouse has removed their
-- history.
create table removed_subjects (
    organization_id uuid not null,
    subject_id bigint not null,
    removed_at timestamptz not null default now(),
    -- The delivery that removed its history from ClickHouse; null until then, and again if ClickHouse loses it.
    delivery bigint,
    -- when its snapshots were removed from the outbox
    erased_at timestamptz,
    primary key (organization_id, subject_id)
);
-- Analytics read the subjects to leave out.
create index removed_subjects_pending on removed_subjects (organization_id) where delivery is null;
-- Pruning, and opening removals again after ClickHouse lost them.
create index removed_subjects_deliveries on removed_subjects (delivery) where delivery is not null;
-- store::lifecycle::outbox finds the organizations whose outbox rows still hold snapshots of deleted subjects.
create index removed_subjects_to_erase on removed_subjects (organization_id)
    where erased_at is null and delivery is not null;

-- Cache versions of history: the last delivery that changed a number of this day or of an earlier one. A day without a row
-- has the version of the row before it; rows that an earlier day's newer delivery makes redundant are deleted.
create table history_versions (
    organization_id uuid not null,
    day date not null,
    delivery bigint not null,
    primary key (organization_id, day)
) with (fillfactor = 50);

-- Incremented when ClickHouse's data was replaced, which invalidates all cached analytics responses.
create table clickhouse_generation (
    single boolean primary key default true check (single),
    generation bigint not null default 0
);
insert into clickhouse_generation default values;

-- SEARCH: the feed of the search indexes (store::search::changes). Every API process follows it with an index of its own.

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
    -- Other records of the same kind that the transaction changed: one of an import writes a row for a hundred. Null: none.
    more_ids uuid[],
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

-- PICTURES: copies of pictures, whose files are in the media folder (store::pictures).

-- The profile picture of an account, or the cover of a video. Organizations that track the same account refer to the same
-- copy.
create table record_pictures (
    -- id of the account or video; a trigger deletes the row with it
    record_id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    kind text not null check (kind in ('profile', 'cover')),
    -- What identifies the latest picture at the platform: a digest of its URL without server and signature.
    source bytea not null check (length(source) = 16),
    -- The copy, and the source that it was made of. Null while there is none; the copy of an earlier picture stays until
    -- the latest one is copied.
    name bytea,
    copied_source bytea,
    -- When to fetch the picture, by Postgres' clock. Null: nothing to fetch.
    due_at timestamptz,
    -- requests since it became due
    attempts smallint not null default 0,
    -- A scrape makes a picture without a copy due again after this time; null: the next one does.
    retry_at timestamptz
);
-- Trackers fetch profile pictures first, because all rows of an account show it, and the latest of a kind: those before it
-- may have expired.
create index record_pictures_due on record_pictures (kind, due_at) where due_at is not null;
-- Whether anything refers to a copy.
create index record_pictures_by_name on record_pictures (name) where name is not null;
-- Whether another record has the copy of a picture.
create index record_pictures_by_copied_source on record_pictures (copied_source) where copied_source is not null;
-- The deletion of an organization.
create index record_pictures_organization on record_pictures (organization_id);

create function remove_record_pictures() returns trigger language plpgsql as $$
begin
    delete from record_pictures using removed where record_id = removed.id;
    return null;
end $$;

create trigger remove_record_pictures after delete on accounts
    referencing old table as removed for each statement execute function remove_record_pictures();
create trigger remove_record_pictures after delete on videos
    referencing old table as removed for each statement execute function remove_record_pictures();

-- Copies. A row is written before its file and deleted after it.
create table pictures (
    -- HMAC-SHA-256 of the file under the installation's secret
    name bytea primary key check (length(name) = 32),
    -- space that the file occupies
    bytes bigint not null check (bytes > 0),
    -- when a tracker stored it last; nothing may refer to it yet
    stored_at timestamptz not null,
    -- by an API process, precise to an hour
    served_at timestamptz not null
);
-- Eviction.
create index pictures_by_served_at on pictures (served_at);

-- The media folder: one row. It is locked while `pictures` gains or loses rows, so that the limit holds for all trackers
-- together.
create table media (
    is_single boolean primary key default true check (is_single),
    secret bytea not null check (length(secret) = 32),
    -- sum over `pictures`
    used_bytes bigint not null default 0,
    -- when the folder was last compared with `pictures`
    swept_at timestamptz not null default '-infinity'
);
