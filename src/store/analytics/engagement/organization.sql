-- Gains in views, likes, comments and shares per subject observed in a window; null = never reported.
-- All subjects of an organization.
SELECT
    subject_id, sum(view_gain) AS views, sum(like_gain) AS likes, sum(comment_gain) AS comments,
    sum(share_gain) AS shares, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
GROUP BY subject_id
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
