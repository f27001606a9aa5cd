-- /accounts/top and /creators/top by new posts: posts of each account in a window and in the one before.
SELECT subject_id, countIf(posted_at >= {start:Date}) AS posts, countIf(posted_at < {start:Date}) AS posts_before
FROM videos FINAL
WHERE org_id = {org:UUID} AND posted_at >= {before:Date} AND posted_at < {end:Date} + 1 AND account_id IS NOT NULL
GROUP BY subject_id
ORDER BY posts DESC, subject_id
