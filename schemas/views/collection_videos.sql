-- Posts of collections: those that are included by hand, and those that match the rule and are not marked, as
-- model::collection says. Of a rule, the conditions on the account are compared with accounts alone, so that lists of ids are
-- not repeated for each post.
CREATE OR REPLACE VIEW {public:Identifier}.collection_videos /*cluster:ON CLUSTER `{cluster}`*/
(
    org_id        UUID COMMENT 'Organization that owns the row',
    collection_id UUID COMMENT 'Collection, collections.id',
    video_id      UInt64 COMMENT 'Video, videos.video_id',
    is_by_hand    Bool COMMENT 'True = included by hand, false = by the rule'
)
SQL SECURITY INVOKER
AS
WITH
    -- As model::text::search_key.
    text -> normalizeUTF8NFKC(replaceAll(lowerUTF8(replaceAll(normalizeUTF8NFKC(replaceRegexpAll(
        text, '[\\x{FE00}-\\x{FE0F}\\x{180B}-\\x{180D}\\x{180F}\\x{E0100}-\\x{E01EF}]', '')), 'İ', 'i')), 'ς', 'σ'))
        AS search_key,
    rules AS
    (
        SELECT org_id, id AS collection_id, assumeNotNull(rule) AS conditions
        FROM collections FINAL
        WHERE rule IS NOT NULL
    ),
    matching_accounts AS
    (
        SELECT rules.org_id AS org_id, rules.collection_id AS collection_id, accounts.id AS account_id
        FROM (SELECT org_id, id, creator_id, category, metadata FROM accounts FINAL) AS accounts
        INNER JOIN rules ON rules.org_id = accounts.org_id
        WHERE (NOT JSONHas(conditions, 'account_ids')
                OR has(JSONExtract(conditions, 'account_ids', 'Array(UUID)'), accounts.id))
            AND (NOT JSONHas(conditions, 'creator_ids')
                OR has(JSONExtract(conditions, 'creator_ids', 'Array(Nullable(UUID))'), accounts.creator_id))
            AND (NOT JSONHas(conditions, 'category') OR accounts.category = JSONExtractString(conditions, 'category'))
            AND arrayAll(
                (key, value) -> mapContains(accounts.metadata, key) AND accounts.metadata[key] = value,
                JSONExtractKeys(conditions, 'metadata'),
                arrayMap(tag -> tag.2, JSONExtractKeysAndValues(conditions, 'metadata', 'String')))
    ),
    posts_by_rule AS
    (
        SELECT
            org_id, collection_id,
            JSONExtractString(conditions, 'platform') AS platform,
            JSONExtractString(conditions, 'kind') AS kind,
            JSONExtract(conditions, 'hashtags', 'Array(String)') AS any_hashtag,
            JSONExtract(conditions, 'media_types', 'Array(String)') AS media_types,
            search_key(JSONExtractString(conditions, 'q')) AS text,
            JSONExtractString(conditions, 'posted_after') AS after,
            JSONExtractString(conditions, 'posted_before') AS before,
            JSONExtractInt(conditions, 'min_views') AS min_views,
            JSONHas(conditions, 'account_ids') OR JSONHas(conditions, 'creator_ids') OR JSONHas(conditions, 'category')
                OR JSONHas(conditions, 'metadata') AS has_accounts
        FROM rules
    )
SELECT videos.org_id AS org_id, posts.collection_id AS collection_id, videos.video_id AS video_id, false AS is_by_hand
FROM
(
    SELECT org_id, video_id, account_id, platform, posted_at, media_type, description, is_tracked, hashtags
    FROM videos FINAL
) AS videos
INNER JOIN posts_by_rule AS posts ON posts.org_id = videos.org_id
LEFT JOIN
(
    SELECT org_id, collection_id, toNullable(account_id) AS account_id, true AS is_found FROM matching_accounts
) AS matching
    ON matching.org_id = videos.org_id AND matching.collection_id = posts.collection_id
    AND matching.account_id = videos.account_id
LEFT JOIN
(
    -- The latest known views, where a rule asks for them.
    SELECT org_id, video_id, argMax(view_count, date) AS latest_views
    FROM video_snapshots FINAL
    WHERE view_count IS NOT NULL AND org_id IN (SELECT org_id FROM rules WHERE JSONHas(conditions, 'min_views'))
    GROUP BY org_id, video_id
) AS latest ON latest.org_id = videos.org_id AND latest.video_id = videos.video_id
WHERE (NOT posts.has_accounts OR matching.is_found)
    AND posts.platform IN ('', videos.platform)
    AND (posts.kind = '' OR if(posts.kind = 'tracked', videos.is_tracked, videos.account_id IS NOT NULL))
    AND (empty(posts.any_hashtag) OR hasAny(videos.hashtags, posts.any_hashtag))
    AND (empty(posts.media_types) OR has(posts.media_types, ifNull(videos.media_type, '')))
    AND (posts.text = '' OR position(search_key(ifNull(videos.description, '')), posts.text) > 0)
    AND (posts.after = '' OR ifNull(videos.posted_at >= parseDateTime64BestEffortOrZero(posts.after, 6, 'UTC'), false))
    AND (posts.before = '' OR ifNull(if(
        length(posts.before) = 10,
        toDate(videos.posted_at) <= toDate(parseDateTime64BestEffortOrZero(posts.before, 6, 'UTC')),
        videos.posted_at <= parseDateTime64BestEffortOrZero(posts.before, 6, 'UTC')), false))
    AND ifNull(latest.latest_views, 0) >= posts.min_views
    AND (videos.org_id, posts.collection_id, videos.video_id) NOT IN
        (SELECT org_id, id, arrayJoin(arrayConcat(included, excluded)) FROM collections FINAL)
UNION ALL
SELECT org_id, id AS collection_id, arrayJoin(included) AS video_id, true AS is_by_hand
FROM collections FINAL
COMMENT 'Posts that are in collections now';
