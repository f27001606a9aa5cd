-- Accounts, current state.
CREATE OR REPLACE VIEW {public:Identifier}.accounts /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id      UUID COMMENT 'Organization that owns the row',
    subject_id  UInt64 COMMENT 'Account in the tables of history',
    id          UUID COMMENT 'Id of the account in the API',
    platform    LowCardinality(String) COMMENT 'instagram or tiktok',
    username    String COMMENT 'Username on the platform, lower-case',
    name        Nullable(String) COMMENT 'Display name',
    creator_id  Nullable(UUID) COMMENT 'Creator it is linked to now, creators.id; null = none',
    category    Nullable(String) COMMENT 'Label given by the organization',
    is_active   Bool COMMENT 'False = tracking is paused, its history still counts',
    added_at    DateTime64(6, 'UTC') COMMENT 'When it was added',
    is_verified Bool COMMENT 'The platform verified it',
    metadata    Map(String, String) COMMENT 'Tags given by the organization'
)
SQL SECURITY INVOKER
AS SELECT
    org_id, subject_id, id, platform, username, name, creator_id, category, is_active, added_at, is_verified, metadata
FROM accounts FINAL
COMMENT 'Accounts as they are now';
