-- Recomputes the rollup of whole subjects from their snapshots, days that have no observation left included.
-- Running it twice changes nothing. Recomputes of one subject must not overlap, and `version` must not fall.
--
-- org       organization
-- subjects  subjects whose snapshots, or whose videos' posted_at, changed
-- version   position of the outbox
INSERT INTO account_daily
(
    org_id, date, subject_id, platform,
    view_gain,
    like_gain,
    comment_gain,
    share_gain,
    saved_gain,
    play_gain,
    ig_play_gain,
    fb_play_gain,
    fb_like_gain,
    follower_gain,
    view_base,
    like_base,
    comment_base,
    share_base,
    saved_base,
    play_base,
    ig_play_base,
    fb_play_base,
    fb_like_base,
    follower_base,
    observed_at, version, is_deleted
)
WITH
    -- Tracking of a subject starts with the earliest observation of the account or of any of its videos.
    starts AS
    (
        SELECT subject_id, min(date) AS started_on
        FROM
        (
            SELECT subject_id, date FROM video_snapshots FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
            UNION ALL
            SELECT subject_id, date FROM account_snapshots FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
        )
        GROUP BY subject_id
    ),

    -- Videos posted on or after that day start from zero; where posted_at is unknown they do not.
    fresh AS
    (
        SELECT video_id
        FROM (SELECT video_id, subject_id, toDate(posted_at) AS posted_on FROM videos FINAL WHERE org_id = {org:UUID}) AS video
        INNER JOIN starts USING (subject_id)
        WHERE posted_on >= started_on
    ),

    platforms AS
    (
        SELECT subject_id, any(platform) AS platform
        FROM
        (
            SELECT subject_id, platform FROM accounts FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
            UNION ALL
            SELECT subject_id, platform FROM videos FINAL
            WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
        )
        GROUP BY subject_id
    ),

    -- Each snapshot beside the counters last known before it.
    video_steps AS
    (
        SELECT
            subject_id, video_id, date, observed_at,
            count() OVER earlier = 0 AND video_id IN fresh AS from_zero,
            view_count, anyLast(view_count) OVER earlier AS view_known,
            like_count, anyLast(like_count) OVER earlier AS like_known,
            comment_count, anyLast(comment_count) OVER earlier AS comment_known,
            share_count, anyLast(share_count) OVER earlier AS share_known,
            saved_count, anyLast(saved_count) OVER earlier AS saved_known,
            play_count, anyLast(play_count) OVER earlier AS play_known,
            ig_play_count, anyLast(ig_play_count) OVER earlier AS ig_play_known,
            fb_play_count, anyLast(fb_play_count) OVER earlier AS fb_play_known,
            fb_like_count, anyLast(fb_like_count) OVER earlier AS fb_like_known
        FROM video_snapshots FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
        WINDOW earlier AS
            (PARTITION BY subject_id, video_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),

    account_steps AS
    (
        SELECT
            subject_id, date, observed_at,
            follower_count, anyLast(follower_count) OVER earlier AS follower_known
        FROM account_snapshots FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
        WINDOW earlier AS
            (PARTITION BY subject_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),

    -- A first known value is a gain where the video starts from zero and had it in its first snapshot, else a base.
    parts AS
    (
        SELECT
            subject_id, date, observed_at, true AS is_observed,
            view_count - coalesce(view_known, if(from_zero, 0, view_count)) AS view_gain,
            like_count - coalesce(like_known, if(from_zero, 0, like_count)) AS like_gain,
            comment_count - coalesce(comment_known, if(from_zero, 0, comment_count)) AS comment_gain,
            share_count - coalesce(share_known, if(from_zero, 0, share_count)) AS share_gain,
            saved_count - coalesce(saved_known, if(from_zero, 0, saved_count)) AS saved_gain,
            play_count - coalesce(play_known, if(from_zero, 0, play_count)) AS play_gain,
            ig_play_count - coalesce(ig_play_known, if(from_zero, 0, ig_play_count)) AS ig_play_gain,
            fb_play_count - coalesce(fb_play_known, if(from_zero, 0, fb_play_count)) AS fb_play_gain,
            fb_like_count - coalesce(fb_like_known, if(from_zero, 0, fb_like_count)) AS fb_like_gain,
            CAST(NULL, 'Nullable(Int64)') AS follower_gain,
            if(view_known IS NULL AND NOT from_zero, view_count, 0) AS view_base,
            if(like_known IS NULL AND NOT from_zero, like_count, 0) AS like_base,
            if(comment_known IS NULL AND NOT from_zero, comment_count, 0) AS comment_base,
            if(share_known IS NULL AND NOT from_zero, share_count, 0) AS share_base,
            if(saved_known IS NULL AND NOT from_zero, saved_count, 0) AS saved_base,
            if(play_known IS NULL AND NOT from_zero, play_count, 0) AS play_base,
            if(ig_play_known IS NULL AND NOT from_zero, ig_play_count, 0) AS ig_play_base,
            if(fb_play_known IS NULL AND NOT from_zero, fb_play_count, 0) AS fb_play_base,
            if(fb_like_known IS NULL AND NOT from_zero, fb_like_count, 0) AS fb_like_base,
            CAST(0, 'Nullable(Int64)') AS follower_base
        FROM video_steps

        UNION ALL

        SELECT
            subject_id, date, observed_at, true AS is_observed,
            CAST(NULL, 'Nullable(Int64)') AS view_gain,
            CAST(NULL, 'Nullable(Int64)') AS like_gain,
            CAST(NULL, 'Nullable(Int64)') AS comment_gain,
            CAST(NULL, 'Nullable(Int64)') AS share_gain,
            CAST(NULL, 'Nullable(Int64)') AS saved_gain,
            CAST(NULL, 'Nullable(Int64)') AS play_gain,
            CAST(NULL, 'Nullable(Int64)') AS ig_play_gain,
            CAST(NULL, 'Nullable(Int64)') AS fb_play_gain,
            CAST(NULL, 'Nullable(Int64)') AS fb_like_gain,
            follower_count - coalesce(follower_known, follower_count) AS follower_gain,
            CAST(0, 'Nullable(Int64)') AS view_base,
            CAST(0, 'Nullable(Int64)') AS like_base,
            CAST(0, 'Nullable(Int64)') AS comment_base,
            CAST(0, 'Nullable(Int64)') AS share_base,
            CAST(0, 'Nullable(Int64)') AS saved_base,
            CAST(0, 'Nullable(Int64)') AS play_base,
            CAST(0, 'Nullable(Int64)') AS ig_play_base,
            CAST(0, 'Nullable(Int64)') AS fb_play_base,
            CAST(0, 'Nullable(Int64)') AS fb_like_base,
            if(follower_known IS NULL, follower_count, 0) AS follower_base
        FROM account_steps

        UNION ALL

        -- Days rolled up before: where nothing else speaks for a day, it is removed.
        SELECT
            subject_id, date, toDateTime64(0, 6, 'UTC') AS observed_at, false AS is_observed,
            CAST(NULL, 'Nullable(Int64)') AS view_gain,
            CAST(NULL, 'Nullable(Int64)') AS like_gain,
            CAST(NULL, 'Nullable(Int64)') AS comment_gain,
            CAST(NULL, 'Nullable(Int64)') AS share_gain,
            CAST(NULL, 'Nullable(Int64)') AS saved_gain,
            CAST(NULL, 'Nullable(Int64)') AS play_gain,
            CAST(NULL, 'Nullable(Int64)') AS ig_play_gain,
            CAST(NULL, 'Nullable(Int64)') AS fb_play_gain,
            CAST(NULL, 'Nullable(Int64)') AS fb_like_gain,
            CAST(NULL, 'Nullable(Int64)') AS follower_gain,
            CAST(0, 'Nullable(Int64)') AS view_base,
            CAST(0, 'Nullable(Int64)') AS like_base,
            CAST(0, 'Nullable(Int64)') AS comment_base,
            CAST(0, 'Nullable(Int64)') AS share_base,
            CAST(0, 'Nullable(Int64)') AS saved_base,
            CAST(0, 'Nullable(Int64)') AS play_base,
            CAST(0, 'Nullable(Int64)') AS ig_play_base,
            CAST(0, 'Nullable(Int64)') AS fb_play_base,
            CAST(0, 'Nullable(Int64)') AS fb_like_base,
            CAST(0, 'Nullable(Int64)') AS follower_base
        FROM account_daily FINAL
        WHERE org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)}
    ),

    days AS
    (
        SELECT
            subject_id, date,
            sum(view_gain) AS view_sum, ifNull(sum(view_base), 0) AS view_base,
            sum(like_gain) AS like_sum, ifNull(sum(like_base), 0) AS like_base,
            sum(comment_gain) AS comment_sum, ifNull(sum(comment_base), 0) AS comment_base,
            sum(share_gain) AS share_sum, ifNull(sum(share_base), 0) AS share_base,
            sum(saved_gain) AS saved_sum, ifNull(sum(saved_base), 0) AS saved_base,
            sum(play_gain) AS play_sum, ifNull(sum(play_base), 0) AS play_base,
            sum(ig_play_gain) AS ig_play_sum, ifNull(sum(ig_play_base), 0) AS ig_play_base,
            sum(fb_play_gain) AS fb_play_sum, ifNull(sum(fb_play_base), 0) AS fb_play_base,
            sum(fb_like_gain) AS fb_like_sum, ifNull(sum(fb_like_base), 0) AS fb_like_base,
            sum(follower_gain) AS follower_sum, ifNull(sum(follower_base), 0) AS follower_base,
            max(observed_at) AS observed_at,
            max(is_observed) AS is_observed
        FROM parts
        GROUP BY subject_id, date
    )

