-- What /search ranks by, in the order of the ranking: it walks along these and stops once its section is full.
create index videos_by_size on videos (organization_id, view_count desc, id);
create index accounts_by_size on accounts (organization_id, follower_count desc, id);
-- How many followers a creator has in all.
create index accounts_of_creators on accounts (organization_id, creator_id) include (follower_count)
    where creator_id is not null;

-- Each time that all search indexes were asked to be made anew; the latest number is the generation that they should be of.
create table search_generations (
    generation bigint generated always as identity primary key,
    asked_at timestamptz not null default now()
);
alter table search_followers add column generation bigint not null default 0;
