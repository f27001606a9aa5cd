-- An organization's gains over a window and over the equally long one before it. Always one row.
-- Followers are in levels.sql: independent of this one, so that both can be asked for at the same time.
--
-- org         organization
-- start, end  the window, both inclusive
-- deleted     subjects that are deleted in Postgres and may not be removed here yet
-- platform    instagram, tiktok, or empty for both
SELECT
    ifNull(sumIf(view_gain, date >= {start:Date}), 0) AS views,
    ifNull(sumIf(play_gain, date >= {start:Date}), 0) AS plays,
    ifNull(sumIf(like_gain, date >= {start:Date}), 0) AS likes,
    ifNull(sumIf(comment_gain, date >= {start:Date}), 0) AS comments,
    ifNull(sumIf(share_gain, date >= {start:Date}), 0) AS shares,
    ifNull(sumIf(view_gain, date < {start:Date}), 0) AS previous_views,
    ifNull(sumIf(play_gain, date < {start:Date}), 0) AS previous_plays,
    ifNull(sumIf(like_gain, date < {start:Date}), 0) AS previous_likes,
    ifNull(sumIf(comment_gain, date < {start:Date}), 0) AS previous_comments,
    ifNull(sumIf(share_gain, date < {start:Date}), 0) AS previous_shares
FROM account_daily FINAL
WHERE org_id = {org:UUID}
    AND date BETWEEN {start:Date} - ({end:Date} - {start:Date} + 1) AND {end:Date}
    AND subject_id NOT IN {deleted:Array(UInt64)}
    AND ({platform:String} = '' OR platform = {platform:String})
