-- Followers at the end of a window and on the eve of it, null before their first observation, and the latest observation
-- by the end of the window, null without any. Always one row.
--
-- org         organization
-- start, end  the window, both inclusive
-- whole_org   true = every subject of the organization, false = only `subjects`
-- subjects    accounts (their internal ids) and individually tracked videos (their subject ids)
-- deleted     subjects that are deleted in Postgres and may not be removed here yet
-- first, last only subjects from first to last: with more `deleted` than a parameter may hold, part after part is asked for
-- platform    instagram, tiktok, or empty for both
SELECT
    sum(follower_gain + follower_base) AS followers,
    sumIf(follower_gain + follower_base, date < {start:Date}) AS previous_followers,
    maxOrNull(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date <= {end:Date}
    AND ({whole_org:Bool} OR subject_id IN {subjects:Array(UInt64)})
    AND subject_id NOT IN {deleted:Array(UInt64)}
    AND subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    AND ({platform:String} = '' OR platform = {platform:String})
SETTINGS enable_analyzer = 0, max_threads = 1,
    local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1
