-- The outbox: changes to deliver to ClickHouse, and the state of deliveries (store::outbox).
--
-- The relay puts waiting rows into a delivery, applies it to ClickHouse, records its number there and marks the rows here.
-- Applied rows stay for seven days, so that they can be replayed after ClickHouse lost data.

-- Numbers of deliveries. Each attempt takes a new one, so that what an abandoned attempt still writes to ClickHouse has a
-- lower number than that of the next attempt, and loses.
create sequence deliveries;

-- One row per transaction that changed something: its events (store::outbox::event). The row is inserted at the end of
-- the transaction, so two transactions that changed the same records have their positions in the order of their locks.
-- A transaction that commits late, with a lower position than rows already applied, is still found: the relay looks for
-- rows that are not marked, not for positions.
create table outbox (
    position bigint generated always as identity primary key,
    organization_id uuid not null,
    events bytea not null,
    -- The earliest day whose numbers the events change; infinity if they change none.
    since date not null,
    created_at timestamptz not null default now(),
    -- The delivery of the current attempt, or the one that succeeded.
    delivery bigint,
    applied_at timestamptz
);
-- The relay's next delivery, and the lag in metrics and /health.
create index outbox_pending on outbox (position) where applied_at is null;
-- Waiting until the changes of an organization are visible (store::outbox::visibility).
create index outbox_pending_of_organization on outbox (organization_id, position) where applied_at is null;
-- Marking a delivery, and delivering again after ClickHouse lost some.
create index outbox_deliveries on outbox (delivery) where delivery is not null;
-- Pruning after seven days.
create index outbox_applied on outbox (applied_at) where applied_at is not null;

-- The last delivery whose rows are pruned. A ClickHouse that has only earlier ones lacks history that the outbox cannot
-- bring back. No row: nothing is pruned yet.
create table outbox_pruned (
    single boolean primary key default true check (single),
    delivery bigint not null,
    -- when that delivery was applied
    applied_at timestamptz not null
);

-- History that only a backup of ClickHouse can bring back: committed between two times, lost there and pruned here.
create table missing_history (
    -- The last delivery when the loss was detected. Files of ClickHouse with a later delivery have the gap as well.
    detected_at_delivery bigint primary key,
    -- null: from the beginning
    since timestamptz,
    until timestamptz not null
);

-- Deleted subjects of tracking. Totals leave them out from the commit of the deletion until ClickHouse has removed their
-- history.
create table removed_subjects (
    organization_id uuid not null,
    subject_id bigint not null,
    removed_at timestamptz not null default now(),
    -- The delivery that removed its history from ClickHouse; null until then, and again if ClickHouse loses it.
    delivery bigint,
    -- when its snapshots were removed from the outbox
    erased_at timestamptz,
    primary key (organization_id, subject_id)
);
-- Analytics read the subjects to leave out.
create index removed_subjects_pending on removed_subjects (organization_id) where delivery is null;
-- Pruning, and opening removals again after ClickHouse lost them.
create index removed_subjects_deliveries on removed_subjects (delivery) where delivery is not null;
-- store::lifecycle::outbox finds the organizations whose outbox rows still hold snapshots of deleted subjects.
create index removed_subjects_to_erase on removed_subjects (organization_id)
    where erased_at is null and delivery is not null;

-- Cache versions of history: the last delivery that changed a number of this day or of an earlier one. A day without a row
-- has the version of the row before it; rows that an earlier day's newer delivery makes redundant are deleted.
create table history_versions (
    organization_id uuid not null,
    day date not null,
    delivery bigint not null,
    primary key (organization_id, day)
) with (fillfactor = 50);

-- Incremented when ClickHouse's data was replaced, which invalidates all cached analytics responses.
create table clickhouse_generation (
    single boolean primary key default true check (single),
    generation bigint not null default 0
);
insert into clickhouse_generation default values;
