-- Gains per video and UTC day of observation, and its counters at the end of that day. A gain is the last known value by the
-- end of the day minus the last known value before it, as in the rollups: the first known value of a counter is a baseline
-- and no gain, except in the first snapshot of a video that was posted on or after the day tracking began. Filters on the
-- keys are pushed below the window function; one on the date is not, because a gain depends on all earlier snapshots.
CREATE OR REPLACE VIEW {public:Identifier}.video_daily_gains /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id        UUID COMMENT 'Organization that owns the row',
    subject_id    UInt64 COMMENT 'The account (accounts.subject_id) or individually tracked video (videos.subject_id)',
    video_id      UInt64 COMMENT 'Video, videos.video_id; internal_id in the API',
    date          Date COMMENT 'UTC day',
    observed_at   DateTime64(6, 'UTC') COMMENT 'When the video was last read that day',
    view_gain     Nullable(Int64) COMMENT 'Gain of view_count; null = unknown',
    like_gain     Nullable(Int64) COMMENT 'Gain of like_count; null = unknown',
    comment_gain  Nullable(Int64) COMMENT 'Gain of comment_count; null = unknown',
    share_gain    Nullable(Int64) COMMENT 'Gain of share_count; null = unknown',
    saved_gain    Nullable(Int64) COMMENT 'Gain of saved_count; null = unknown',
    play_gain     Nullable(Int64) COMMENT 'Gain of play_count; null = unknown',
    ig_play_gain  Nullable(Int64) COMMENT 'Gain of ig_play_count; null = unknown',
    fb_play_gain  Nullable(Int64) COMMENT 'Gain of fb_play_count; null = unknown',
    fb_like_gain  Nullable(Int64) COMMENT 'Gain of fb_like_count; null = unknown',
    view_count    Nullable(Int64) COMMENT 'Views as last reported by then; null = never',
    like_count    Nullable(Int64) COMMENT 'Likes as last reported by then; null = never',
    comment_count Nullable(Int64) COMMENT 'Comments as last reported by then; null = never',
    share_count   Nullable(Int64) COMMENT 'Shares as last reported by then; null = never',
    saved_count   Nullable(Int64) COMMENT 'Saves as last reported by then; null = never',
    play_count    Nullable(Int64) COMMENT 'Plays (on TikTok always equal to views) as last reported by then; null = never',
    ig_play_count Nullable(Int64) COMMENT 'Plays on Instagram alone as last reported by then; null = never',
    fb_play_count Nullable(Int64) COMMENT 'Plays of the Facebook cross-post as last reported by then; null = never',
    fb_like_count Nullable(Int64) COMMENT 'Likes of the Facebook cross-post as last reported by then; null = never'
)
SQL SECURITY INVOKER
AS
WITH is_first AND posted_on >= started_on AS from_zero
SELECT
    steps.org_id AS org_id, steps.subject_id AS subject_id, steps.video_id AS video_id, steps.date AS date,
    steps.observed_at AS observed_at,
    coalesce(view_now, view_before) - coalesce(view_before, if(from_zero, 0, view_now)) AS view_gain,
    coalesce(like_now, like_before) - coalesce(like_before, if(from_zero, 0, like_now)) AS like_gain,
    coalesce(comment_now, comment_before) - coalesce(comment_before, if(from_zero, 0, comment_now)) AS comment_gain,
    coalesce(share_now, share_before) - coalesce(share_before, if(from_zero, 0, share_now)) AS share_gain,
    coalesce(saved_now, saved_before) - coalesce(saved_before, if(from_zero, 0, saved_now)) AS saved_gain,
    coalesce(play_now, play_before) - coalesce(play_before, if(from_zero, 0, play_now)) AS play_gain,
    coalesce(ig_play_now, ig_play_before) - coalesce(ig_play_before, if(from_zero, 0, ig_play_now)) AS ig_play_gain,
    coalesce(fb_play_now, fb_play_before) - coalesce(fb_play_before, if(from_zero, 0, fb_play_now)) AS fb_play_gain,
    coalesce(fb_like_now, fb_like_before) - coalesce(fb_like_before, if(from_zero, 0, fb_like_now)) AS fb_like_gain,
    coalesce(view_now, view_before) AS view_count,
    coalesce(like_now, like_before) AS like_count,
    coalesce(comment_now, comment_before) AS comment_count,
    coalesce(share_now, share_before) AS share_count,
    coalesce(saved_now, saved_before) AS saved_count,
    coalesce(play_now, play_before) AS play_count,
    coalesce(ig_play_now, ig_play_before) AS ig_play_count,
    coalesce(fb_play_now, fb_play_before) AS fb_play_count,
    coalesce(fb_like_now, fb_like_before) AS fb_like_count
FROM
(
    SELECT
        org_id, subject_id, video_id, date, observed_at,
        count() OVER earlier = 0 AS is_first,
        view_count AS view_now, anyLast(view_count) OVER earlier AS view_before,
        like_count AS like_now, anyLast(like_count) OVER earlier AS like_before,
        comment_count AS comment_now, anyLast(comment_count) OVER earlier AS comment_before,
        share_count AS share_now, anyLast(share_count) OVER earlier AS share_before,
        saved_count AS saved_now, anyLast(saved_count) OVER earlier AS saved_before,
        play_count AS play_now, anyLast(play_count) OVER earlier AS play_before,
        ig_play_count AS ig_play_now, anyLast(ig_play_count) OVER earlier AS ig_play_before,
        fb_play_count AS fb_play_now, anyLast(fb_play_count) OVER earlier AS fb_play_before,
        fb_like_count AS fb_like_now, anyLast(fb_like_count) OVER earlier AS fb_like_before
    FROM video_snapshots FINAL
    WINDOW earlier AS
        (PARTITION BY org_id, subject_id, video_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS steps
INNER JOIN
(
    -- Tracking of a subject began on its first day in the rollup.
    SELECT org_id, subject_id, min(date) AS started_on
    FROM account_daily FINAL
    GROUP BY org_id, subject_id
) AS starts ON starts.org_id = steps.org_id AND starts.subject_id = steps.subject_id
LEFT JOIN
(
    -- An unknown posted_at is 1970-01-01 here, before every start.
    SELECT org_id, video_id, ifNull(toDate(posted_at), toDate(0)) AS posted_on
    FROM videos FINAL
) AS posts ON posts.org_id = steps.org_id AND posts.video_id = steps.video_id
COMMENT 'Gains of videos, and their counters carried forward, one row per video and day of observation';
