-- /accounts/timeseries by followers: followers of some accounts before a window, and their changes in it.
SELECT
    subject_id, greatest(date, {start:Date}) AS day,
    sum(follower_gain + follower_base) AS change, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date <= {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY subject_id, day
