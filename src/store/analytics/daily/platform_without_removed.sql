-- Gains per UTC day with an observation, in no order; null = never reported.
-- All subjects of an organization on one platform except deleted ones whose history is not removed yet.
SELECT
    date, sum(view_gain) AS views, sum(play_gain) AS plays, sum(like_gain) AS likes, sum(comment_gain) AS comments,
    sum(share_gain) AS shares, max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND subject_id NOT IN {removed:Array(UInt64)} AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    AND platform = {platform:String}
GROUP BY date
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
