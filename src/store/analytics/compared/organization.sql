-- Gains per subject in a window, and before it in the previous one, of subjects observed then; null = never reported.
-- All subjects of an organization.
SELECT
    subject_id, date >= {start:Date} AS is_current, sum(view_gain) AS views, sum(play_gain) AS plays,
    sum(like_gain) AS likes, sum(comment_gain) AS comments, sum(share_gain) AS shares,
    sum(follower_gain) AS followers, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {previous_start:Date} AND {end:Date}
GROUP BY subject_id, is_current
SETTINGS max_threads = 2, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
