-- /analytics/timeseries by week and platform, with the window before: gains, followers and how many subjects were observed.
SELECT
    toMonday(date) AS week, platform,
    sum(views), sum(plays), sum(likes), sum(comments), sum(shares), sum(followers), max(observed), max(as_of)
FROM
(
    SELECT
        date, platform, sum(view_gain) AS views, sum(play_gain) AS plays, sum(like_gain) AS likes,
        sum(comment_gain) AS comments, sum(share_gain) AS shares, sum(follower_gain + follower_base) AS followers,
        count() AS observed, max(observed_at) AS as_of
    FROM account_daily FINAL
    WHERE org_id = {org:UUID} AND date <= {end:Date}
    GROUP BY date, platform
)
GROUP BY week, platform
ORDER BY week
