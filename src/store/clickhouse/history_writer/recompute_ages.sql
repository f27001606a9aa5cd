-- Recomputes the views at fixed ages of the videos of subjects that were observed since `since`, after their snapshots and
-- records are written. Writes the videos that changed; one without any such views has no row, or a tombstone.
--
-- subjects  (organization, subject) whose snapshots, or whose videos' posted_at or media_type, changed
-- since     videos without a snapshot since then have not changed; by 1974-12-31, before all history: all may have, or have lost
--           their snapshots
-- version   delivery number
-- all_days  true = also writes videos that look unchanged or have no views, so that they replace every row with a lower
--           version, written before or later
INSERT INTO video_ages
(
    org_id, subject_id, video_id, id, platform, media_type, posted_at, views_1, views_3, views_7, views_14, views_30,
    interpolated, version, is_deleted
)
/*cluster:SELECT * FROM cluster('{cluster}', view(*/
WITH
    -- The first day of each video, and its days with known views. Days are numbers, so that none overflows.
    histories AS
    (
        SELECT
            org_id, subject_id, video_id, toInt64(toUInt16(min(date))) AS first_day,
            arraySort(groupArrayIf(
                (toInt64(toUInt16(date)), toInt128(assumeNotNull(view_count))), view_count IS NOT NULL)) AS known
        FROM video_snapshots/*_local*/ FINAL
        WHERE (org_id, subject_id, video_id) /*cluster:GLOBAL */IN
        (
            SELECT org_id, subject_id, video_id FROM video_snapshots/*_local*/
            WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
        )
        GROUP BY org_id, subject_id, video_id
    ),

    -- A video that was first observed more than two days after the day it was posted on has no ages.
    posts AS
    (
        SELECT
            org_id, subject_id, video_id, id, platform, media_type, known,
            ifNull(posted_time, toDateTime64(0, 6, 'UTC')) AS posted_at,
            intDiv(toUnixTimestamp64Micro(posted_at), 86400000000) AS posted_on,
            if(posted_time IS NOT NULL AND first_day <= posted_on + 2, [1, 3, 7, 14, 30], []) AS ages
        FROM histories
        LEFT JOIN
        (
            SELECT org_id, video_id, id, platform, media_type, posted_at AS posted_time
            FROM /*cluster:`{database}`.*/videos FINAL
            WHERE (org_id, video_id) /*cluster:GLOBAL */IN
            (
                SELECT org_id, video_id FROM video_snapshots/*_local*/
                WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
            )
        ) AS video USING (org_id, video_id)
    ),

    -- Of each age its day, the last day with known views until then, and the first one after it; number 0 if there is none.
    spans AS
    (
        SELECT
            * EXCEPT (known, posted_on),
            arrayMap(age -> arrayCount(point -> point.1 <= posted_on + age, known), ages) AS positions,
            arrayMap((age, n) -> (posted_on + age, known[n], known[n + 1]), ages, positions) AS spans
        FROM posts
    ),

    computed AS
    (
        SELECT
            org_id, subject_id, video_id, id, platform, media_type, posted_at,
            arrayMap(span -> multiIf(
                span.2.1 = span.1, CAST(span.2.2, 'Nullable(Int64)'),
                span.2.1 = 0 OR span.3.1 = 0, NULL,
                toInt64(intDiv(
                    2 * (span.2.2 * (span.3.1 - span.1) + span.3.2 * (span.1 - span.2.1)) + span.3.1 - span.2.1,
                    2 * greatest(span.3.1 - span.2.1, 1)))), spans) AS all_views,
            if(arrayExists(known -> known IS NOT NULL, all_views), all_views, []) AS views,
            arrayMap(age -> toUInt8(age), arrayFilter(
                (age, span, known) -> span.2.1 != span.1 AND known IS NOT NULL, ages, spans, all_views)) AS interpolated
        FROM spans
        WHERE {all_days:Bool} OR views != []

        UNION ALL

        SELECT DISTINCT
            org_id, subject_id, video_id, toUUID('00000000-0000-0000-0000-000000000000') AS id, '' AS platform,
            CAST(NULL, 'Nullable(String)') AS media_type, toDateTime64(0, 6, 'UTC') AS posted_at,
            CAST([], 'Array(Nullable(Int64))') AS all_views, CAST([], 'Array(Nullable(Int64))') AS views,
            CAST([], 'Array(UInt8)') AS interpolated
        FROM video_snapshots/*_local*/
        WHERE {all_days:Bool} AND (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND is_deleted = 1
    ),

    -- Rows already in the table: of a change of all days also those whose snapshots are gone.
    stored AS
    (
        SELECT
            org_id, subject_id, video_id,
            (id, platform, ifNull(media_type, ''), media_type IS NULL, posted_at, interpolated) AS stored_post,
            [views_1, views_3, views_7, views_14, views_30] AS stored_views
        FROM video_ages/*_local*/ FINAL
        WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
            AND ({all_days:Bool} OR {since:Date} <= '1974-12-31' OR (org_id, subject_id, video_id) /*cluster:GLOBAL */IN
        (
            SELECT org_id, subject_id, video_id FROM video_snapshots/*_local*/
            WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
        ))
    )

SELECT
    org_id, subject_id, video_id, id, platform, media_type, posted_at, views[1], views[2], views[3], views[4], views[5],
    interpolated, {version:UInt64}, views = []
FROM computed FULL JOIN stored USING (org_id, subject_id, video_id)
WHERE {all_days:Bool} OR views != stored_views
    OR (id, platform, ifNull(media_type, ''), media_type IS NULL, posted_at, interpolated) != stored_post
/*cluster:))*/
