-- How much was posted on which UTC day, so that the overview need not count videos. A change appends a row and waits for
-- nobody; housekeeping adds such rows to the day's sum. The truth at any moment is the sum over all rows of a day.
create table post_days (
    organization_id uuid not null references organizations on delete cascade,
    platform text not null,
    day date not null,
    posts bigint not null,
    is_sum boolean not null
);
create index post_days_by_day on post_days (organization_id, day, platform) include (posts);
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

-- With its organization a video goes without leaving a change behind.
create function remove_posts() returns trigger language plpgsql as $$
begin
    insert into post_days
    select organization_id, platform, (create_time at time zone 'UTC')::date, -count(*), false
    from removed
    where create_time is not null and exists (select from organizations where id = removed.organization_id)
    group by 1, 2, 3;
    return null;
end $$;

create trigger add_posts after insert on videos
    referencing new table as added for each statement execute function add_posts();
create trigger move_post after update of create_time on videos
    for each row when (old.create_time is distinct from new.create_time) execute function move_post();
create trigger remove_posts after delete on videos
    referencing old table as removed for each statement execute function remove_posts();

insert into post_days
select organization_id, platform, (create_time at time zone 'UTC')::date, count(*), true
from videos where create_time is not null group by 1, 2, 3;
