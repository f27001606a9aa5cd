-- What the lists of the API are read by: every sort of every list is one range of one index, in both directions,
-- over the organization and, where a list can be narrowed to it, over one account. docs/paging.md says what each costs.

-- GET /accounts narrowed to a category, which may be any of thousands. (One creator's accounts: accounts_by_creator.)
create index accounts_by_category on accounts (organization_id, category) where category is not null;

-- GET /accounts/{account_id}/videos, and GET /account-videos and /videos narrowed to an account; by create_time it is
-- videos_of_account.
create index videos_of_account_by_views on videos (account_id, view_count, id) where account_id is not null;
create index videos_of_account_by_likes on videos (account_id, like_count, id) where account_id is not null;
create index videos_of_account_by_plays on videos (account_id, play_count, id) where account_id is not null;

-- GET /videos: they cost a discovered video, of which there are many more, nothing.
create index videos_tracked_by_create_time on videos (organization_id, create_time desc nulls last, id desc)
    where is_tracked;
create index videos_tracked_by_views on videos (organization_id, view_count, id) where is_tracked;
create index videos_tracked_by_likes on videos (organization_id, like_count, id) where is_tracked;
create index videos_tracked_by_plays on videos (organization_id, play_count, id) where is_tracked;

-- `q` over the videos of an organization, where the page is not filled by those that its sort begins with: the captions
-- alone, sixteen to a row, so that a search reads a tenth of what the records are and compares a row at once. Any
-- caption is found, whatever its script and however short the text, which an index of grams does not do for a price
-- that an import could pay. An upper-case letter never stands in a folded text, so A separates them.
--
-- The database keeps it, as it does an index: every caption stands here, where its video's internal id puts it. Units
-- of work add rows of their own and so never wait for each other; what changes or goes makes its rows anew. Two at
-- once may leave an older caption beside the new one until then: a reader asks the record whether it still holds.
create table caption_blocks (
    organization_id uuid not null references organizations on delete cascade,
    block bigint not null,
    videos bigint[] not null,
    captions text not null collate "C"
) with (toast_tuple_target = 8160);
alter table caption_blocks alter column captions set storage external;
create index caption_blocks_place on caption_blocks (organization_id, block);

create function add_captions() returns trigger language plpgsql as $$
begin
    insert into caption_blocks
    select organization_id, internal_id / 16, array_agg(internal_id order by internal_id),
        string_agg(description_key, 'A' order by internal_id)
    from added where description_key <> '' group by 1, 2;
    return null;
end $$;

create function rebuild_caption_blocks(organization uuid, stale bigint[]) returns void language plpgsql as $$
begin
    delete from caption_blocks where organization_id = organization and block = any(stale);
    insert into caption_blocks
    select organization, place.block, array_agg(internal_id order by internal_id),
        string_agg(description_key, 'A' order by internal_id)
    from unnest(stale) as place(block)
    join videos on internal_id between place.block * 16 and place.block * 16 + 15
    where organization_id = organization and description_key <> ''
    group by place.block;
end $$;

create function change_caption() returns trigger language plpgsql as $$
begin
    perform rebuild_caption_blocks(new.organization_id, array[new.internal_id / 16]);
    return null;
end $$;

create function remove_captions() returns trigger language plpgsql as $$
begin
    perform rebuild_caption_blocks(organization_id, array_agg(distinct internal_id / 16))
    from removed where description_key <> '' group by organization_id;
    return null;
end $$;

create trigger add_captions after insert on videos
    referencing new table as added for each statement execute function add_captions();
create trigger change_caption after update of description_key on videos
    for each row when (old.description_key is distinct from new.description_key) execute function change_caption();
create trigger remove_captions after delete on videos
    referencing old table as removed for each statement execute function remove_captions();

-- The captions that there are.
insert into caption_blocks
select organization_id, internal_id / 16, array_agg(internal_id order by internal_id),
    string_agg(description_key, 'A' order by internal_id)
from videos where description_key <> '' group by 1, 2 order by 1, 2;
