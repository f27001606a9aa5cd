-- Fewer indexes and cheaper checks of new videos (docs/measurements/import.md).
--
-- Not concurrently, and constraints are dropped: before the first release no other version runs beside a migration.
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion, ban-drop-constraint

-- GET /search ranks by size: accounts_by_followers and videos_by_views, read backwards.
drop index accounts_by_size;
drop index videos_by_size;

-- The subject of a video on an account is the account's, and videos_of_account finds it. Partial, so that discovered videos,
-- by far the most, do not pay for it.
drop index videos_of_subject;
create index videos_of_own_subject on videos (subject_id) where account_id is null;

-- Triggers that do what foreign keys to accounts and organizations did, for a whole statement: those of a foreign key look up
-- and lock the account and the organization once for each video, which took a quarter of the time of an insert.
alter table videos drop constraint videos_account_id_fkey;
alter table videos drop constraint videos_organization_id_fkey;

-- Locks the parents as a foreign key does: a concurrent deletion waits, or is seen.
create function check_parents_of_videos() returns trigger language plpgsql as $$
declare
    parents uuid[] := array(select distinct account_id from added where account_id is not null);
    found_parents bigint;
begin
    perform from accounts where id = any(parents) order by id for key share;
    get diagnostics found_parents = row_count;
    if found_parents < cardinality(parents) then
        raise foreign_key_violation using message = 'a video refers to an account that does not exist',
            table = 'videos', constraint = 'videos_account_id_fkey';
    end if;
    parents := array(select distinct organization_id from added);
    perform from organizations where id = any(parents) order by id for key share;
    get diagnostics found_parents = row_count;
    if found_parents < cardinality(parents) then
        raise foreign_key_violation using message = 'a video refers to an organization that does not exist',
            table = 'videos', constraint = 'videos_organization_id_fkey';
    end if;
    return null;
end $$;

create function check_new_account_of_video() returns trigger language plpgsql as $$
begin
    perform from accounts where id = new.account_id for key share;
    if not found then
        raise foreign_key_violation using message = 'a video refers to an account that does not exist',
            table = 'videos', constraint = 'videos_account_id_fkey';
    end if;
    return null;
end $$;

create function remove_videos_of_accounts() returns trigger language plpgsql as $$
begin
    delete from videos where account_id = any(array(select id from removed));
    return null;
end $$;

create function remove_videos_of_organizations() returns trigger language plpgsql as $$
begin
    delete from videos where organization_id = any(array(select id from removed));
    return null;
end $$;

create trigger check_parents_of_videos after insert on videos
    referencing new table as added for each statement execute function check_parents_of_videos();
create trigger check_new_account_of_video after update of account_id on videos
    for each row when (new.account_id is not null and old.account_id is distinct from new.account_id)
    execute function check_new_account_of_video();
create trigger remove_videos_of_accounts after delete on accounts
    referencing old table as removed for each statement execute function remove_videos_of_accounts();
create trigger remove_videos_of_organizations after delete on organizations
    referencing old table as removed for each statement execute function remove_videos_of_organizations();
