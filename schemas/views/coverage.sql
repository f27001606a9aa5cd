-- The UTC days on which each account was observed. Gains of a day without a row, on which neither the profile nor any post
-- was read, are part of the next day that has one.
CREATE OR REPLACE VIEW {public:Identifier}.coverage /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id              UUID COMMENT 'Organization that owns the row',
    date                Date COMMENT 'UTC day',
    subject_id          UInt64 COMMENT 'Account, accounts.subject_id',
    account_id          UUID COMMENT 'Account, accounts.id',
    platform            LowCardinality(String) COMMENT 'instagram or tiktok',
    is_profile_observed Bool COMMENT 'Whether the profile was read; false = posts alone',
    observed_at         DateTime64(6, 'UTC') COMMENT 'Last observation of that day, of the profile or any post'
)
SQL SECURITY INVOKER
AS SELECT
    seen.org_id AS org_id, seen.date AS date, seen.subject_id AS subject_id, accounts.id AS account_id,
    accounts.platform AS platform, seen.is_profile_observed AS is_profile_observed, seen.observed_at AS observed_at
FROM
(
    SELECT org_id, date, subject_id, max(is_profile) AS is_profile_observed, max(observed_at) AS observed_at
    FROM
    (
        SELECT org_id, date, subject_id, false AS is_profile, observed_at FROM account_daily FINAL
        UNION ALL
        SELECT org_id, date, subject_id, true AS is_profile, observed_at FROM account_snapshots FINAL
    )
    GROUP BY org_id, date, subject_id
) AS seen
INNER JOIN (SELECT org_id, subject_id, id, platform FROM accounts FINAL) AS accounts
    ON accounts.org_id = seen.org_id AND accounts.subject_id = seen.subject_id
COMMENT 'Which account was observed on which day';
