-- Gains in one counter over a window per video, without those of 0: the largest ones, or with a negative sign the smallest,
-- and all that equal the last of them.
-- All videos of an organization, on one platform or all, but those of deleted subjects whose history is not removed yet.
--
-- gain         column of the counter's gains
-- sign         1 or -1, a factor of the gains
-- least, most  bounds of the product, both inclusive
--
-- Conditions on removed subjects cost a millisecond even if there are none, and `first` and `last` are only bounds if there are.
SELECT video_id, {sign:Int64} * sum({gain:Identifier}) AS rank
FROM video_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND ({platform:String} = '' OR platform = {platform:String})
    AND (empty({removed:Array(UInt64)})
        OR subject_id NOT IN {removed:Array(UInt64)} AND subject_id BETWEEN {first:UInt64} AND {last:UInt64})
GROUP BY video_id
HAVING rank BETWEEN {least:Int64} AND {most:Int64} AND rank != 0
ORDER BY rank DESC
LIMIT {limit:UInt64} WITH TIES
SETTINGS max_threads = 1, group_by_two_level_threshold = 0, group_by_two_level_threshold_bytes = 0,
    local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
