-- Videos; counters that were never known are 0, or null where the column allows it.
with input as (
    select *, ('018f0000-0000-7000-8200-' || lpad(to_hex(internal_id), 12, '0'))::uuid as id
    from jsonb_to_recordset($1::jsonb) as x (
        organization_id uuid, internal_id bigint, subject_id bigint, account_id uuid, platform text, is_tracked boolean,
        create_time timestamptz, first_observed_at timestamptz, observed_at timestamptz,
        view_count bigint, like_count bigint, comment_count bigint, share_count bigint, saved_count bigint,
        play_count bigint, ig_play_count bigint, fb_play_count bigint, fb_like_count bigint
    )
)
insert into videos
    (id, internal_id, subject_id, organization_id, platform, external_id, account_id, is_tracked, description,
     description_key, media_type, create_time, added_at, tracked_at, updated_at, first_scrape_time, last_scrape_time,
     observed_at, tracked_since,
     view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count)
select id, internal_id, subject_id, organization_id, platform, internal_id::text, account_id, is_tracked,
    'a caption of the video ' || internal_id, 'a caption of the video ' || internal_id,
    case when platform = 'tiktok' then 'video'
        else (array['reel', 'reel', 'reel', 'image', 'carousel'])[1 + internal_id % 5] end,
    create_time, first_observed_at, case when is_tracked then first_observed_at end, observed_at, first_observed_at,
    observed_at, observed_at, (first_observed_at at time zone 'UTC')::date,
    coalesce(view_count, 0), coalesce(like_count, 0), coalesce(comment_count, 0), coalesce(share_count, 0), saved_count,
    coalesce(play_count, 0), ig_play_count, fb_play_count, fb_like_count
from input
