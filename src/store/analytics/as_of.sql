-- The latest observation of the subjects on or before the window's end; no row without any.
--
-- org         organization
-- end         the window's last day
-- whole_org   true = every subject of the organization, false = only `subjects`
-- subjects    accounts (their internal ids) and individually tracked videos (their subject ids)
-- deleted     subjects that are deleted in Postgres and may not be removed here yet
-- platform    instagram, tiktok, or empty for both
SELECT maxOrNull(observed_at) AS as_of
FROM account_daily FINAL
WHERE org_id = {org:UUID} AND date <= {end:Date}
    AND ({whole_org:Bool} OR subject_id IN {subjects:Array(UInt64)})
    AND subject_id NOT IN {deleted:Array(UInt64)}
    AND ({platform:String} = '' OR platform = {platform:String})
