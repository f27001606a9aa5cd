-- /videos/{id}/analytics: gains of one video on days with a snapshot, over the last known value.
SELECT *
FROM
(
    SELECT
        date,
        view_count - anyLast(view_count) OVER earlier AS views,
        like_count - anyLast(like_count) OVER earlier AS likes,
        comment_count - anyLast(comment_count) OVER earlier AS comments,
        share_count - anyLast(share_count) OVER earlier AS shares,
        saved_count - anyLast(saved_count) OVER earlier AS saveds,
        play_count - anyLast(play_count) OVER earlier AS plays,
        ig_play_count - anyLast(ig_play_count) OVER earlier AS ig_plays,
        fb_play_count - anyLast(fb_play_count) OVER earlier AS fb_plays,
        fb_like_count - anyLast(fb_like_count) OVER earlier AS fb_likes,
        observed_at
    FROM video_snapshots FINAL
    WHERE org_id = {org:UUID} AND subject_id = {subject:UInt64} AND video_id = {video:UInt64}
        AND date BETWEEN {since:Date} AND {end:Date}
    WINDOW earlier AS (ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE date >= {start:Date}
ORDER BY date
