-- Copies of pictures, whose files are in the media folder (store::pictures).

-- First, because it locks the tables in the order in which transactions do: accounts, videos, organizations.
create function remove_record_pictures() returns trigger language plpgsql as $$
begin
    delete from record_pictures using removed where record_id = removed.id;
    return null;
end $$;

create trigger remove_record_pictures after delete on accounts
    referencing old table as removed for each statement execute function remove_record_pictures();
create trigger remove_record_pictures after delete on videos
    referencing old table as removed for each statement execute function remove_record_pictures();

-- The profile picture of an account, or the cover of a video. Organizations that track the same account refer to the same
-- copy.
create table record_pictures (
    -- id of the account or video; a trigger deletes the row with it
    record_id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    kind text not null check (kind in ('profile', 'cover')),
    -- What identifies the latest picture at the platform: a digest of its URL without server and signature.
    source bytea not null check (length(source) = 16),
    -- The copy, and the source that it was made of. Null while there is none; the copy of an earlier picture stays until
    -- the latest one is copied.
    name bytea,
    copied_source bytea,
    -- When to fetch the picture, by Postgres' clock. Null: nothing to fetch.
    due_at timestamptz,
    -- requests since it became due
    attempts smallint not null default 0,
    -- A scrape makes a picture without a copy due again after this time; null: the next one does.
    retry_at timestamptz
);
-- Trackers fetch profile pictures first, because all rows of an account show it, and the latest of a kind: those before it may
-- have expired.
create index record_pictures_due on record_pictures (kind, due_at) where due_at is not null;
-- Whether anything refers to a copy.
create index record_pictures_by_name on record_pictures (name) where name is not null;
-- Whether another record has the copy of a picture.
create index record_pictures_by_copied_source on record_pictures (copied_source) where copied_source is not null;
-- The deletion of an organization.
create index record_pictures_organization on record_pictures (organization_id);

-- Copies. A row is written before its file and deleted after it.
create table pictures (
    -- HMAC-SHA-256 of the file under the installation's secret
    name bytea primary key check (length(name) = 32),
    -- space that the file occupies
    bytes bigint not null check (bytes > 0),
    -- when a tracker stored it last; nothing may refer to it yet
    stored_at timestamptz not null,
    -- by an API process, precise to an hour
    served_at timestamptz not null
);
-- Eviction.
create index pictures_by_served_at on pictures (served_at);

-- The media folder: one row. It is locked while `pictures` gains or loses rows, so that the limit holds for all trackers
-- together.
create table media (
    is_single boolean primary key default true check (is_single),
    secret bytea not null check (length(secret) = 32),
    -- sum over `pictures`
    used_bytes bigint not null default 0,
    -- when the folder was last compared with `pictures`
    swept_at timestamptz not null default '-infinity'
);
