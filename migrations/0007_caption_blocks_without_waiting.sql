-- A block that another unit of work has in hand is left to it: scrapes of different accounts, whose captions stand in the
-- same blocks, neither wait for each other nor deadlock. Its old row then stays beside the new one until the block is
-- made anew the next time; a reader asks the record, as before.
create or replace function rebuild_caption_blocks(organization uuid, stale bigint[]) returns void language plpgsql as $$
begin
    delete from caption_blocks where ctid = any(array(
        select ctid from caption_blocks where organization_id = organization and block = any(stale)
        for update skip locked
    ));
    insert into caption_blocks
    select organization, place.block, array_agg(internal_id order by internal_id),
        string_agg(description_key, 'A' order by internal_id)
    from unnest(stale) as place(block)
    join videos on internal_id between place.block * 16 and place.block * 16 + 15
    where organization_id = organization and description_key <> ''
    group by place.block;
end $$;
