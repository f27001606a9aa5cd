-- Events: what happened, in the order in which it became known (store::records::events). Kept for 30 days.

-- The event that was committed last. It is set under the row's lock, which every unit of work holds while it commits, so ids
-- follow the order of commits.
alter table organizations add column last_event_id uuid;

create table events (
    organization_id uuid not null references organizations on delete cascade,
    -- of version 7, with created_at as its time
    id uuid not null,
    type text not null,
    -- What it is about, where that is an account or a post of one.
    account_id uuid references accounts on delete cascade,
    video_id uuid references videos on delete cascade,
    -- model::event::EventData
    data jsonb not null,
    -- by the service's clock, to the millisecond
    created_at timestamptz not null,
    -- Streams read what follows an id.
    primary key (organization_id, id)
);
-- GET /events, also with types or an account.
create index events_by_time on events (organization_id, created_at, id);
create index events_by_type on events (organization_id, type, created_at, id);
create index events_of_account on events (account_id, created_at, id) where account_id is not null;
-- The deletion and the merge of a video.
create index events_of_video on events (video_id) where video_id is not null;
-- Housekeeping deletes expired rows, the oldest first.
create index events_created on events (created_at);

-- The highest threshold that a count had passed before it fell below it; null as long as it never did.
alter table videos add column passed_views bigint;
alter table accounts add column passed_followers bigint;

-- Whether an event says that the target fails.
alter table scrape_targets add column is_failure_reported boolean not null default false;

-- Young posts whose views at an age are still to be compared with those of earlier posts (worker::breakouts).
create table breakout_candidates (
    video_id uuid primary key references videos on delete cascade,
    organization_id uuid not null references organizations on delete cascade,
    -- The first age that is not compared yet.
    age_days smallint not null,
    -- The end of the day on which the post reaches that age, by the service's clock. If its views at the age are not known
    -- then, the end of the time in which they may become known; the scrape that makes them known moves it forward.
    due_at timestamptz not null
);
create index breakout_candidates_due on breakout_candidates (due_at, video_id);
-- The deletion of an organization.
create index breakout_candidates_organization on breakout_candidates (organization_id);
