-- Ends an attempt, counts it, and adds a wakeup if the next one is earlier: a refresh may come long before the target is due.
-- The next one follows after the record's interval as it is now, not as it was when the attempt began, or after $5 if that is
-- shorter: up to 5 % earlier, so that a daily target is read every day and not all are due at once.
-- An account is reported as failing after the third failure in a row of which the platform does not say that it is not found.
with before as (
    select id, next_attempt_at, failures, last_failure, is_failure_reported from scrape_targets
    where organization_id = $1 and id = $2 and lease_owner = $3
    for update
), finished as (
    update scrape_targets t set last_attempt_at = $4, last_error = $6, failures = $7,
        next_attempt_at = $4 + (1 - random() / 20) * least($5, make_interval(hours => case t.kind
            when 'account' then (select scrape_interval_hours from accounts where organization_id = $1 and id = $2)
            else (select scrape_interval_hours from videos where organization_id = $1 and id = $2) end)),
        failing_since = case when $7 > 0 then coalesce(case when before.failures > 0 then t.failing_since end, $4) end,
        is_failure_reported = $7 > 0 and (t.is_failure_reported
            or (t.kind = 'account' and $11 <> 'not_found' and $7 - $8 >= 3)),
        not_found_runs = $8, last_failure = $11, lease_owner = null, lease_until = null, refresh_requested_at = null,
        weekly_read_at = case when $9 then $4 else weekly_read_at end,
        monthly_read_at = case when $10 then $4 else monthly_read_at end
    from before where t.id = before.id
    returning t.platform, t.kind, t.next_attempt_at, t.next_attempt_at < before.next_attempt_at as is_earlier,
        (t.failures > 0, t.last_failure) is distinct from (before.failures > 0, before.last_failure) as failure_changes,
        nullif(t.is_failure_reported, before.is_failure_reported) as reports_failure
), woken as (
    insert into scrape_wakeups (organization_id, platform, kind, wake_at)
    select $1, platform, kind, next_attempt_at from finished where is_earlier
), counted as (
    insert into ended_attempts (organization_id, minute, succeeded, failed, is_sum)
    select $1, $12, ($11 is null)::integer, ($11 is not null)::integer, false from finished
)
select clock_timestamp(), failure_changes, reports_failure from finished
