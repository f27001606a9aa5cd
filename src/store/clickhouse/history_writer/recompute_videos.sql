-- Recomputes the rollup of the videos of subjects, after recompute.sql for the same subjects: tracking starts on the first day
-- in account_daily. Writes the days since `since` that changed; a day without any gain has no row, or a tombstone.
--
-- subjects  (organization, subject) whose snapshots, or whose videos' posted_at, changed
-- since     no gain of an earlier day has changed
-- version   delivery number
-- all_days  true = also writes days that look unchanged or have no gain, so that they replace every row with a lower version,
--           written before or later
INSERT INTO video_daily
(
    org_id, date, subject_id, video_id, platform, view_gain, play_gain, like_gain, comment_gain, share_gain, saved_gain,
    version, is_deleted
)
/*cluster:SELECT * FROM cluster('{cluster}', view(*/
WITH
    starts AS
    (
        SELECT org_id, subject_id, min(date) AS started_on
        FROM account_daily/*_local*/ FINAL
        WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
        GROUP BY org_id, subject_id
    ),

    -- Each snapshot of the videos observed since, with the counters last known before it.
    steps AS
    (
        SELECT
            org_id, subject_id, video_id, date,
            [view_count, play_count, like_count, comment_count, share_count, saved_count] AS counts,
            arrayResize(anyLastForEach(counts) OVER earlier, 6, NULL) AS known,
            count() OVER earlier = 0 AS is_first
        FROM video_snapshots/*_local*/ FINAL
        WHERE (org_id, subject_id, video_id) /*cluster:GLOBAL */IN
        (
            SELECT org_id, subject_id, video_id FROM video_snapshots/*_local*/
            WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
        )
        WINDOW earlier AS
            (PARTITION BY org_id, subject_id, video_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),

    computed AS
    (
        -- As in recompute.sql: only the first snapshot of a video posted on or after the start of tracking counts from zero.
        SELECT
            org_id, date, subject_id, video_id, video.platform AS platform,
            is_first AND video.posted_on >= started_on AS from_zero,
            arrayMap((now, before) -> ifNull(now - coalesce(before, if(from_zero, 0, now)), 0), counts, known) AS gains,
            counts[6] IS NOT NULL OR known[6] IS NOT NULL AS has_saves
        FROM steps
        INNER JOIN starts USING (org_id, subject_id)
        LEFT JOIN
        (
            SELECT org_id, video_id, platform, ifNull(toDate(posted_at), toDate(0)) AS posted_on
            FROM /*cluster:`{database}`.*/videos FINAL
            WHERE (org_id, video_id) /*cluster:GLOBAL */IN
            (
                SELECT org_id, video_id FROM video_snapshots/*_local*/
                WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
            )
        ) AS video USING (org_id, video_id)
        WHERE date >= {since:Date}

        UNION ALL

        SELECT DISTINCT
            org_id, date, subject_id, video_id, '' AS platform, false AS from_zero, CAST([], 'Array(Int64)') AS gains,
            false AS has_saves
        FROM video_snapshots/*_local*/
        WHERE {all_days:Bool} AND (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND is_deleted = 1
    ),

    -- Days already in the rollup.
    stored AS
    (
        SELECT
            org_id, date, subject_id, video_id,
            [view_gain, play_gain, like_gain, comment_gain, share_gain, ifNull(saved_gain, 0)] AS stored_gains,
            saved_gain IS NOT NULL AS had_saves
        FROM video_daily/*_local*/ FINAL
        WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
    ),

    -- A day that either side lacks has no gain there.
    days AS
    (
        SELECT
            org_id, date, subject_id, video_id, platform,
            arrayResize(gains, 6) AS gains, arrayResize(stored_gains, 6) AS stored_gains, has_saves, had_saves
        FROM computed FULL JOIN stored USING (org_id, date, subject_id, video_id)
    )

SELECT
    org_id, date, subject_id, video_id, platform, gains[1], gains[2], gains[3], gains[4], gains[5],
    if(has_saves, gains[6], NULL), {version:UInt64}, gains = [0, 0, 0, 0, 0, 0] AS is_without_gain
FROM days
WHERE {all_days:Bool} OR gains != stored_gains OR (NOT is_without_gain AND has_saves != had_saves)
/*cluster:))*/
