-- Videos, current state: discovered on an account, tracked individually, or both.
CREATE OR REPLACE VIEW {public:Identifier}.videos /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id      UUID COMMENT 'Organization that owns the row',
    video_id    UInt64 COMMENT 'Video in the tables of history; internal_id in the API',
    id          UUID COMMENT 'Id of the video in the API',
    subject_id  UInt64 COMMENT 'Subject that its history belongs to: its account, else its own',
    account_id  Nullable(UUID) COMMENT 'Account it was found on, accounts.id; null = only tracked individually',
    platform    LowCardinality(String) COMMENT 'instagram or tiktok',
    external_id Nullable(String) COMMENT 'Id on the platform',
    shortcode   Nullable(String) COMMENT 'Shortcode on Instagram',
    posted_at   Nullable(DateTime64(6, 'UTC')) COMMENT 'When it was posted; unknown counts as before its tracking began',
    description Nullable(String) COMMENT 'Caption',
    is_tracked  Bool COMMENT 'True = tracked individually',
    added_at    DateTime64(6, 'UTC') COMMENT 'When it was added or discovered',
    media_type  Nullable(String) COMMENT 'Media type as the platform reports it',
    url         Nullable(String) COMMENT 'Link to the post',
    duration    Nullable(Float64) COMMENT 'Length in seconds',
    hashtags    Array(String) COMMENT 'Hashtags of the caption, lower-case, in order of appearance',
    metadata    Map(String, String) COMMENT 'Tags given by the organization to a video that is tracked individually'
)
SQL SECURITY INVOKER
AS SELECT
    org_id, video_id, id, subject_id, account_id, platform, external_id, shortcode, posted_at, description, is_tracked,
    added_at, media_type, url, duration, hashtags, metadata
FROM videos FINAL
COMMENT 'Videos as they are now';
