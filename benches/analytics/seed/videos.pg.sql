-- Videos of some accounts of one organization.
insert into videos
    (id, internal_id, subject_id, organization_id, platform, external_id, account_id, description, description_key,
     media_type, create_time, added_at, updated_at, observed_at, tracked_since, view_count, like_count, play_count)
select ('018f0000-0000-7000-8200-' || lpad(to_hex(internal), 12, '0'))::uuid, internal, subject, $1,
    case when subject % 2 = 0 then 'instagram' else 'tiktok' end, internal::text, account,
    'a caption of the video ' || internal, 'a caption of the video ' || internal, 'video',
    $6::date::timestamp at time zone 'UTC' - internal * 7919 % (2 * days * 1440) * interval '1 minute',
    now(), now(), now(), $6::date - days + 1,
    internal * 7919 % 1000003, internal * 5981 % 100003, internal * 5651 % 1000003
from unnest($2::bigint[], $3::uuid[], $4::bigint[], $5::bigint[], $7::int[]) as x (subject, account, first, videos, days)
cross join generate_series(first, first + videos - 1) as internal
