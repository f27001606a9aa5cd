-- Tables that triggers on videos maintain, as a database maintains indexes: no other code writes records to them.
-- Writers never wait for each other's locks here.

-- Captions, sixteen videos to a row, for `q` on lists of videos (docs/paging.md). A search reads a tenth of the pages that
-- the records take. It finds any text in any script, however short, and costs an insert little; an index of trigrams does
-- neither.
--
-- Each transaction inserts rows of its own for new videos. A changed or deleted caption rebuilds its block. Concurrent
-- rebuilds may leave an outdated caption behind until the next one: readers compare with the record.
create table caption_blocks (
    organization_id uuid not null references organizations on delete cascade,
    -- internal_id / 16 of its videos
    block bigint not null,
    -- internal ids, in the order of the captions
    videos bigint[] not null,
    -- description_key of each, separated by A: folded text has no upper-case letters
    captions text not null collate "C"
) with (toast_tuple_target = 8160);
-- Uncompressed, because every search reads them.
alter table caption_blocks alter column captions set storage external;
create index caption_blocks_by_block on caption_blocks (organization_id, block);

create function add_captions() returns trigger language plpgsql as $$
begin
    insert into caption_blocks
    select organization_id, internal_id / 16, array_agg(internal_id order by internal_id),
        string_agg(description_key, 'A' order by internal_id)
    from added where description_key <> '' group by 1, 2;
    return null;
end $$;

-- Rows of a block that another transaction has locked are skipped, so that scrapes of different accounts neither wait nor
-- deadlock.
create function rebuild_caption_blocks(organization uuid, stale bigint[]) returns void language plpgsql as $$
begin
    delete from caption_blocks where ctid = any(array(
        select ctid from caption_blocks where organization_id = organization and block = any(stale)
        for update skip locked
    ));
    insert into caption_blocks
    select organization, rebuilt.block, array_agg(internal_id order by internal_id),
        string_agg(description_key, 'A' order by internal_id)
    from unnest(stale) as rebuilt(block)
    join videos on internal_id between rebuilt.block * 16 and rebuilt.block * 16 + 15
    where organization_id = organization and description_key <> ''
    group by rebuilt.block;
end $$;

create function change_caption() returns trigger language plpgsql as $$
begin
    perform rebuild_caption_blocks(new.organization_id, array[new.internal_id / 16]);
    return null;
end $$;

-- The deletion of an organization deletes its blocks itself.
create function remove_captions() returns trigger language plpgsql as $$
begin
    perform rebuild_caption_blocks(organization_id, array_agg(distinct internal_id / 16))
    from removed
    where description_key <> ''
        and exists (select from organizations where id = removed.organization_id and deleted_at is null)
    group by organization_id;
    return null;
end $$;

create trigger add_captions after insert on videos
    referencing new table as added for each statement execute function add_captions();
create trigger change_caption after update of description_key on videos
    for each row when (old.description_key is distinct from new.description_key) execute function change_caption();
create trigger remove_captions after delete on videos
    referencing old table as removed for each statement execute function remove_captions();

-- Posts per UTC day, so that GET /overview need not count videos. A change appends a row (is_sum = false); housekeeping adds
-- such rows to the sum of their day. The count of a day is always the sum over all of its rows.
create table post_days (
    organization_id uuid not null references organizations on delete cascade,
    platform text not null,
    day date not null,
    posts bigint not null,
    is_sum boolean not null
);
-- GET /overview adds up the days of a window.
create index post_days_by_day on post_days (organization_id, day, platform) include (posts);
-- Housekeeping: the row of a day's sum, and the changes that are not in it yet.
create unique index post_days_sums on post_days (organization_id, day, platform) where is_sum;
create index post_days_changes on post_days (organization_id) where not is_sum;

create function add_posts() returns trigger language plpgsql as $$
begin
    insert into post_days
    select organization_id, platform, (create_time at time zone 'UTC')::date, count(*), false
    from added where create_time is not null group by 1, 2, 3;
    return null;
end $$;

create function move_post() returns trigger language plpgsql as $$
begin
    insert into post_days
    select new.organization_id, new.platform, (posted at time zone 'UTC')::date, posts, false
    from (values (old.create_time, -1), (new.create_time, 1)) as change (posted, posts) where posted is not null;
    return null;
end $$;

-- The deletion of an organization deletes its days itself.
create function remove_posts() returns trigger language plpgsql as $$
begin
    insert into post_days
    select organization_id, platform, (create_time at time zone 'UTC')::date, -count(*), false
    from removed
    where create_time is not null
        and exists (select from organizations where id = removed.organization_id and deleted_at is null)
    group by 1, 2, 3;
    return null;
end $$;

create trigger add_posts after insert on videos
    referencing new table as added for each statement execute function add_posts();
create trigger move_post after update of create_time on videos
    for each row when (old.create_time is distinct from new.create_time) execute function move_post();
create trigger remove_posts after delete on videos
    referencing old table as removed for each statement execute function remove_posts();
