-- Numbers of deliveries, each given once: one attempt to bring rows of the outbox to ClickHouse. What an attempt that
-- was given up still writes there has a lower number than that of the next attempt, and loses.
create sequence deliveries;

-- The delivery that removed the subject's history from ClickHouse; null until then, and again when ClickHouse loses that
-- delivery. Totals leave out the subjects without one.
alter table removed_subjects add column delivery bigint;
create index removed_subjects_pending on removed_subjects (organization_id) where delivery is null;
create index removed_subjects_deliveries on removed_subjects (delivery) where delivery is not null;

create index outbox_applied on outbox (applied_at) where applied_at is not null;

-- The last delivery whose rows are no longer kept: a ClickHouse with less lacks what nobody can deliver again.
create table outbox_forgotten (
    single boolean primary key default true check (single),
    delivery bigint not null,
    -- when that delivery was applied
    applied_at timestamptz not null
);
insert into outbox_forgotten (delivery, applied_at)
select min(delivery) - 1, coalesce(min(applied_at), now()) from outbox having min(delivery) > 1;

-- History that ClickHouse lost and the outbox no longer keeps: what was committed between two times has to come back
-- from a backup of ClickHouse.
create table missing_history (
    -- the last delivery numbered when the loss was noticed: files that have a later one have the gap as well
    noticed_after bigint primary key,
    -- null: from the beginning
    since timestamptz,
    until timestamptz not null
);
