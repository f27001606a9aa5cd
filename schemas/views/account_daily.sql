-- The rollup: gains per tracked subject and UTC day of observation. Individually tracked videos are subjects as well, so
-- sums over an organization are complete.
CREATE OR REPLACE VIEW {public:Identifier}.account_daily /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id        UUID COMMENT 'Organization that owns the row',
    date          Date COMMENT 'UTC day',
    subject_id    UInt64 COMMENT 'The account (accounts.subject_id) or individually tracked video (videos.subject_id)',
    platform      LowCardinality(String) COMMENT 'instagram or tiktok',
    view_gain     Nullable(Int64) COMMENT 'Gain of view_count; null = unknown',
    like_gain     Nullable(Int64) COMMENT 'Gain of like_count; null = unknown',
    comment_gain  Nullable(Int64) COMMENT 'Gain of comment_count; null = unknown',
    share_gain    Nullable(Int64) COMMENT 'Gain of share_count; null = unknown',
    saved_gain    Nullable(Int64) COMMENT 'Gain of saved_count; null = unknown',
    play_gain     Nullable(Int64) COMMENT 'Gain of play_count; null = unknown',
    ig_play_gain  Nullable(Int64) COMMENT 'Gain of ig_play_count; null = unknown',
    fb_play_gain  Nullable(Int64) COMMENT 'Gain of fb_play_count; null = unknown',
    fb_like_gain  Nullable(Int64) COMMENT 'Gain of fb_like_count; null = unknown',
    follower_gain Nullable(Int64) COMMENT 'Gain of followers; null = unknown, and for videos',
    view_base     Int64 COMMENT 'First known values of view_count, no gain',
    like_base     Int64 COMMENT 'First known values of like_count, no gain',
    comment_base  Int64 COMMENT 'First known values of comment_count, no gain',
    share_base    Int64 COMMENT 'First known values of share_count, no gain',
    saved_base    Int64 COMMENT 'First known values of saved_count, no gain',
    play_base     Int64 COMMENT 'First known values of play_count, no gain',
    ig_play_base  Int64 COMMENT 'First known values of ig_play_count, no gain',
    fb_play_base  Int64 COMMENT 'First known values of fb_play_count, no gain',
    fb_like_base  Int64 COMMENT 'First known values of fb_like_count, no gain',
    follower_base Int64 COMMENT 'First known follower count, on the day it appeared',
    observed_at   DateTime64(6, 'UTC') COMMENT 'Last observation of that day, of the account or any of its videos'
)
SQL SECURITY INVOKER
AS SELECT
    org_id, date, subject_id, platform,
    view_gain, like_gain, comment_gain, share_gain, saved_gain, play_gain, ig_play_gain, fb_play_gain, fb_like_gain,
    follower_gain,
    view_base, like_base, comment_base, share_base, saved_base, play_base, ig_play_base, fb_play_base, fb_like_base,
    follower_base,
    observed_at
FROM account_daily FINAL
COMMENT 'Gains per account or individually tracked video, one row per day of observation; the level at the end of a day is the sum of gain + base up to it';