-- A day on which no video reports a counter gains 0 where the counter is known, and is unknown before.
SELECT
    {org:UUID} AS org_id, date, subject_id, platform,
    coalesce(view_sum, if(count(view_sum) OVER up_to_here > 0, 0, NULL)) AS view_gain,
    coalesce(like_sum, if(count(like_sum) OVER up_to_here > 0, 0, NULL)) AS like_gain,
    coalesce(comment_sum, if(count(comment_sum) OVER up_to_here > 0, 0, NULL)) AS comment_gain,
    coalesce(share_sum, if(count(share_sum) OVER up_to_here > 0, 0, NULL)) AS share_gain,
    coalesce(saved_sum, if(count(saved_sum) OVER up_to_here > 0, 0, NULL)) AS saved_gain,
    coalesce(play_sum, if(count(play_sum) OVER up_to_here > 0, 0, NULL)) AS play_gain,
    coalesce(ig_play_sum, if(count(ig_play_sum) OVER up_to_here > 0, 0, NULL)) AS ig_play_gain,
    coalesce(fb_play_sum, if(count(fb_play_sum) OVER up_to_here > 0, 0, NULL)) AS fb_play_gain,
    coalesce(fb_like_sum, if(count(fb_like_sum) OVER up_to_here > 0, 0, NULL)) AS fb_like_gain,
    coalesce(follower_sum, if(count(follower_sum) OVER up_to_here > 0, 0, NULL)) AS follower_gain,
    view_base,
    like_base,
    comment_base,
    share_base,
    saved_base,
    play_base,
    ig_play_base,
    fb_play_base,
    fb_like_base,
    follower_base,
    observed_at, {version:UInt64} AS version, NOT is_observed AS is_deleted
FROM days
LEFT JOIN platforms USING (subject_id)
WINDOW up_to_here AS (PARTITION BY subject_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
