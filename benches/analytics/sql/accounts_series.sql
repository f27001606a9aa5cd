-- /accounts/timeseries: views per day of some accounts.
SELECT subject_id, date, view_gain, observed_at
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
