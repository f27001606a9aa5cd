-- Leases and the price of sources, without a look at every organization or page (store::tracking).

-- First, because it locks the targets: transactions that change targets lock them before their organization, to which the
-- table below refers.
create function add_scrape_wakeups() returns trigger language plpgsql as $$
begin
    insert into scrape_wakeups (organization_id, platform, kind, wake_at)
    select organization_id, platform, kind, min(next_attempt_at) from added where enabled group by 1, 2, 3;
    return null;
end $$;

create function add_earlier_scrape_wakeup() returns trigger language plpgsql as $$
begin
    insert into scrape_wakeups (organization_id, platform, kind, wake_at)
    values (new.organization_id, new.platform, new.kind, new.next_attempt_at);
    return null;
end $$;

create trigger add_scrape_wakeups after insert on scrape_targets
    referencing new table as added for each statement execute function add_scrape_wakeups();
create trigger add_earlier_scrape_wakeup after update of enabled, next_attempt_at on scrape_targets
    for each row when (new.enabled and (not old.enabled or new.next_attempt_at < old.next_attempt_at))
    execute function add_earlier_scrape_wakeup();

-- When to look for due targets of an organization: every enabled target has a wakeup of its organization, platform and kind
-- at its next attempt or earlier. Leases look only at organizations with a passed wakeup. Where nothing is due, it is replaced
-- by the time of the next attempt (store::tracking::wakeups).
--
-- Triggers append a row when a target is added, enabled or due earlier. Nothing updates a row or waits for one, and no
-- transaction deletes a row that it does not see, so a concurrent change of targets is never missed.
create table scrape_wakeups (
    organization_id uuid not null references organizations on delete cascade,
    platform text not null,
    kind text not null,
    -- by the service's clock
    wake_at timestamptz not null
);
-- Leases.
create index scrape_wakeups_passed on scrape_wakeups (platform, wake_at);
-- The deletion of an organization, and organizations without a wakeup.
create index scrape_wakeups_organization on scrape_wakeups (organization_id);

-- Pages of posts that a source delivered, per UTC day: what reading an account costs (store::tracking::source_pages).
create table source_pages (
    platform text not null,
    source text not null,
    day date not null,
    -- accounts that were read
    reads bigint not null,
    -- pages that another one followed, and their posts
    full_pages bigint not null,
    full_page_posts bigint not null,
    -- pages with only posts older than asked for
    surplus_pages bigint not null,
    primary key (platform, source, day)
);
