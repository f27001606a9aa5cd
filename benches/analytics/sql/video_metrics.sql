-- /videos/metrics, /account-videos/metrics: gains of some videos, except that starting from zero is ignored.
SELECT
    video_id,
    argMaxIf(view_count, date, view_count IS NOT NULL) - if(countIf(date < {start:Date} AND view_count IS NOT NULL) > 0,
        argMaxIf(view_count, date, date < {start:Date} AND view_count IS NOT NULL), argMinIf(view_count, date, view_count IS NOT NULL)) AS views,
    argMaxIf(play_count, date, play_count IS NOT NULL) - if(countIf(date < {start:Date} AND play_count IS NOT NULL) > 0,
        argMaxIf(play_count, date, date < {start:Date} AND play_count IS NOT NULL), argMinIf(play_count, date, play_count IS NOT NULL)) AS plays,
    argMaxIf(like_count, date, like_count IS NOT NULL) - if(countIf(date < {start:Date} AND like_count IS NOT NULL) > 0,
        argMaxIf(like_count, date, date < {start:Date} AND like_count IS NOT NULL), argMinIf(like_count, date, like_count IS NOT NULL)) AS likes,
    argMaxIf(comment_count, date, comment_count IS NOT NULL) - if(countIf(date < {start:Date} AND comment_count IS NOT NULL) > 0,
        argMaxIf(comment_count, date, date < {start:Date} AND comment_count IS NOT NULL), argMinIf(comment_count, date, comment_count IS NOT NULL)) AS comments,
    argMaxIf(share_count, date, share_count IS NOT NULL) - if(countIf(date < {start:Date} AND share_count IS NOT NULL) > 0,
        argMaxIf(share_count, date, date < {start:Date} AND share_count IS NOT NULL), argMinIf(share_count, date, share_count IS NOT NULL)) AS shares,
    max(observed_at) AS as_of
FROM video_snapshots FINAL
WHERE org_id = {org:UUID} AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}
    AND date BETWEEN {since:Date} AND {end:Date}
GROUP BY video_id
