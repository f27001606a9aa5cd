-- Leases accounts of other organizations that share the response for a leased one, longest due first.
update scrape_targets t set lease_owner = $1, lease_until = now() + $5
from (
    select same.id, leased.username, leased.platform_id
    from (select distinct username, platform_id from unnest($6::text[], $7::text[]) as a(username, platform_id)) leased
    cross join lateral (
        select id
        from (
            select a.id as account_id from accounts a
            where a.platform = $2 and a.username = leased.username
                and a.platform_id is not distinct from leased.platform_id
        ) account
        join scrape_targets on id = account_id
        where (next_attempt_at <= $3 or refresh_requested_at is not null) and enabled and platform = $2
            and (lease_until is null or lease_until < now()) and id <> all($4)
        order by next_attempt_at limit $8
        for update of scrape_targets skip locked
    ) same
) due
where t.id = due.id
returning t.id, t.organization_id, t.platform, t.kind, t.failures, t.not_found_runs, due.username, due.platform_id
