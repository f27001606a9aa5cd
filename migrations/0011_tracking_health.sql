-- GET /tracking: numbers of targets by status, and ended attempts, without a look at every account
-- (store::tracking::target_counts and ended_attempts).

-- The status of a target depends on its record and its creator as well. This transaction locks the tables in the order in
-- which others do: creators, accounts, videos, targets, organizations.
create function touch_target() returns trigger language plpgsql as $$
begin
    update scrape_targets set status = status where id = new.id;
    return null;
end $$;

create function touch_targets_of_creator() returns trigger language plpgsql as $$
begin
    update scrape_targets set status = status where id in (select id from accounts where creator_id = new.id);
    return null;
end $$;

create trigger touch_targets_of_creator after update of is_active on creators
    for each row when (old.is_active <> new.is_active) execute function touch_targets_of_creator();
create trigger touch_target after update of is_unavailable, is_active, creator_id, last_scrape_time on accounts
    for each row when (
        (old.is_unavailable, old.is_active, old.creator_id, old.last_scrape_time is null)
        is distinct from (new.is_unavailable, new.is_active, new.creator_id, new.last_scrape_time is null)
    ) execute function touch_target();
create trigger touch_target
    after update of is_unavailable, is_active, external_id, shortcode, last_scrape_time on videos
    for each row when (new.is_tracked and
        (old.is_unavailable, old.is_active, old.external_id is null, old.shortcode is null, old.last_scrape_time is null)
        is distinct from
        (new.is_unavailable, new.is_active, new.external_id is null, new.shortcode is null, new.last_scrape_time is null)
    ) execute function touch_target();

alter table scrape_targets
    -- Why the last attempt failed (model::tracking::FailureReason); null after a success.
    add column last_failure text,
    -- What a source must be able to look up: username, id, shortcode or id_or_shortcode (model::readable::FoundBy).
    -- Without such a source the target is unsupported, whatever its status here.
    add column found_by text not null default 'username',
    -- model::tracking::TrackingStatus. Null: not counted yet, because the target is older than the triggers;
    -- housekeeping sets it.
    add column status text;

-- Sets `status` and `found_by`. The target is locked by then, and the records are read as they are now: of concurrent
-- changes of a record, its creator and its target, the last one sees the others.
create function set_target_status() returns trigger language plpgsql as $$
declare
    unavailable boolean;
    active boolean;
    creator_active boolean := true;
    scraped boolean;
    lookup text := 'username';
begin
    if new.kind = 'account' then
        select a.is_unavailable, a.is_active, coalesce(c.is_active, true), a.last_scrape_time is not null
        into unavailable, active, creator_active, scraped
        from accounts a left join creators c on c.id = a.creator_id where a.id = new.id;
    else
        select v.is_unavailable, v.is_active, v.last_scrape_time is not null,
            case when v.shortcode is null then 'id' when v.external_id is null then 'shortcode'
                 else 'id_or_shortcode' end
        into unavailable, active, scraped, lookup
        from videos v where v.id = new.id;
    end if;
    if found then
        new.found_by := lookup;
        new.status := case when unavailable then 'unavailable' when not active then 'paused'
            when not creator_active then 'paused_by_creator' when new.failures > 0 then 'failing'
            when not scraped then 'pending' else 'active' end;
    end if;
    return new;
end $$;

create trigger set_status_of_new_target before insert on scrape_targets
    for each row execute function set_target_status();
create trigger set_target_status before update of id, status on scrape_targets
    for each row execute function set_target_status();
create trigger set_status_after_attempt before update of failures on scrape_targets
    for each row when ((old.failures > 0) <> (new.failures > 0)) execute function set_target_status();

-- Numbers of targets by status. A change appends a row (is_sum = false); housekeeping adds such rows to their sum. A number
-- is always the sum over all rows. Writers never wait for each other here.
create table target_counts (
    organization_id uuid not null references organizations on delete cascade,
    platform text not null,
    found_by text not null,
    status text not null,
    -- of failing targets, else empty
    failure text not null,
    targets bigint not null,
    is_sum boolean not null
);
create index target_counts_organization on target_counts (organization_id);
-- Housekeeping: the sums, and the changes that are not in them yet.
create unique index target_counts_sums on target_counts (organization_id, platform, found_by, status, failure)
    where is_sum;
create index target_counts_changes on target_counts (organization_id) where not is_sum;

create function failure_to_count(status text, last_failure text) returns text language sql immutable as $$
    select case when status = 'failing' then coalesce(last_failure, 'internal') else '' end
$$;

create function count_added_targets() returns trigger language plpgsql as $$
begin
    insert into target_counts
    select organization_id, platform, found_by, status, failure_to_count(status, last_failure), count(*), false
    from added where status is not null group by 1, 2, 3, 4, 5;
    return null;
end $$;

create function count_changed_target() returns trigger language plpgsql as $$
begin
    insert into target_counts
    select t.organization_id, t.platform, t.found_by, t.status, t.failure, t.targets, false
    from (values
        (old.organization_id, old.platform, old.found_by, old.status, failure_to_count(old.status, old.last_failure), -1),
        (new.organization_id, new.platform, new.found_by, new.status, failure_to_count(new.status, new.last_failure), 1)
    ) as t (organization_id, platform, found_by, status, failure, targets)
    where t.status is not null;
    return null;
end $$;

-- The deletion of an organization deletes its counts itself.
create function count_removed_targets() returns trigger language plpgsql as $$
begin
    insert into target_counts
    select organization_id, platform, found_by, status, failure_to_count(status, last_failure), -count(*), false
    from removed
    where status is not null
        and exists (select from organizations where id = removed.organization_id and deleted_at is null)
    group by 1, 2, 3, 4, 5;
    return null;
end $$;

create trigger count_added_targets after insert on scrape_targets
    referencing new table as added for each statement execute function count_added_targets();
create trigger count_changed_target after update on scrape_targets
    for each row when (
        (old.found_by, old.status, old.last_failure) is distinct from (new.found_by, new.status, new.last_failure)
    ) execute function count_changed_target();
create trigger count_removed_targets after delete on scrape_targets
    referencing old table as removed for each statement execute function count_removed_targets();

-- Attempts of the last 24 hours, per minute in which they ended. An attempt appends a row (is_sum = false); housekeeping
-- adds such rows to the sum of their minute, and deletes old sums. No foreign key: a scrape should not lock its
-- organization before its commit does. The deletion of an organization deletes its rows.
create table ended_attempts (
    organization_id uuid not null,
    -- by the service's clock
    minute timestamptz not null,
    succeeded bigint not null,
    failed bigint not null,
    is_sum boolean not null
);
-- GET /tracking adds up those of an organization.
create index ended_attempts_of_organization on ended_attempts (organization_id, minute);
-- Housekeeping: the sums, the oldest first, and the attempts that are not in them yet.
create unique index ended_attempts_sums on ended_attempts (minute, organization_id) where is_sum;
create index ended_attempts_new on ended_attempts (minute) where not is_sum;
