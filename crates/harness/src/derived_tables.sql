-- What commits derive from the records of an organization, for tests that write records with SQL. Written apart from the program,
-- so that tests can compare both.
update scrape_targets t set found_by = r.found_by, status = s.status,
    counted_failure = case when s.status = 'failing' then coalesce(t.last_failure, 'internal') end
from (
    select a.id, 'username' as found_by, a.is_unavailable, a.is_active, coalesce(c.is_active, true) as is_creator_active,
        a.last_scrape_time is null as is_pending
    from accounts a left join creators c on c.id = a.creator_id
    where a.organization_id = $1
    union all
    select id, case when shortcode is null then 'id' when external_id is null then 'shortcode' else 'id_or_shortcode' end,
        is_unavailable, is_active, true, last_scrape_time is null
    from videos
    where organization_id = $1 and is_tracked
) r, lateral (
    select case when r.is_unavailable then 'unavailable' when not r.is_active then 'paused'
        when not r.is_creator_active then 'paused_by_creator' when (select failures > 0 from scrape_targets where id = r.id)
        then 'failing' when r.is_pending then 'pending' else 'active' end as status
) s
where t.id = r.id;

delete from target_counts where organization_id = $1;

insert into target_counts (organization_id, platform, found_by, status, failure, targets, is_sum)
select $1, platform, found_by, status, coalesce(counted_failure, ''), count(*), false
from scrape_targets where organization_id = $1 and status is not null group by 2, 3, 4, 5;

insert into scrape_wakeups (organization_id, platform, kind, wake_at)
select $1, platform, kind, min(next_attempt_at) from scrape_targets where organization_id = $1 and enabled group by 2, 3;

delete from caption_blocks where organization_id = $1;

insert into caption_blocks (organization_id, block, videos, captions)
select $1, internal_id / 16, array_agg(internal_id order by internal_id),
    string_agg(description_key, 'A' order by internal_id)
from videos where organization_id = $1 and description_key <> '' group by 2;

delete from post_days where organization_id = $1;

insert into post_days (organization_id, platform, day, posts, is_sum)
select $1, platform, (create_time at time zone 'UTC')::date, count(*), false
from videos where organization_id = $1 and create_time is not null group by 2, 3;
