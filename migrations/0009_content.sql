-- Indexes of GET /content, which lists videos of both kinds (docs/paging.md). Those of all videos also serve
-- GET /account-videos, because nearly all videos are discovered on an account: two sets would make every insert and counter
-- update maintain each sort twice.
--
-- Not built concurrently, in one file each: before the first release no other version runs beside a migration.
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion

-- GET /content and /account-videos, by sort. The first also finds the posts of some days: GET /accounts/stats, `posted_after`.
create index videos_by_create_time on videos (organization_id, create_time desc nulls last, id desc);
create index videos_by_views on videos (organization_id, view_count, id);
create index videos_by_likes on videos (organization_id, like_count, id);
create index videos_by_plays on videos (organization_id, play_count, id);
create index videos_by_added_at on videos (organization_id, added_at, id);
-- GET /content of an account or a creator; the indexes of its other sorts exist.
create index videos_of_account_by_added_at on videos (account_id, added_at, id) where account_id is not null;
-- GET /content/top with include_all lists the videos without a gain by id.
create index videos_by_id on videos (organization_id, id);

-- Replaced by those above.
drop index videos_discovered_by_create_time;
drop index videos_discovered_by_views;
drop index videos_discovered_by_likes;
drop index videos_discovered_by_plays;
drop index videos_posted;
