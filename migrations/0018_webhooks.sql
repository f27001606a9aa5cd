-- Webhooks: where events of an organization are delivered (store::records::webhooks, worker::webhooks).

create table webhooks (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    url text not null,
    -- null for all
    types text[],
    -- model::webhook::WebhookFilter; null for all
    filter jsonb,
    format text not null,
    description text,
    -- The base URL of links to the dashboard.
    origin text not null,
    is_active boolean not null,
    -- Encrypted (model::secret_key). The previous secret signs as well until its end, by the service's clock.
    secret bytea not null,
    previous_secret bytea,
    previous_secret_until timestamptz,
    -- The last event that is in webhook_messages or that the webhook does not report.
    position uuid not null,
    -- When the next message is due, by the service's clock: -infinity for one that was not attempted, null without one.
    due_at timestamptz,
    -- By Postgres' clock: one process at a time delivers, so messages keep their order.
    lease_until timestamptz,
    -- The first failure since the last success, and when failures ended the deliveries.
    failing_since timestamptz,
    disabled_at timestamptz,
    added_at timestamptz not null,
    updated_at timestamptz not null
);
-- GET /webhooks
create index webhooks_by_time on webhooks (organization_id, added_at, id);
-- Processes deliver what is due.
create index webhooks_due on webhooks (due_at) where due_at is not null;

-- A message to a receiver: an event of a webhook, or a test. Kept as long as the event, so that it can be sent again.
create table webhook_messages (
    organization_id uuid not null references organizations on delete cascade,
    webhook_id uuid not null references webhooks on delete cascade,
    -- The id that receivers see: that of the event.
    id uuid not null,
    -- null for a test
    event_id uuid,
    type text not null,
    body text not null,
    attempts smallint not null default 0,
    -- Failed attempts of the schedule.
    failures smallint not null default 0,
    -- When the next attempt of the schedule is; null once that has ended.
    scheduled_at timestamptz,
    -- When the next attempt is: scheduled_at, or -infinity if it was requested.
    due_at timestamptz,
    created_at timestamptz not null,
    primary key (webhook_id, id),
    foreign key (organization_id, event_id) references events (organization_id, id) on delete cascade
);
create index webhook_messages_due on webhook_messages (webhook_id, due_at, id) where due_at is not null;
-- The deletion of an event, and of an organization.
create index webhook_messages_event on webhook_messages (organization_id, event_id);
-- Housekeeping deletes expired tests; other messages go with their events.
create index webhook_messages_tests on webhook_messages (created_at) where event_id is null;

-- Attempts to deliver a message.
create table webhook_attempts (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    webhook_id uuid not null references webhooks on delete cascade,
    message_id uuid not null,
    attempt smallint not null,
    status text not null,
    response_code smallint,
    duration_ms integer not null,
    -- The first KiB.
    response_body text,
    error text,
    attempted_at timestamptz not null,
    foreign key (webhook_id, message_id) references webhook_messages (webhook_id, id) on delete cascade
);
-- GET /webhooks/{id}/deliveries, and the deletion of an organization.
create index webhook_attempts_by_time on webhook_attempts (organization_id, webhook_id, attempted_at, id);
-- The deletion of a message, and its last attempt.
create index webhook_attempts_message on webhook_attempts (webhook_id, message_id, attempt);
