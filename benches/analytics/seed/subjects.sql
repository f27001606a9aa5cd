-- What is seeded: accounts, and videos that are tracked individually without an account.
CREATE OR REPLACE TABLE seed_subjects
(
    org_id UUID, subject_id UInt64, is_account Bool, first_video UInt64, videos UInt64, days UInt32, last_day Date,
    first_day Date ALIAS last_day - days + 1,
    platform String ALIAS if(subject_id % 2 = 0, 'instagram', 'tiktok'),
    -- Time of day of its scrapes, which are up to an hour later.
    time_of_day UInt32 ALIAS cityHash64(subject_id) % 79200
)
ENGINE = MergeTree ORDER BY subject_id
