-- Records: creators, accounts and videos, and the indexes that lists and search read.
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
-- GET /accounts?creator_id=, the videos of a creator's accounts, and the foreign key.
create index accounts_by_creator on accounts (creator_id) where creator_id is not null;
-- GET /accounts?category=, of which there may be thousands.
create index accounts_by_category on accounts (organization_id, category) where category is not null;
-- GET /search ranks accounts by followers, and creators by the followers of all their accounts.
create index accounts_by_size on accounts (organization_id, follower_count desc, id);
create index accounts_of_creators on accounts (organization_id, creator_id) include (follower_count)
    where creator_id is not null;
-- One response of a platform serves all organizations that track the account (store::tracking::leases).
create index accounts_by_platform_username on accounts (platform, username);

-- A row serves two lists: a video discovered on a tracked account (account_id is set), a video that is tracked
-- individually (is_tracked), or both.
create table videos (
    id uuid primary key,
    internal_id bigint not null default nextval('internal_ids'),
    -- The subject of its snapshots in ClickHouse: the account's internal id, or without an account its own. A video that
    -- is detached from an account gets a new one: a (subject, video) pair is never reused.
    subject_id bigint not null,
    organization_id uuid not null references organizations on delete cascade,
    platform text not null check (platform in ('instagram', 'tiktok')),
    -- Ids on the platform; at least one is known.
    external_id text,
    shortcode text,
    account_id uuid references accounts on delete cascade,
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
-- Videos of an account, by sort: GET /accounts/{account_id}/videos, GET /account-videos and /videos with an account or a
-- creator. The first also serves the tracker and the foreign key.
create index videos_of_account on videos (account_id, create_time desc nulls last, id desc) where account_id is not null;
create index videos_of_account_by_views on videos (account_id, view_count, id) where account_id is not null;
create index videos_of_account_by_likes on videos (account_id, like_count, id) where account_id is not null;
create index videos_of_account_by_plays on videos (account_id, play_count, id) where account_id is not null;
-- GET /account-videos, by sort.
create index videos_discovered_by_create_time on videos (organization_id, create_time desc nulls last, id desc)
    where account_id is not null;
create index videos_discovered_by_views on videos (organization_id, view_count, id) where account_id is not null;
create index videos_discovered_by_likes on videos (organization_id, like_count, id) where account_id is not null;
create index videos_discovered_by_plays on videos (organization_id, play_count, id) where account_id is not null;
-- GET /videos, by sort. Partial, so that discovered videos, by far the most, do not pay for them.
create index videos_tracked_by_tracked_at on videos (organization_id, tracked_at, id) where is_tracked;
create index videos_tracked_by_create_time on videos (organization_id, create_time desc nulls last, id desc)
    where is_tracked;
create index videos_tracked_by_views on videos (organization_id, view_count, id) where is_tracked;
create index videos_tracked_by_likes on videos (organization_id, like_count, id) where is_tracked;
create index videos_tracked_by_plays on videos (organization_id, play_count, id) where is_tracked;
-- GET /accounts/stats counts the posts of seven days.
create index videos_posted on videos (organization_id, create_time) where create_time is not null;
-- GET /search ranks videos by views.
create index videos_by_size on videos (organization_id, view_count desc, id);
-- `tidemark verify` and `rebuild` read the videos of a subject.
create index videos_of_subject on videos (subject_id);
