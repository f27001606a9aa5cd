-- Inserts events with the records they are about, and records the last one.
with recorded as (
    update organizations set last_event_id = $3 where id = $1
)
insert into events (organization_id, id, type, account_id, video_id, data, created_at)
select $1, e.id, e.type, a.id, v.id,
    e.data
        || case when a.id is null then '{}' else jsonb_build_object('account', jsonb_build_object(
            'id', a.id, 'type', 'account', 'platform', a.platform, 'username', a.username, 'name', a.name,
            'creator_id', a.creator_id
        )) end
        || case when v.id is null then '{}' else jsonb_build_object('video', jsonb_build_object(
            'id', v.id, 'type', 'content', 'platform', v.platform, 'external_id', v.external_id, 'url', v.url,
            'description', v.description, 'media_type', v.media_type, 'create_time', v.create_time,
            'account_id', v.account_id
        )) end,
    e.created_at
from jsonb_to_recordset($2)
    as e(id uuid, type text, account_id uuid, video_id uuid, data jsonb, created_at timestamptz)
-- By id alone: while statistics do not know the organization's rows, the planner would read all of them for each event.
left join lateral (select * from videos where id = e.video_id offset 0) v on v.organization_id = $1
left join lateral (select * from accounts where id = coalesce(e.account_id, v.account_id) offset 0) a
    on a.organization_id = $1
