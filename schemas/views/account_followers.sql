-- Profile figures and follower gains per account and UTC day of observation.
CREATE OR REPLACE VIEW {public:Identifier}.account_followers /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id             UUID COMMENT 'Organization that owns the row',
    subject_id         UInt64 COMMENT 'Account, accounts.subject_id',
    date               Date COMMENT 'UTC day of observed_at',
    observed_at        DateTime64(6, 'UTC') COMMENT 'When the profile was last read that day',
    follower_count     Nullable(Int64) COMMENT 'Followers at the end of the day, the last count reported by then; null = unknown',
    follower_gain      Nullable(Int64) COMMENT 'Change of follower_count since the last known count; 0 on the day of the first one, null = never reported by then',
    following_count    Nullable(Int64) COMMENT 'Accounts it follows, as read that day; null = not reported',
    profile_post_count Nullable(Int64) COMMENT 'Posts according to the profile, as read that day; null = not reported'
)
SQL SECURITY INVOKER
AS SELECT
    org_id, subject_id, date, observed_at,
    coalesce(followers_now, followers_before) AS follower_count,
    coalesce(followers_now, followers_before) - coalesce(followers_before, followers_now) AS follower_gain,
    following_count, profile_post_count
FROM
(
    SELECT
        org_id, subject_id, date, observed_at, following_count, profile_post_count,
        follower_count AS followers_now, anyLast(follower_count) OVER earlier AS followers_before
    FROM account_snapshots FINAL
    WINDOW earlier AS
        (PARTITION BY org_id, subject_id ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS profiles
COMMENT 'Followers and profile figures of accounts, one row per account and day on which the profile was read';
