-- /creators/top: gains per account; Postgres maps accounts to creators.
SELECT
    subject_id, sum(view_gain) AS views, sum(like_gain + comment_gain + share_gain) AS engagement,
    max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
GROUP BY subject_id
