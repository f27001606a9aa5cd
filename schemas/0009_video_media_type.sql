-- Posts are compared with those of the same media type.
ALTER TABLE videos ADD COLUMN IF NOT EXISTS media_type Nullable(String) COMMENT 'Media type as the platform reports it'
