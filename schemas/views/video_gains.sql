-- The rollup of videos: gains of five counters per video and UTC day. Days without any gain have no row.
CREATE OR REPLACE VIEW {public:Identifier}.video_gains /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id       UUID COMMENT 'Organization that owns the row',
    date         Date COMMENT 'UTC day',
    subject_id   UInt64 COMMENT 'The account (accounts.subject_id) or individually tracked video (videos.subject_id)',
    video_id     UInt64 COMMENT 'Video, videos.video_id; internal_id in the API',
    platform     LowCardinality(String) COMMENT 'instagram or tiktok',
    view_gain    Int64 COMMENT 'Gain of view_count, 0 if not reported by then',
    play_gain    Int64 COMMENT 'Gain of play_count, 0 if not reported by then',
    like_gain    Int64 COMMENT 'Gain of like_count, 0 if not reported by then',
    comment_gain Int64 COMMENT 'Gain of comment_count, 0 if not reported by then',
    share_gain   Int64 COMMENT 'Gain of share_count, 0 if not reported by then',
    saved_gain   Nullable(Int64) COMMENT 'Gain of saved_count; null = not reported by then'
)
SQL SECURITY INVOKER
AS SELECT
    org_id, date, subject_id, video_id, platform, view_gain, play_gain, like_gain, comment_gain, share_gain,
    saved_gain
FROM video_daily FINAL
COMMENT 'Gains per video, one row per day with a gain: for sums over days of many videos';
