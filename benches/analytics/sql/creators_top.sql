-- /creators/top: gains of each account in a window and in the one before; Postgres maps accounts to creators.
SELECT
    subject_id,
    sumIf(view_gain, date >= {start:Date}) AS views, sumIf(view_gain, date < {start:Date}) AS views_before,
    sumIf(play_gain, date >= {start:Date}) AS plays, sumIf(play_gain, date < {start:Date}) AS plays_before,
    sumIf(like_gain, date >= {start:Date}) AS likes, sumIf(like_gain, date < {start:Date}) AS likes_before,
    sumIf(comment_gain, date >= {start:Date}) AS comments, sumIf(comment_gain, date < {start:Date}) AS comments_before,
    sumIf(share_gain, date >= {start:Date}) AS shares, sumIf(share_gain, date < {start:Date}) AS shares_before,
    sumIf(follower_gain, date >= {start:Date}) AS followers, sumIf(follower_gain, date < {start:Date}) AS followers_before,
    max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {before:Date} AND {end:Date}
GROUP BY subject_id
