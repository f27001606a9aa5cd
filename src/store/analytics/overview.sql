-- An organization's gains over a window and over the equally long one before it, and its followers at both ends.
-- Always one row.
--
-- org         organization
-- start, end  the window, both inclusive
-- deleted     subjects that are deleted in Postgres and may not be removed here yet
-- platform    instagram, tiktok, or empty for both
WITH
    {start:Date} - ({end:Date} - {start:Date} + 1) AS previous_start
SELECT
    ifNull(sumIf(view_gain, date >= {start:Date}), 0) AS views,
    ifNull(sumIf(view_gain, date >= previous_start AND date < {start:Date}), 0) AS previous_views,
    ifNull(sumIf(play_gain, date >= {start:Date}), 0) AS plays,
    ifNull(sumIf(play_gain, date >= previous_start AND date < {start:Date}), 0) AS previous_plays,
    ifNull(sumIf(like_gain, date >= {start:Date}), 0) AS likes,
    ifNull(sumIf(like_gain, date >= previous_start AND date < {start:Date}), 0) AS previous_likes,
    ifNull(sumIf(comment_gain, date >= {start:Date}), 0) AS comments,
    ifNull(sumIf(comment_gain, date >= previous_start AND date < {start:Date}), 0) AS previous_comments,
    ifNull(sumIf(share_gain, date >= {start:Date}), 0) AS shares,
    ifNull(sumIf(share_gain, date >= previous_start AND date < {start:Date}), 0) AS previous_shares,
    ifNull(sumIf(saved_gain, date >= {start:Date}), 0) AS saves,
    ifNull(sumIf(saved_gain, date >= previous_start AND date < {start:Date}), 0) AS previous_saves,
    sum(follower_gain + follower_base) AS followers,
    sumIf(follower_gain + follower_base, date < {start:Date}) AS previous_followers,
    maxOrNull(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date <= {end:Date}
    AND subject_id NOT IN {deleted:Array(UInt64)}
    AND ({platform:String} = '' OR platform = {platform:String})
