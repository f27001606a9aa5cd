-- Collections: named sets of posts, by rule, by hand, or both (store::records::collections). Membership is evaluated when it
-- is read, so nothing else stores it.
create table collections (
    id uuid primary key,
    organization_id uuid not null references organizations on delete cascade,
    name text not null check (char_length(name) between 1 and 255),
    -- The name as it is sorted and compared, and as it is searched, folded by model::text.
    name_key text not null collate "C",
    name_search text not null collate "C",
    description text check (char_length(description) <= 2000),
    -- model::collection::Rule; null: no post is in the collection by itself
    rule jsonb,
    -- model::payout::Payout; null: posts are not paid
    payout jsonb,
    added_at timestamptz not null,
    updated_at timestamptz not null
);
-- Names are unique. GET /collections, by sort.
create unique index collections_by_name on collections (organization_id, name_key);
create index collections_by_added_at on collections (organization_id, added_at, id);

-- Posts that are in a collection, or not, by hand.
create table collection_marks (
    organization_id uuid not null references organizations on delete cascade,
    collection_id uuid not null references collections on delete cascade,
    video_id uuid not null references videos on delete cascade,
    state text not null check (state in ('included', 'excluded')),
    primary key (collection_id, video_id) include (state)
);
-- The deletion of a video and of an organization.
create index collection_marks_by_video on collection_marks (video_id);
create index collection_marks_organization on collection_marks (organization_id);
