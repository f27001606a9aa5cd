-- The records of some accounts of seed_subjects: their last profile, and the sums of the latest counters of their videos.
SELECT
    org_id AS organization_id, id, subject_id AS internal_id, platform, username, category, first_observed_at, observed_at,
    follower_count, following_count, profile_post_count, sums.* EXCEPT subject_id
FROM
(
    SELECT
        subject_id, min(s.observed_at) AS first_observed_at, max(s.observed_at) AS observed_at,
        argMax(follower_count, date) AS follower_count, argMax(following_count, date) AS following_count,
        argMax(profile_post_count, date) AS profile_post_count
    FROM account_snapshots AS s
    WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    GROUP BY subject_id
) AS profiles
INNER JOIN
(
    SELECT
        subject_id, count() AS total_post_count,
        sum(views) AS view_count, sum(likes) AS like_count, sum(comments) AS comment_count, sum(shares) AS share_count,
        sum(saved) AS saved_count, sum(plays) AS play_count, sum(ig_plays) AS ig_play_count,
        sum(fb_plays) AS fb_play_count, sum(fb_likes) AS fb_like_count
    FROM
    (
        -- argMax skips null counters.
        SELECT
            subject_id, video_id, argMax(view_count, date) AS views, argMax(like_count, date) AS likes,
            argMax(comment_count, date) AS comments, argMax(share_count, date) AS shares,
            argMax(saved_count, date) AS saved, argMax(play_count, date) AS plays,
            argMax(ig_play_count, date) AS ig_plays, argMax(fb_play_count, date) AS fb_plays,
            argMax(fb_like_count, date) AS fb_likes
        FROM video_snapshots
        WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
        GROUP BY subject_id, video_id
    )
    GROUP BY subject_id
) AS sums USING (subject_id)
INNER JOIN accounts USING (subject_id)
ORDER BY subject_id
