-- What the tracker remembers between its attempts and between its processes.

-- When an account's older posts were last read: those up to 90 days old weekly, all others monthly. A post that the
-- platform no longer answers is read for as seldom as its neighbours.
alter table scrape_targets
    add column weekly_read_at timestamptz,
    add column monthly_read_at timestamptz;

-- What is due is taken in turns, organization by organization.
create index scrape_targets_due_of_organization on scrape_targets (platform, organization_id, next_attempt_at)
    where enabled;
-- Organizations that track the same account share the platform's answer.
create index accounts_everywhere on accounts (platform, username);

-- Platforms whose queue rests, until when and why; every tracker obeys, a restarted one too. Once the time is over,
-- one attempt shows whether the queue may go on, and takes the row away.
create table platform_pauses (
    platform text primary key check (platform in ('instagram', 'tiktok')),
    until timestamptz not null,
    cause text not null check (cause in ('rate_limit', 'credentials')),
    reason text not null,
    since timestamptz not null
);

-- Requests made of a source that allows only so many in a UTC day, by all processes together.
create table source_requests (
    source text not null,
    day date not null,
    requests integer not null,
    primary key (source, day)
);
