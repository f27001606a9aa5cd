-- /creators/{id}/analytics/timeseries: gains per day of the accounts of one creator.
SELECT
    date, sum(view_gain) AS views, sum(like_gain + comment_gain + share_gain) AS engagement, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY date
ORDER BY date
