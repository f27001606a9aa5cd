-- Accounts of one organization, ten per creator; none is due, so the tracker does not scrape them.
with input as (
    select * from unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::int[]) as x (subject, id, videos, days)
),
creators as (
    insert into creators (id, organization_id, name, name_key, added_at, updated_at)
    select gen_random_uuid(), $1, 'Creator ' || n, 'creator ' || n, now(), now()
    from generate_series(0, (select count(*) from input) / 10) n
    returning id, name
)
insert into accounts
    (id, internal_id, organization_id, platform, username, creator_id, linked_at, added_at, updated_at, observed_at,
     tracked_since, follower_count, total_post_count, view_count)
select input.id, subject, $1, case when subject % 2 = 0 then 'instagram' else 'tiktok' end, 'user' || subject,
    creators.id, now(), now(), now(), now(), $6::date - days + 1, 10000 + subject, videos, videos * 1000
from (select *, row_number() over (order by subject) - 1 as number from input) input
join creators on creators.name = 'Creator ' || number / 10
