-- Cumulative counters as observed, one row per video and UTC day, of the day's last observation. Gains are in
-- video_daily_gains.
CREATE OR REPLACE VIEW {public:Identifier}.video_snapshots /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id        UUID COMMENT 'Organization that owns the row',
    subject_id    UInt64 COMMENT 'The account (accounts.subject_id) or individually tracked video (videos.subject_id)',
    video_id      UInt64 COMMENT 'Video, videos.video_id; internal_id in the API',
    date          Date COMMENT 'UTC day of observed_at',
    observed_at   DateTime64(6, 'UTC') COMMENT 'When the counters were read; of several times on one day, the last',
    view_count    Nullable(Int64) COMMENT 'Views as read that day; null = not reported',
    like_count    Nullable(Int64) COMMENT 'Likes as read that day; null = not reported',
    comment_count Nullable(Int64) COMMENT 'Comments as read that day; null = not reported',
    share_count   Nullable(Int64) COMMENT 'Shares as read that day; null = not reported',
    saved_count   Nullable(Int64) COMMENT 'Saves as read that day; null = not reported',
    play_count    Nullable(Int64) COMMENT 'Plays (on TikTok always equal to views) as read that day; null = not reported',
    ig_play_count Nullable(Int64) COMMENT 'Plays on Instagram alone as read that day; null = not reported',
    fb_play_count Nullable(Int64) COMMENT 'Plays of the Facebook cross-post as read that day; null = not reported',
    fb_like_count Nullable(Int64) COMMENT 'Likes of the Facebook cross-post as read that day; null = not reported'
)
SQL SECURITY INVOKER
AS SELECT
    org_id, subject_id, video_id, date, observed_at,
    view_count, like_count, comment_count, share_count, saved_count, play_count, ig_play_count, fb_play_count,
    fb_like_count
FROM video_snapshots FINAL
COMMENT 'Cumulative counters of videos as they were read, one row per video and day of observation';
