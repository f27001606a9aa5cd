-- Sources that may not be asked for a while, until when and why; every tracker obeys, a restarted one too. Once the time
-- is over, one attempt shows whether the source may be asked again, and takes the row away. A platform's queue rests only
-- while none of its sources can go on.
create table source_pauses (
    platform text not null check (platform in ('instagram', 'tiktok')),
    -- the source's name in TIDEMARK_INSTAGRAM_SOURCES or TIDEMARK_TIKTOK_SOURCES
    source text not null,
    until timestamptz not null,
    cause text not null check (cause in ('rate_limit', 'credentials')),
    reason text not null,
    since timestamptz not null,
    primary key (platform, source)
);
drop table platform_pauses;

-- A username that was given by hand and not yet found to be the account's: the next scrape compares the platform's id, or
-- looks for a post that is known.
alter table accounts add column username_unchecked boolean not null default false;
