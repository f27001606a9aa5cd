-- Creators, current state. accounts.creator_id links accounts to them.
CREATE OR REPLACE VIEW {public:Identifier}.creators /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id    UUID COMMENT 'Organization that owns the row',
    id        UUID COMMENT 'Id of the creator in the API',
    name      String COMMENT 'Name',
    is_active Bool COMMENT 'False = collecting is paused, the history still counts',
    added_at  DateTime64(6, 'UTC') COMMENT 'When it was added',
    metadata  Map(String, String) COMMENT 'Tags given by the organization'
)
SQL SECURITY INVOKER
AS SELECT org_id, id, name, is_active, added_at, metadata
FROM creators FINAL
COMMENT 'Creators as they are now';
