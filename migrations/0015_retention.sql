-- How long an organization keeps history (store::erasure::retention, docs/lifecycle.md).

alter table organizations add column retention_days integer check (retention_days >= 30);
-- The first day of which history is kept, since retention was first kept to; it never moves back.
alter table organizations add column history_since date;
alter table organizations add column history_since_set_at timestamptz;
-- The day before which only what later days count from is left, in the snapshots and in the rollup.
alter table organizations add column history_reduced date;
