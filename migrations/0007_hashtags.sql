-- Hashtags of the caption (model::hashtag), for `hashtag` on lists of videos. Null: a row of an earlier version whose caption
-- is not read yet, or a video without an observation. `tidemark migrate` fills rows, and housekeeping
-- those that an earlier version inserts afterwards (store::records::hashtags).
alter table videos add column hashtags text[];

-- What the index on hashtags holds: a number for each, different for each organization.
create function hashtag_keys(organization uuid, tags text[]) returns bigint[]
    language sql immutable parallel safe
    return array(
        select pg_catalog.hashtextextended(tag, pg_catalog.uuid_hash_extended(organization, 0))
        from pg_catalog.unnest(tags) as tag
    );
