-- Gains per day over a window, only days with an observation, in no order; null where nothing is known.
--
-- org         organization
-- start, end  the window, both inclusive
-- whole_org   true = every subject of the organization, false = only `subjects`
-- subjects    accounts (their internal ids) and individually tracked videos (their subject ids)
-- deleted     subjects that are deleted in Postgres and may not be removed here yet
-- first, last only subjects from first to last: with more `deleted` than a parameter may hold, part after part is asked for
-- platform    instagram, tiktok, or empty for both
SELECT
    date,
    sum(view_gain) AS views,
    sum(play_gain) AS plays,
    sum(like_gain) AS likes,
    sum(comment_gain) AS comments,
    sum(share_gain) AS shares,
    max(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date BETWEEN {start:Date} AND {end:Date}
    AND ({whole_org:Bool} OR subject_id IN {subjects:Array(UInt64)})
    AND subject_id NOT IN {deleted:Array(UInt64)}
    AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    AND ({platform:String} = '' OR platform = {platform:String})
GROUP BY date
SETTINGS enable_analyzer = 0, max_threads = 1,
    local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
