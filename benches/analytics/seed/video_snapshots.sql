-- Snapshots of the videos of some accounts of seed_accounts: nine counters that grow independently, fast at first and
-- slower from day to day; 1 % of the values null, 3 % of the days missing, one time of observation per account and day.
INSERT INTO video_snapshots
(
    org_id, subject_id, video_id, date, observed_at,
    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count,
    fb_like_count
)
WITH
    -- Each counter uses two decimal digits of either hash.
    cityHash64(video_id, k) AS value_hash,
    cityHash64(video_id, k, 1) AS null_hash,
    log1p(k / 20) AS before,
    log1p((k + 1) / 20) - before AS today,
    (i, n) -> if(intDiv(null_hash, n) % 100 = 0, NULL,
        toInt64(rates[i] * (before + today * (intDiv(value_hash, n) % 100) / 100))) AS counter
SELECT
    org_id, subject_id, video_id, last_day - days + 1 + k AS day,
    toDateTime64(day, 6, 'UTC')
        + toIntervalMicrosecond(cityHash64(subject_id) % 80000 * 1000000 + cityHash64(subject_id, k) % 5400000000),
    counter(1, 1), counter(2, 100), counter(3, 10000), counter(4, 1000000), counter(5, 100000000),
    counter(6, 10000000000), counter(7, 1000000000000), counter(8, 100000000000000), counter(9, 10000000000000000)
FROM
(
    SELECT
        org_id, subject_id, days, last_day, first_video + n AS video_id,
        arrayMap(
            (rate, number) -> 50 * rate * exp(3 * (cityHash64(first_video + n, number, 'rate') % 1000 / 1000 - 0.7)),
            [4000., 300., 20., 40., 60., 5000., 3000., 600., 30.], [1, 2, 3, 4, 5, 6, 7, 8, 9]) AS rates
    FROM seed_accounts
    ARRAY JOIN range(videos) AS n
    WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
)
ARRAY JOIN range(days) AS k
WHERE cityHash64(video_id, k, 'missing') % 100 >= 3
