-- Accounts, ten per creator.
with input as (
    select *, md5(organization_id::text || internal_id / 10)::uuid as creator_id
    from jsonb_to_recordset($1::jsonb) as x (
        organization_id uuid, id uuid, internal_id bigint, platform text, username text, category text,
        first_observed_at timestamptz, observed_at timestamptz,
        follower_count bigint, following_count bigint, profile_post_count bigint, total_post_count bigint,
        view_count bigint, like_count bigint, comment_count bigint, share_count bigint, saved_count bigint,
        play_count bigint, ig_play_count bigint, fb_play_count bigint, fb_like_count bigint
    )
),
new_creators as (
    insert into creators (id, organization_id, name, name_key, added_at, updated_at)
    select distinct on (creator_id) creator_id, organization_id, 'Creator ' || internal_id / 10,
        'creator ' || internal_id / 10, first_observed_at, observed_at
    from input
    on conflict do nothing
)
insert into accounts
    (id, internal_id, organization_id, platform, username, creator_id, linked_at, category, added_at, updated_at,
     first_scrape_time, last_scrape_time, max_recent_posts, observed_at, tracked_since,
     follower_count, following_count, profile_post_count, total_post_count,
     view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count)
select id, internal_id, organization_id, platform, username, creator_id, first_observed_at, category, first_observed_at,
    observed_at, first_observed_at, observed_at, 5000, observed_at, (first_observed_at at time zone 'UTC')::date,
    follower_count, following_count, profile_post_count, total_post_count,
    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count
from input
