-- /overview: gains of a window and of the one before it, and followers at the ends of both.
SELECT * FROM
(
    SELECT
        sumIf(view_gain, date >= {start:Date}) AS views, sumIf(view_gain, date < {start:Date}) AS views_before,
        sumIf(play_gain, date >= {start:Date}) AS plays, sumIf(play_gain, date < {start:Date}) AS plays_before,
        sumIf(like_gain, date >= {start:Date}) AS likes, sumIf(like_gain, date < {start:Date}) AS likes_before,
        sumIf(comment_gain, date >= {start:Date}) AS comments, sumIf(comment_gain, date < {start:Date}) AS comments_before,
        sumIf(share_gain, date >= {start:Date}) AS shares, sumIf(share_gain, date < {start:Date}) AS shares_before
    FROM account_daily FINAL
    WHERE org_id = {org:UUID} AND date BETWEEN {before:Date} AND {end:Date}
) AS gains,
(
    SELECT
        sum(follower_gain + follower_base) AS followers,
        sumIf(follower_gain + follower_base, date < {start:Date}) AS followers_before,
        max(observed_at) AS as_of
    FROM account_daily FINAL
    WHERE org_id = {org:UUID} AND date <= {end:Date}
) AS levels
