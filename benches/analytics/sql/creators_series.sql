-- /creators/timeseries: views per day of the accounts of some creators.
SELECT
    transform(subject_id, {subjects:Array(UInt64)}, {creators:Array(UInt64)}) AS creator, date,
    sum(view_gain) AS views, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
GROUP BY creator, date
