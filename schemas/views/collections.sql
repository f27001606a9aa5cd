-- Collections, current state. docs/data.md has the query of their posts.
CREATE OR REPLACE VIEW {public:Identifier}.collections /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id      UUID COMMENT 'Organization that owns the row',
    id          UUID COMMENT 'Id of the collection in the API',
    name        String COMMENT 'Name',
    description Nullable(String) COMMENT 'Description',
    rule        Nullable(String) COMMENT 'Rule as JSON, as the API shows it; null = no post is in it by itself',
    included    Array(UInt64) COMMENT 'Videos that are in it by hand, videos.video_id',
    excluded    Array(UInt64) COMMENT 'Videos that are not in it by hand, videos.video_id',
    added_at    DateTime64(6, 'UTC') COMMENT 'When it was created'
)
SQL SECURITY INVOKER
AS SELECT org_id, id, name, description, rule, included, excluded, added_at
FROM collections FINAL
COMMENT 'Collections as they are now';
