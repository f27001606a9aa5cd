-- Gains over a window of some videos, of subjects within bounds, in no order. Videos without a gain are absent.
SELECT
    video_id, sum(view_gain) AS views, sum(play_gain) AS plays, sum(like_gain) AS likes, sum(comment_gain) AS comments,
    sum(share_gain) AS shares
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND subject_id BETWEEN {first:UInt64} AND {last:UInt64} AND video_id IN {videos:Array(UInt64)}
GROUP BY video_id
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
