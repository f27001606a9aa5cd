-- Snapshots of the videos of some of seed_subjects, on the days on which the tracker reads them (docs/tracking.md): posts of the
-- last 14 days daily, of 90 days weekly, of 365 days monthly, which is an account's post_lookback_days, and those tracked
-- individually daily. 3 % of the daily scrapes are missing; weekly and monthly ones were repeated.
--
-- A post gains most in its first days. How much in all is heavy-tailed, by account and by post. 1 % of the values are null,
-- 0.2 % were corrected downwards; TikTok has five counters and plays that equal views.
INSERT INTO video_snapshots
(
    org_id, subject_id, video_id, date, observed_at,
    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count,
    fb_like_count
)
WITH
    cityHash64(video_id, k) AS value_hash,
    -- Each counter uses two decimal digits for nulls, and three of the other hash for corrections.
    (i, n, m) -> if(intDiv(cityHash64(video_id, k, 1), n) % 100 = 0 OR totals[i] = 0, NULL,
        toInt64(totals[i] * grown * if(intDiv(value_hash, m) % 500 = 0, 0.99, 1))) AS counter
SELECT
    org_id, subject_id, video_id, day, observed_at,
    counter(1, 1, 1) AS views, counter(2, 100, 10), counter(3, 10000, 100), counter(4, 1000000, 1000),
    counter(5, 100000000, 10000), if(platform = 'tiktok', views, counter(6, 10000000000, 100000)),
    counter(7, 1000000000000, 1000000), counter(8, 100000000000000, 10000000), counter(9, 10000000000000000, 100000000)
FROM
(
    SELECT
        *, k, first_day + k AS day,
        toDateTime64(day, 6, 'UTC') + time_of_day + toIntervalMicrosecond(cityHash64(subject_id, k) % 3600000000)
            AS observed_at,
        (toFloat64(observed_at) - toFloat64(posted_at)) / 86400 AS age,
        (1 - late) * (1 - exp(-age / pace)) + late * log1p(age / 3) / log1p(365 / 3) AS grown
    FROM
    (
        WITH name -> cityHash64(video_id, name) % 1000000 / 1000000 AS random
        SELECT
            s.org_id AS org_id, subject_id, video_id, s.platform AS platform, first_day, time_of_day, posted_at, days,
            toInt64(toDate(posted_at)) - toInt64(first_day) AS posted_on,
            arrayFilter(
                k -> (is_tracked OR k - posted_on <= 14
                    OR (k - posted_on <= 90 AND (subject_id + k) % 30 % 7 = 0)
                    OR (k - posted_on <= 365 AND ((subject_id + k) % 30 = 0 OR k = 0)))
                    AND (cityHash64(subject_id, k, 'missing') % 100 >= 3 OR k IN (0, days - 1)
                        OR (subject_id + k) % 30 % 7 = 0),
                range(greatest(posted_on, 0), if(is_tracked, days, least(days, posted_on + 366)))) AS read_on,
            0.05 + 0.45 * random('late') AS late,
            0.5 + 3.5 * random('pace') AS pace,
            2000 * pow(cityHash64(subject_id, 'size') % 10000 / 10000 + 1e-4, -0.7) * pow(random('views') + 1e-6, -0.8) AS size,
            size * (0.02 + 0.1 * random('likes')) AS likes,
            1.1 + 0.5 * random('plays') AS replays,
            if(platform = 'tiktok',
                [size, likes, likes * 0.03, size * 0.02 * random('shares'), likes * 0.1, size, 0, 0, 0],
                [size, likes, likes * 0.03, size * 0.02 * random('shares'), likes * 0.1, size * replays,
                    size * replays * 0.9, size * replays * 0.1, likes * 0.05]) AS totals
        FROM seed_subjects AS s
        INNER JOIN videos USING (subject_id)
        WHERE subject_id BETWEEN {first:UInt64} AND {last:UInt64}
    )
    ARRAY JOIN read_on AS k
)
WHERE age >= 0
