-- /collections/{id}/overview: gains of some posts in a window and in the one before it.
SELECT
    sumIf(view_gain, date >= {start:Date}) AS views, sumIf(view_gain, date < {start:Date}) AS views_before,
    sumIf(play_gain, date >= {start:Date}) AS plays, sumIf(play_gain, date < {start:Date}) AS plays_before,
    sumIf(like_gain, date >= {start:Date}) AS likes, sumIf(like_gain, date < {start:Date}) AS likes_before,
    sumIf(comment_gain, date >= {start:Date}) AS comments, sumIf(comment_gain, date < {start:Date}) AS comments_before,
    sumIf(share_gain, date >= {start:Date}) AS shares, sumIf(share_gain, date < {start:Date}) AS shares_before
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {before:Date} AND {end:Date}
    AND (subject_id, video_id) IN (SELECT subject_id, video_id FROM bench_members WHERE collection = {collection:String})
