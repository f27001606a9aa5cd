-- Leases refreshes of organizations in turn, the longest waiting first. Row comparisons leave the planner only the index of
-- refreshes.
with organizations_waiting as materialized (
    select o.id, row_number() over (order by o.id <= $6, o.id) as turn
    from (
        select distinct organization_id as id from scrape_targets
        where platform = $2 and refresh_requested_at is not null and enabled and ($7::text is null or kind = $7)
            and (lease_until is null or lease_until < now()) and id <> all($3)
    ) waiting
    join organizations o on o.id = waiting.id
    where o.deleted_at is null
    order by turn limit $5
), waiting as (
    select r.id, o.turn
    from organizations_waiting o cross join lateral (
        select id, refresh_requested_at from scrape_targets
        where (platform, organization_id, refresh_requested_at) >= ($2, o.id, '-infinity')
            and (platform, organization_id, refresh_requested_at) <= ($2, o.id, 'infinity')
            and refresh_requested_at is not null and enabled and ($7::text is null or kind = $7)
            and (lease_until is null or lease_until < now()) and id <> all($3)
        order by platform, organization_id, refresh_requested_at limit $5
        for update skip locked
    ) r
    order by row_number() over (partition by o.turn order by r.refresh_requested_at), o.turn
    limit $5
)
update scrape_targets t set lease_owner = $1, lease_until = now() + $4
from waiting left join accounts a on a.id = waiting.id
where t.id = waiting.id
returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, a.username, a.platform_id,
    waiting.turn
