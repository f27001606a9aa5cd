-- How what was deleted goes for good (store::erasure, docs/lifecycle.md).

-- A deleted organization is marked first, by which everything refuses it; its rows then go some at a time, and this one last.
alter table organizations add column deleted_at timestamptz;
create index organizations_deleted on organizations (deleted_at) where deleted_at is not null;

-- Organizations that are gone, by their ids alone: files that ClickHouse is given back may still hold their history.
create table erased_organizations (
    id uuid primary key,
    deleted_at timestamptz not null,
    -- when Postgres no longer had anything of it
    erased_at timestamptz not null default now()
);

-- When the outbox no longer held snapshots of the subject.
alter table removed_subjects add column erased_at timestamptz;
create index removed_subjects_to_erase on removed_subjects (organization_id) where erased_at is null and delivery is not null;

-- An organization that is gone is one change for the search indexes. It has no organization, and its id is that of the one
-- that is gone.
alter table search_changes drop constraint search_changes_entity_check;
alter table search_changes add constraint search_changes_entity_check
    check (entity in ('account', 'creator', 'video', 'organization')) not valid;

-- Captions and days of posts of a deleted organization go by themselves; keeping them until then would be work for nothing.
create or replace function remove_captions() returns trigger language plpgsql as $$
begin
    perform rebuild_caption_blocks(organization_id, array_agg(distinct internal_id / 16))
    from removed
    where description_key <> ''
        and exists (select from organizations where id = removed.organization_id and deleted_at is null)
    group by organization_id;
    return null;
end $$;

create or replace function remove_posts() returns trigger language plpgsql as $$
begin
    insert into post_days
    select organization_id, platform, (create_time at time zone 'UTC')::date, -count(*), false
    from removed
    where create_time is not null
        and exists (select from organizations where id = removed.organization_id and deleted_at is null)
    group by 1, 2, 3;
    return null;
end $$;
