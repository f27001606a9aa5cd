-- Gains and the change of followers, per subject and UTC day with an observation, in no order; null = never reported.
-- Some subjects.
SELECT
    date, subject_id, view_gain AS views, play_gain AS plays, like_gain AS likes, comment_gain AS comments,
    share_gain AS shares, follower_gain + follower_base AS follower_change
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date} AND subject_id IN {subjects:Array(UInt64)}
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
