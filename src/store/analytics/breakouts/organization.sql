-- Videos with known views at an age.
-- All videos of an organization, on one platform or all, but those of deleted subjects whose history is not removed yet.
--
-- views       column of the views
-- age         in days
-- start, end  days on which the videos were posted, both inclusive
SELECT
    subject_id, id, CAST(media_type, 'Nullable(String)') AS post_type, toUnixTimestamp64Micro(posted_at) AS posted_micros,
    assumeNotNull({views:Identifier}) AS views, has(interpolated, {age:UInt8}) AS is_interpolated
FROM video_ages FINAL
WHERE org_id = {org:UUID} AND toDate(posted_at) BETWEEN {start:Date} AND {end:Date} AND {views:Identifier} IS NOT NULL
    AND ({platform:String} = '' OR platform = {platform:String})
    AND subject_id NOT IN {removed:Array(UInt64)} AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
SETTINGS max_threads = 1, local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
