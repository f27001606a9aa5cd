-- Leases targets of organizations in turn. Only organizations with a passed wakeup are looked at, an index lookup each.
-- The direction is asc for the longest due first, desc for the shortest.
--
-- The lateral join keeps the planner from reversing the join, which would lose the order. Row comparisons and orders include
-- the organization: the planner assumes that every organization has as many targets as the largest, and would otherwise scan
-- all due targets for a small one's three.
with organizations_due as materialized (
    select o.id, row_number() over () as turn
    from (
        select o.id
        from (
            select distinct organization_id as id from scrape_wakeups
            where platform = $2 and wake_at <= $3 and ($8::text is null or kind = $8)
        ) awake
        join organizations o on o.id = awake.id
        where o.deleted_at is null
        order by o.id <= $7, o.id
    ) o
    cross join lateral (
        select from scrape_targets
        where (organization_id, next_attempt_at) >= (o.id, '-infinity')
            and (organization_id, next_attempt_at) <= (o.id, $3)
            and enabled and platform = $2 and next_attempt_at <= $3 and ($8::text is null or kind = $8)
            and (lease_until is null or lease_until < now()) and id <> all($4)
        order by organization_id, next_attempt_at limit 1
    ) has_due
    limit $6
), due as (
    select d.id, o.turn
    from organizations_due o cross join lateral (
        select id, next_attempt_at from scrape_targets
        where (organization_id, next_attempt_at) >= (o.id, '-infinity')
            and (organization_id, next_attempt_at) <= (o.id, $3)
            and enabled and platform = $2 and next_attempt_at <= $3 and ($8::text is null or kind = $8)
            and (lease_until is null or lease_until < now()) and id <> all($4)
        order by organization_id {direction}, next_attempt_at {direction} limit $6
        for update skip locked
    ) d
    order by row_number() over (partition by o.turn order by d.next_attempt_at {direction}), o.turn
    limit $6
)
update scrape_targets t set lease_owner = $1, lease_until = now() + $5
from due left join accounts a on a.id = due.id
where t.id = due.id
returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, a.username, a.platform_id, due.turn
