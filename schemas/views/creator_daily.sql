-- Gains per creator and UTC day on which one of its accounts was observed, by the current links: an account that is linked
-- to another creator takes its whole history with it.
CREATE OR REPLACE VIEW {public:Identifier}.creator_daily /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id        UUID COMMENT 'Organization that owns the row',
    date          Date COMMENT 'UTC day',
    creator_id    UUID COMMENT 'Creator, creators.id',
    account_count UInt64 COMMENT 'Its accounts that were observed on this day',
    view_gain     Nullable(Int64) COMMENT 'Gain of view_count; null = unknown',
    like_gain     Nullable(Int64) COMMENT 'Gain of like_count; null = unknown',
    comment_gain  Nullable(Int64) COMMENT 'Gain of comment_count; null = unknown',
    share_gain    Nullable(Int64) COMMENT 'Gain of share_count; null = unknown',
    saved_gain    Nullable(Int64) COMMENT 'Gain of saved_count; null = unknown',
    play_gain     Nullable(Int64) COMMENT 'Gain of play_count; null = unknown',
    ig_play_gain  Nullable(Int64) COMMENT 'Gain of ig_play_count; null = unknown',
    fb_play_gain  Nullable(Int64) COMMENT 'Gain of fb_play_count; null = unknown',
    fb_like_gain  Nullable(Int64) COMMENT 'Gain of fb_like_count; null = unknown',
    follower_gain Nullable(Int64) COMMENT 'Gain of followers; null = unknown',
    view_base     Int64 COMMENT 'First known values of view_count, no gain',
    like_base     Int64 COMMENT 'First known values of like_count, no gain',
    comment_base  Int64 COMMENT 'First known values of comment_count, no gain',
    share_base    Int64 COMMENT 'First known values of share_count, no gain',
    saved_base    Int64 COMMENT 'First known values of saved_count, no gain',
    play_base     Int64 COMMENT 'First known values of play_count, no gain',
    ig_play_base  Int64 COMMENT 'First known values of ig_play_count, no gain',
    fb_play_base  Int64 COMMENT 'First known values of fb_play_count, no gain',
    fb_like_base  Int64 COMMENT 'First known values of fb_like_count, no gain',
    follower_base Int64 COMMENT 'First known follower counts, on the day they appeared',
    observed_at   DateTime64(6, 'UTC') COMMENT 'Last observation of that day'
)
SQL SECURITY INVOKER
AS SELECT
    days.org_id AS org_id, days.date AS date, assumeNotNull(links.creator_id) AS creator_id, count() AS account_count,
    sum(days.view_gain) AS view_gain,
    sum(days.like_gain) AS like_gain,
    sum(days.comment_gain) AS comment_gain,
    sum(days.share_gain) AS share_gain,
    sum(days.saved_gain) AS saved_gain,
    sum(days.play_gain) AS play_gain,
    sum(days.ig_play_gain) AS ig_play_gain,
    sum(days.fb_play_gain) AS fb_play_gain,
    sum(days.fb_like_gain) AS fb_like_gain,
    sum(days.follower_gain) AS follower_gain,
    sum(days.view_base) AS view_base,
    sum(days.like_base) AS like_base,
    sum(days.comment_base) AS comment_base,
    sum(days.share_base) AS share_base,
    sum(days.saved_base) AS saved_base,
    sum(days.play_base) AS play_base,
    sum(days.ig_play_base) AS ig_play_base,
    sum(days.fb_play_base) AS fb_play_base,
    sum(days.fb_like_base) AS fb_like_base,
    sum(days.follower_base) AS follower_base,
    max(days.observed_at) AS observed_at
FROM (SELECT * FROM account_daily FINAL) AS days
INNER JOIN (SELECT org_id, subject_id, creator_id FROM accounts FINAL WHERE creator_id IS NOT NULL) AS links
    ON links.org_id = days.org_id AND links.subject_id = days.subject_id
GROUP BY org_id, date, creator_id
COMMENT 'Gains per creator over the accounts that are linked to it now, one row per day of observation';
