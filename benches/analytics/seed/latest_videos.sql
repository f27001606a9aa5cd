-- The records of the videos of some of seed_subjects: their last known counters and the times of their observations.
SELECT
    org_id AS organization_id, video_id AS internal_id, subject_id, account_id, platform, is_tracked, posted_at AS create_time,
    first_observed_at, observed_at,
    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count, fb_like_count
FROM
(
    -- argMax skips null counters.
    SELECT
        video_id, min(s.observed_at) AS first_observed_at, max(s.observed_at) AS observed_at,
        argMax(view_count, date) AS view_count, argMax(like_count, date) AS like_count,
        argMax(comment_count, date) AS comment_count, argMax(share_count, date) AS share_count,
        argMax(saved_count, date) AS saved_count, argMax(play_count, date) AS play_count,
        argMax(ig_play_count, date) AS ig_play_count, argMax(fb_play_count, date) AS fb_play_count,
        argMax(fb_like_count, date) AS fb_like_count
    FROM video_snapshots AS s
    WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    GROUP BY video_id
) AS latest
INNER JOIN (SELECT * FROM videos WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}) AS video USING (video_id)
ORDER BY video_id
