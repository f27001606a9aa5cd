-- Recomputes the rollup of subjects from their snapshots and writes the days that changed; a day without any observation
-- left is removed. Recomputes of one subject must not overlap, and `version` must never decrease. The rows of the snapshots'
-- videos and accounts must be in the dimension tables before (posted_at, platform).
--
-- subjects  (organization, subject) whose snapshots, or whose videos' posted_at, changed
-- version   delivery number
-- all_days  true = also writes days that look unchanged and days that lost all their snapshots, so that they replace
--           every row with a lower version, written before or later
INSERT INTO account_daily
(
    org_id, date, subject_id, platform,
    view_gain, like_gain, comment_gain, share_gain, saved_gain, play_gain, ig_play_gain, fb_play_gain, fb_like_gain,
    follower_gain,
    view_base, like_base, comment_base, share_base, saved_base, play_base, ig_play_base, fb_play_base, fb_like_base,
    follower_base,
    observed_at, digest, version, is_deleted
)
/*cluster:SELECT * FROM cluster('{cluster}', view(*/
WITH
    -- Tracking of a subject starts with the earliest observation of the account or of any of its videos.
    starts AS
    (
        SELECT org_id, subject_id, min(date) AS started_on
        FROM
        (
            SELECT org_id, subject_id, date FROM video_snapshots/*_local*/ FINAL
            WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
            UNION ALL
            SELECT org_id, subject_id, date FROM account_snapshots/*_local*/ FINAL
            WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
        )
        GROUP BY org_id, subject_id
    ),

    -- Each snapshot with the counters last known before it. Arrays hold one element per counter, in the order of the table;
    -- functions with ForEach aggregate each element and skip nulls.
    video_steps AS
    (
        SELECT
            org_id, subject_id, video_id, date, observed_at, counters,
            arrayResize(anyLastForEach(counters) OVER earlier, 9, NULL) AS known,
            count() OVER earlier = 0 AS is_first
        FROM video_snapshots/*_local*/ FINAL
        WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
        WINDOW earlier AS
            (PARTITION BY org_id, subject_id, video_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),

    account_steps AS
    (
        SELECT
            org_id, subject_id, date, observed_at,
            follower_count, anyLast(follower_count) OVER earlier AS known
        FROM account_snapshots/*_local*/ FINAL
        WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
        WINDOW earlier AS
            (PARTITION BY org_id, subject_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),

    parts AS
    (
        -- A video posted on or after the start of tracking starts from zero: the counters of its first snapshot are gains.
        -- Any other first known value is a base. A null posted_at becomes 1970-01-01, before every start.
        SELECT
            org_id, subject_id, date, video.platform AS platform, observed_at, true AS is_observed,
            CAST(NULL, 'Nullable(UInt64)') AS old_digest,
            is_first AND video.posted_on >= started_on AS from_zero,
            arrayMap((now, before) -> now - coalesce(before, if(from_zero, 0, now)), counters, known) AS gains,
            arrayMap((now, before) -> if(before IS NULL AND NOT from_zero, now, 0), counters, known) AS bases
        FROM video_steps
        INNER JOIN starts USING (org_id, subject_id)
        LEFT JOIN
        (
            SELECT org_id, video_id, platform, ifNull(toDate(posted_at), toDate(0)) AS posted_on
            FROM /*cluster:`{database}`.*/videos FINAL
            WHERE (org_id, video_id) /*cluster:GLOBAL */IN
            (
                SELECT org_id, video_id FROM video_snapshots/*_local*/
                WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
            )
        ) AS video USING (org_id, video_id)

        UNION ALL

        SELECT
            org_id, subject_id, date, account.platform AS platform, observed_at, true AS is_observed,
            CAST(NULL, 'Nullable(UInt64)') AS old_digest,
            false AS from_zero,
            arrayConcat(arrayResize(CAST([], 'Array(Nullable(Int64))'), 9, NULL),
                [follower_count - coalesce(known, follower_count)]) AS gains,
            arrayConcat(arrayResize(CAST([], 'Array(Nullable(Int64))'), 9, NULL),
                [if(known IS NULL, follower_count, 0)]) AS bases
        FROM account_steps
        LEFT JOIN
        (
            SELECT org_id, subject_id, platform
            FROM accounts/*_local*/ FINAL
            WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
        ) AS account USING (org_id, subject_id)

        UNION ALL

        -- Days already in the rollup: one without any snapshot left is removed.
        SELECT
            org_id, subject_id, date, platform, toDateTime64(0, 6, 'UTC') AS observed_at, false AS is_observed,
            CAST(digest, 'Nullable(UInt64)') AS old_digest,
            false AS from_zero,
            CAST([], 'Array(Nullable(Int64))') AS gains,
            CAST([], 'Array(Nullable(Int64))') AS bases
        FROM account_daily/*_local*/ FINAL
        WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}

        UNION ALL

        SELECT
            org_id, subject_id, date, '' AS platform, toDateTime64(0, 6, 'UTC') AS observed_at, false AS is_observed,
            CAST(NULL, 'Nullable(UInt64)') AS old_digest,
            false AS from_zero,
            CAST([], 'Array(Nullable(Int64))') AS gains,
            CAST([], 'Array(Nullable(Int64))') AS bases
        FROM
        (
            SELECT DISTINCT org_id, subject_id, date FROM video_snapshots/*_local*/
            WHERE {all_days:Bool} AND (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND is_deleted = 1
            UNION ALL
            SELECT DISTINCT org_id, subject_id, date FROM account_snapshots/*_local*/
            WHERE {all_days:Bool} AND (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND is_deleted = 1
        )
    ),

    days AS
    (
        SELECT
            org_id, subject_id, date,
            max(platform) AS platform,
            arrayResize(sumForEach(gains), 10, NULL) AS sums,
            arrayMap(base -> ifNull(base, 0), arrayResize(sumForEach(bases), 10, NULL)) AS bases,
            max(observed_at) AS observed_at,
            max(is_observed) AS is_observed,
            max(old_digest) AS old_digest
        FROM parts
        GROUP BY org_id, subject_id, date
    ),

    -- A counter that no video reports on a day gains 0 if it was known before, and null otherwise.
    filled AS
    (
        SELECT
            *,
            arrayMap((gain, times_known) -> coalesce(gain, if(times_known > 0, 0, NULL)), sums,
                countForEach(sums) OVER up_to_here) AS gains,
            cityHash64(toString((platform, gains, bases, observed_at))) AS digest
        FROM days
        WINDOW up_to_here AS
            (PARTITION BY org_id, subject_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
    )

SELECT
    org_id, date, subject_id, platform,
    gains[1], gains[2], gains[3], gains[4], gains[5], gains[6], gains[7], gains[8], gains[9], gains[10],
    bases[1], bases[2], bases[3], bases[4], bases[5], bases[6], bases[7], bases[8], bases[9], bases[10],
    observed_at, digest, {version:UInt64}, NOT is_observed
FROM filled
WHERE {all_days:Bool} OR NOT is_observed OR ifNull(old_digest != digest, true)
/*cluster:))*/
