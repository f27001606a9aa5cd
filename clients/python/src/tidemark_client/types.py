"""The types of the API. Generated from docs/openapi.json: do not edit."""

from typing import Any, Literal, NotRequired, TypedDict

ContentKind = Literal['discovered', 'tracked']
"""A way in which a video is tracked.

- `discovered`: With the account on which it was discovered.
- `tracked`: Individually."""

DeliveryStatus = Literal['failed', 'succeeded']
"""How an attempt ended.

- `succeeded`: The receiver answered with a status from 200 to 299 within 15 seconds."""

EventType = Literal['video.published', 'video.views_reached', 'video.breakout', 'account.followers_reached', 'account.unavailable', 'account.available', 'account.renamed', 'account.failing', 'account.recovered', 'import.ended', 'webhook.disabled']
"""What happened.

- `video.published`: A post was found after the first scrape of its account.
- `video.views_reached`: The views of a post passed a threshold.
- `video.breakout`: A post had three times the views of earlier posts at the same age, or more.
- `account.followers_reached`: The followers of an account passed a threshold.
- `account.unavailable`: The platform no longer shows the account.
- `account.available`: The platform shows the account again.
- `account.renamed`: The account has another username on the platform.
- `account.failing`: The account could not be scraped three times in a row.
- `account.recovered`: The account was scraped again after it failed.
- `import.ended`: An import over HTTP ended.
- `webhook.disabled`: Failures ended the deliveries of a webhook."""

FailureReason = Literal['not_found', 'transient', 'malformed', 'unsupported', 'internal']
"""Why the latest attempt failed.

- `not_found`: The platform does not show it, or shows another account under its username.
- `transient`: The platform or the source did not answer, or not in time.
- `malformed`: The response does not have the documented format.
- `unsupported`: No source can look it up.
- `internal`: The service could not record the response."""

HealthStatus = Literal['ok', 'degraded', 'down']
"""- `ok`: Works.
- `degraded`: Works in part, or is late.
- `down`: Does not respond."""

ImportStatus = Literal['queued', 'running', 'succeeded', 'failed', 'cancelled']
"""Where an import stands.

- `queued`: Waits for earlier imports.
- `running`: The file is being read, or its rows are being saved.
- `succeeded`: The file was read. Some of its rows may have been refused.
- `failed`: `error` says why.
- `cancelled`: Cancelled by a client. What had been saved remains."""

Mark = Literal['included', 'excluded']
"""How a post was put into a collection, or kept out of it, by hand.

- `included`: In the collection, whatever the rule.
- `excluded`: Not in the collection, whatever the rule."""

MemberState = Literal['included', 'excluded', 'rule']
"""Why a post is listed with a collection.

- `included`: Included by hand.
- `excluded`: Excluded by hand: not in the collection.
- `rule`: In the collection by its rule."""

PauseCause = Literal['rate_limit', 'credentials']
"""Why a source is paused.

- `rate_limit`: The platform's limit, or the budget of the day, is used up.
- `credentials`: The platform refuses the credentials."""

PayoutCount = Literal['lifetime', 'window']
"""Which views are paid.

- `lifetime`: The latest counter.
- `window`: Gains of the window."""

Period = Literal['7d', '30d', '90d', 'custom']
"""The `period` parameter."""

Platform = Literal['instagram', 'tiktok']
"""A social platform."""

RefreshStatus = Literal['queued', 'fresh', 'in_flight', 'paused', 'unavailable', 'unsupported', 'source_paused']
"""The status of a requested refresh.

- `queued`: It follows within seconds, now or on an earlier request.
- `fresh`: The last successful scrape is too recent.
- `in_flight`: It is being scraped.
- `paused`: Its own or its creator's `is_active` is false.
- `unavailable`: The platform no longer shows it.
- `unsupported`: No configured source can read it.
- `source_paused`: Every source that can read it is paused, or refreshes have used up their share of its daily budget."""

Scope = Literal['read', 'write', 'admin']
"""The permissions of a key; each scope implies the lower ones."""

SharePart = Literal['overview', 'timeseries', 'content', 'accounts', 'creators', 'payouts']
"""A part of a report."""

SharePeriod = Literal['7d', '30d', '90d']
"""The window of a report, unless the reader chooses another one."""

SourceStatus = Literal['active', 'paused', 'unconfigured']
"""Whether a source can be used.

- `active`: It is used.
- `paused`: It is not used for a while.
- `unconfigured`: The installation has no credentials for it, or does not list it."""

TrackingStatus = Literal['unsupported', 'unavailable', 'paused', 'paused_by_creator', 'failing', 'pending', 'active']
"""The first of these that applies.

- `unsupported`: No configured source can scrape it.
- `unavailable`: The platform no longer shows it.
- `paused`: Its own `is_active` is false.
- `paused_by_creator`: Its creator's `is_active` is false.
- `failing`: The latest attempt failed; it is retried.
- `pending`: Not scraped yet.
- `active`: Scraped at its interval."""

UnpaidReason = Literal['excluded', 'unavailable', 'below_minimum']
"""Why a post earns nothing.

- `excluded`: Excluded from the collection by hand.
- `unavailable`: The platform does not show it.
- `below_minimum`: Fewer views than `minimum_views`."""

VideoType = Literal['video', 'account_video', 'content']
"""How a list shows a video, which has the same id in all lists.

- `video`: Individually tracked.
- `account_video`: Discovered on a tracked account.
- `content`: Tracked in either way."""

WebhookFormat = Literal['standard', 'slack', 'discord']
"""What a webhook sends.

- `standard`: The event as JSON, as Standard Webhooks defines it.
- `slack`: A line of text, for an incoming webhook of Slack.
- `discord`: A line of text, for a webhook of Discord."""

WebhookStatus = Literal['ok', 'failing', 'disabled']
"""Whether a webhook works.

- `ok`: The latest attempt succeeded, or there was none.
- `failing`: The latest attempt failed.
- `disabled`: Failures ended the deliveries."""


class Account(TypedDict):
    """An account, with the latest counters of its discovered videos summed up."""
    added_at: str
    """Time at which the account was added."""
    category: 'str | None'
    """Your own label."""
    comment_count: int
    """Comments of all discovered posts."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    description: 'str | None'
    """Profile description."""
    effective_max_recent_posts_per_account: int
    """Maximum number of posts that the first scrape reads, with the default applied."""
    effective_post_lookback_days: int
    """Number of days that the first scrape goes back, with the default applied."""
    fb_like_count: 'int | None'
    """Likes on Facebook of all discovered posts; null if the platform never reported them."""
    fb_play_count: 'int | None'
    """Plays on Facebook of all discovered posts; null if the platform never reported them."""
    first_scrape_time: 'str | None'
    """Time of the first scrape; null before it."""
    follower_count: int
    """Followers at the latest scrape."""
    following_count: int
    """Followed accounts at the latest scrape."""
    id: str
    """Account id."""
    ig_play_count: 'int | None'
    """Plays on Instagram of all discovered posts; null if the platform never reported them."""
    is_active: bool
    """Whether tracking is active; `false` if paused."""
    is_unavailable: bool
    """Whether the platform no longer shows an account of this username."""
    is_verified: bool
    """Whether the account is verified by the platform."""
    last_scrape_time: 'str | None'
    """Time of the latest scrape; null before the first."""
    like_count: int
    """Likes of all discovered posts."""
    link_in_bio: 'str | None'
    """Link in the profile."""
    max_recent_posts_per_account: 'int | None'
    """Maximum number of posts that the first scrape reads; null for the organization's default."""
    metadata: dict[str, str]
    """Your own tags."""
    name: 'str | None'
    """Display name; null before the first scrape, or if there is none."""
    platform: 'Platform'
    """Platform of the account."""
    play_count: int
    """Plays (on TikTok equal to views) of all discovered posts."""
    post_lookback_days: 'int | None'
    """Number of days that the first scrape goes back; null for the organization's default."""
    profile_pic_url: 'str | None'
    """Profile picture: a stable copy if there is one, otherwise the platform's URL."""
    profile_pic_url_original: 'str | None'
    """Profile picture at the platform; the URL expires."""
    profile_post_count: int
    """Number of posts according to the profile."""
    saved_count: 'int | None'
    """Saves of all discovered posts; null if the platform never reported them."""
    scrape_interval_hours: int
    """Hours between scrapes."""
    share_count: int
    """Shares of all discovered posts."""
    total_post_count: int
    """Number of discovered posts."""
    tracking: 'Tracking'
    """Tracking status."""
    type: Literal['account']
    """Always `account`."""
    username: str
    """Username on the platform, in lower case, without `@`."""
    view_count: int
    """Views of all discovered posts."""


class AccountCategory(TypedDict):
    """A category and the number of its accounts."""
    accounts: int
    """Number of accounts with this label."""
    category: str
    """Your own label."""


class AccountDay(TypedDict):
    """One UTC day of an account."""
    comment_count: 'int | None'
    """Comments."""
    date: str
    """UTC day."""
    fb_like_count: 'int | None'
    """Likes on Facebook."""
    fb_play_count: 'int | None'
    """Plays on Facebook."""
    follower_count: 'int | None'
    """Followers at the end of the day, whatever `values`; null before the first observation."""
    ig_play_count: 'int | None'
    """Plays on Instagram."""
    levels: NotRequired['Counters']
    """Counters at the end of the day; only with `values=both`."""
    like_count: 'int | None'
    """Likes."""
    observed: bool
    """Whether the account or one of its videos was observed on this day."""
    play_count: 'int | None'
    """Plays (on TikTok equal to views)."""
    saved_count: 'int | None'
    """Saves."""
    share_count: 'int | None'
    """Shares."""
    view_count: 'int | None'
    """Views."""


class AccountGains(TypedDict):
    """Gains of accounts: of their videos together, and in followers."""
    comments: int
    """Comments gained."""
    engagement: int
    """Likes, comments and shares gained."""
    followers: int
    """Followers gained."""
    likes: int
    """Likes gained."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class AccountHit(TypedDict):
    """An account whose username matches."""
    creator_name: 'str | None'
    """Name of the creator; null if it has none."""
    display_name: 'str | None'
    """Display name."""
    follower_count: int
    """Followers at the latest scrape."""
    id: str
    """Account id."""
    platform: 'Platform'
    """Platform of the account."""
    profile_pic_url: 'str | None'
    """Profile picture: a stable copy if there is one, otherwise the platform's URL."""
    username: str
    """Username on the platform."""


class AccountStats(TypedDict):
    """Recent posting activity of an account."""
    account_id: str
    """Account id."""
    account_videos_count: int
    """Number of discovered posts."""
    posts_per_day_7d: list[int]
    """Number of posts per UTC day, oldest day first; the last day is today."""


class AccountUsage(TypedDict):
    """The usage of an organization's quota."""
    account_cap: 'int | None'
    """Maximum number of accounts; null if there is none."""
    accounts: int
    """Number of accounts, including paused ones."""


class AccountsByPlatform(TypedDict):
    """Number of accounts by platform."""
    instagram: int
    """Accounts on Instagram."""
    tiktok: int
    """Accounts on TikTok."""


class AccountsDay(TypedDict):
    """One UTC day of all accounts of a creator."""
    comment_count: 'int | None'
    """Comments."""
    date: str
    """UTC day."""
    fb_like_count: 'int | None'
    """Likes on Facebook."""
    fb_play_count: 'int | None'
    """Plays on Facebook."""
    ig_play_count: 'int | None'
    """Plays on Instagram."""
    levels: NotRequired['Counters']
    """Counters at the end of the day; only with `values=both`."""
    like_count: 'int | None'
    """Likes."""
    observed: int
    """Number of accounts that were observed on this day, themselves or one of their videos."""
    play_count: 'int | None'
    """Plays (on TikTok equal to views)."""
    saved_count: 'int | None'
    """Saves."""
    share_count: 'int | None'
    """Shares."""
    view_count: 'int | None'
    """Views."""


class AccountsSummary(TypedDict):
    """Number of accounts of a creator, and their followers."""
    platforms: 'AccountsByPlatform'
    """Number of accounts by platform."""
    total: int
    """Number of accounts."""
    total_followers: int
    """Followers of all accounts."""


class AgeViews(TypedDict):
    """The views of a video at an age."""
    age_days: int
    """Days after the UTC day on which it was posted."""
    interpolated: bool
    """Whether the views are interpolated between days with a snapshot."""
    views: 'int | None'
    """Views at the end of that day; null if unknown."""


class AttemptCounts(TypedDict):
    """Attempts of the last 24 hours."""
    failed: int
    """Attempts that failed."""
    succeeded: int
    """Attempts that read their account or video."""


class BatchItemResult(TypedDict):
    """The result of one item of a batch."""
    code: 'str | None'
    """Why the item failed, for programs; null if it succeeded."""
    detail: 'str | None'
    """Why the item failed and what to do, for people; null if it succeeded."""
    errors: 'list[Violation]'
    """The first 10 violations, with paths as in the request; with status 422 only, otherwise empty. `detail` counts all."""
    id: 'str | None'
    """Id of the record: with 409 the existing one; null without a record."""
    index: int
    """Position in the request, from 0."""
    status: int
    """HTTP status that a request for this item alone would get."""


class BatchMeta(TypedDict):
    """How the items of a batch fared."""
    failed: int
    """Number of items that failed."""
    requested: int
    """Number of items in the request."""
    succeeded: int
    """Number of items that succeeded."""


class Benchmark(TypedDict):
    """Percentiles and mean of the last posts at an age."""
    age_days: int
    """Days after the day on which a video was posted."""
    engagement: 'BenchmarkEngagement'
    """Likes, comments and shares, without posts of which one is known at other ages only."""
    engagement_rate: 'BenchmarkEngagementRate'
    """Engagement per view, rounded to six decimals, of posts with views."""
    sample: int
    """Number of posts whose views are known; the values are null below 10."""
    views: 'BenchmarkViews'
    """Views."""


class BenchmarkEngagement(TypedDict):
    """Likes, comments and shares, without posts of which one is known at other ages only."""
    mean: 'int | None'
    """Mean."""
    p10: 'int | None'
    """10th percentile; null if there are too few posts."""
    p50: 'int | None'
    """Median."""
    p90: 'int | None'
    """90th percentile."""


class BenchmarkEngagementRate(TypedDict):
    """Engagement per view, rounded to six decimals, of posts with views."""
    mean: 'float | None'
    """Mean."""
    p10: 'float | None'
    """10th percentile; null if there are too few posts."""
    p50: 'float | None'
    """Median."""
    p90: 'float | None'
    """90th percentile."""


class BenchmarkViews(TypedDict):
    """Views."""
    mean: 'int | None'
    """Mean."""
    p10: 'int | None'
    """10th percentile; null if there are too few posts."""
    p50: 'int | None'
    """Median."""
    p90: 'int | None'
    """90th percentile."""


class BenchmarksMeta(TypedDict):
    """The posts that are compared."""
    ages: list[int]
    """Ages in days."""
    media_type: 'str | None'
    """Media type of the posts; null for all."""


class Bonus(TypedDict):
    """An amount for reaching a number of views."""
    amount: str
    """Amount."""
    views: int
    """Views to reach."""


class BreakoutVideo(TypedDict):
    """A video that had many times the views of earlier posts at the same age."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    account_username: 'str | None'
    """Username of the account."""
    actual: int
    """Views at the age."""
    baseline: float
    """Mean of the views that earlier posts had at the age, without a quarter of the posts at each end, to one decimal."""
    cover_image_url: 'str | None'
    """Cover image: a stable copy if there is one, otherwise the platform's URL."""
    create_time: 'str | None'
    """Time at which it was posted; null until a source reports it."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    description: 'str | None'
    """Caption."""
    duration: 'float | None'
    """Duration in seconds."""
    external_id: 'str | None'
    """Id on the platform; null until a source reports it."""
    hashtags: list[str]
    """Hashtags of the caption, in lower case and without `#`, in order of appearance."""
    id: str
    """Video id."""
    interpolated: bool
    """Whether `actual` is interpolated between days with a snapshot."""
    media_type: 'str | None'
    """Media type as reported by the platform."""
    multiple: float
    """`actual` divided by the baseline, to two decimals."""
    platform: 'Platform'
    """Platform of the video."""
    sample: int
    """Number of earlier posts behind the baseline, 10 to 100."""
    type: 'VideoType'
    """Always `content`."""
    unknown_counters: list[Literal['view_count', 'like_count', 'comment_count', 'share_count', 'saved_count', 'play_count', 'ig_play_count', 'fb_play_count', 'fb_like_count']]
    """Counters that the platform has and that were never known, for example hidden likes."""
    url: 'str | None'
    """URL of the video on the platform."""
    view_count: int
    """Views, by the last scrape."""


class BreakoutsMeta(TypedDict):
    """The parameters in effect, and how many videos cannot be compared."""
    account_id: 'str | None'
    """Account; null for all."""
    age_days: int
    """Age in days."""
    category: 'str | None'
    """Category of the account; null for all."""
    collection_id: 'str | None'
    """Collection; null for all."""
    creator_id: 'str | None'
    """Creator; null for all."""
    hashtag: 'list[str] | None'
    """Hashtags; null for all."""
    limit: int
    """Page size."""
    metadata: dict[str, str]
    """Tags of the account."""
    min_multiple: float
    """Lowest multiple."""
    platform: 'Platform | None'
    """Platform; null for all."""
    posted_after: str
    """Earliest `create_time`, a date or a time."""
    without_baseline: int
    """Number of matching videos with known views that have fewer than 10 earlier posts to compare with."""


class CallerOrganization(TypedDict):
    """An organization."""
    id: str
    """Organization id."""
    name: str
    """Name of the organization."""


class CancelImportParameters(TypedDict):
    import_id: str
    """Import id."""


class Check(TypedDict):
    """The result of a check."""
    detail: NotRequired[str]
    """Problem and remedy, or the paused source; absent if there is nothing to report."""
    latency_ms: int
    """Duration of the check in milliseconds."""
    status: 'HealthStatus'
    """Status of the part."""


class Checks(TypedDict):
    clickhouse: 'ClickhouseCheck'
    """Database of history."""
    postgres: 'Check'
    """Database of records."""
    search: 'Check'
    """Search index, and whether it is up to date."""
    tracker: 'TrackerCheck'
    """Process that scrapes, and whether it is on time."""


class ClickhouseCheck(TypedDict):
    """The result of ClickHouse's check, and what it has not got yet."""
    detail: NotRequired[str]
    """Problem and remedy, or the paused source; absent if there is nothing to report."""
    latency_ms: int
    """Duration of the check in milliseconds."""
    outbox_lag_seconds: 'int | None'
    """How long the oldest of them has waited; null if unknown."""
    outbox_pending: 'int | None'
    """Changes that are committed and not delivered yet, up to 100,000; null if unknown."""
    status: 'HealthStatus'
    """Status of the part."""


class Collection(TypedDict):
    """A named set of posts. Membership is evaluated when it is read."""
    added_at: str
    """Time at which the collection was created."""
    description: 'str | None'
    """Description."""
    excluded_count: int
    """Number of posts that are excluded by hand."""
    id: str
    """Collection id."""
    included_count: int
    """Number of posts that are included by hand."""
    name: str
    """Name, unique in the organization whatever its case."""
    payout: 'CollectionPayout | None'
    """How posts are paid; null if they are not."""
    rule: 'CollectionRule | None'
    """Posts that are in the collection by themselves; null for none. Conditions that are not given are absent."""
    type: Literal['collection']
    """Always `collection`."""
    updated_at: str
    """Time of the latest change of the record."""


class CollectionAccount(TypedDict):
    """An account of a collection."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    follower_count: int
    """Followers at the latest scrape."""
    id: str
    """Account id."""
    lifetime: 'LifetimeCounts'
    """Latest counters of these posts."""
    metrics: 'Metrics'
    """Gains of these posts in the window."""
    name: 'str | None'
    """Display name; null before the first scrape, or if there is none."""
    platform: 'Platform'
    """Platform of the account."""
    profile_pic_url: 'str | None'
    """Profile picture: a stable copy if there is one, otherwise the platform's URL."""
    type: Literal['account']
    """Always `account`."""
    username: str
    """Username on the platform, in lower case, without `@`."""
    videos: int
    """Number of its posts in the collection."""


class CollectionBucket(TypedDict):
    """One or more UTC days."""
    comments: int
    """Comments gained."""
    date: str
    """UTC day, the first of several."""
    end_date: NotRequired[str]
    """Last UTC day; only with `granularity`."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    likes: int
    """Likes gained."""
    new_posts: int
    """Number of posts of the collection that were posted."""
    platforms: NotRequired['CollectionPlatforms']
    """Figures by platform; only with `group_by=platform`."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class CollectionCreator(TypedDict):
    """A creator of a collection."""
    id: str
    """Creator id."""
    lifetime: 'LifetimeCounts'
    """Latest counters of these posts."""
    metrics: 'Metrics'
    """Gains of these posts in the window."""
    name: str
    """Name of the creator."""
    type: Literal['creator']
    """Always `creator`."""
    videos: int
    """Number of its posts in the collection."""


class CollectionFigures(TypedDict):
    """Figures of one or more UTC days."""
    comments: int
    """Comments gained."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    likes: int
    """Likes gained."""
    new_posts: int
    """Number of posts of the collection that were posted."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class CollectionMark(TypedDict):
    """A post that is marked by hand."""
    collection_id: str
    """Collection id."""
    state: 'Mark'
    """Whether the post is always or never in the collection."""
    type: Literal['collection_mark']
    """Always `collection_mark`."""
    video_id: str
    """Video id."""


class CollectionMembersMeta(TypedDict):
    """The window, the metric, and the posts that are in no entry."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    metric: Literal['views', 'likes', 'comments', 'shares', 'engagement']
    """Metric that entries are ranked by."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""
    without_account: 'RemainingPosts'
    """Posts without an account and, in a ranking of creators, those whose account has no creator. With the entries of all
    pages they add up to the collection."""


class CollectionOverview(TypedDict):
    """Current totals, and gains compared with the previous window."""
    comments: 'CollectionOverviewComments'
    """Comments gained."""
    engagement: 'CollectionOverviewEngagement'
    """Likes, comments and shares gained."""
    engagement_rate: 'CollectionOverviewEngagementRate'
    """Engagement per view, rounded to six decimals; null without views."""
    likes: 'CollectionOverviewLikes'
    """Likes gained."""
    new_posts: 'CollectionOverviewNewPosts'
    """Number of posts of the collection that were posted."""
    plays: 'CollectionOverviewPlays'
    """Plays gained; on TikTok a play is a view."""
    shares: 'CollectionOverviewShares'
    """Shares gained."""
    totals: 'CollectionTotals'
    """The posts that are in the collection now, whatever the window."""
    views: 'CollectionOverviewViews'
    """Views gained."""


class CollectionOverviewComments(TypedDict):
    """Comments gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class CollectionOverviewEngagement(TypedDict):
    """Likes, comments and shares gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class CollectionOverviewEngagementRate(TypedDict):
    """Engagement per view, rounded to six decimals; null without views."""
    change: 'float | None'
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: 'float | None'
    """Value of the window; null if unknown."""
    previous: 'float | None'
    """Value of the previous window; null if unknown."""


class CollectionOverviewLikes(TypedDict):
    """Likes gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class CollectionOverviewNewPosts(TypedDict):
    """Number of posts of the collection that were posted."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class CollectionOverviewPlays(TypedDict):
    """Plays gained; on TikTok a play is a view."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class CollectionOverviewShares(TypedDict):
    """Shares gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class CollectionOverviewViews(TypedDict):
    """Views gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class CollectionPayout(TypedDict):
    """How posts of a collection are paid."""
    bonuses: 'list[Bonus]'
    """Amounts for views that a post reaches; those of all reached ones are added. Only with `lifetime`."""
    count: 'PayoutCount'
    """Views that are paid: the latest counters, or the gains of the window."""
    currency: str
    """Currency (ISO 4217)."""
    maximum_per_video: 'str | None'
    """The most that a post earns, bonuses included."""
    minimum_views: 'int | None'
    """Views below which a post earns nothing."""
    per_thousand_views: 'str | None'
    """Amount for a thousand views, with up to six decimals."""


class CollectionPlatforms(TypedDict):
    """Figures by platform."""
    instagram: 'CollectionFigures'
    """Figures on Instagram."""
    tiktok: 'CollectionFigures'
    """Figures on TikTok."""


class CollectionRow(TypedDict):
    """One or more UTC days of the window."""
    comments: int
    """Comments gained."""
    date: str
    """UTC day, the first of several."""
    end_date: NotRequired[str]
    """Last UTC day; only with `granularity`."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    likes: int
    """Likes gained."""
    new_posts: int
    """Number of posts of the collection that were posted."""
    platforms: NotRequired['CollectionPlatforms']
    """Figures by platform; only with `group_by=platform`."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    previous: NotRequired['CollectionBucket']
    """The days of the same position in the previous window; only with `compare=previous`."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class CollectionRule(TypedDict):
    """Which posts are in a collection: those for which every condition holds. Without conditions all are."""
    account_ids: NotRequired[list[str]]
    """Accounts, of which one matches."""
    category: NotRequired[str]
    """Category of the account (exact match)."""
    creator_ids: NotRequired[list[str]]
    """Creators of the account, of which one matches."""
    hashtags: NotRequired[list[str]]
    """Hashtags of the caption, of which one matches. Case and a leading `#` do not matter."""
    kind: NotRequired['ContentKind']
    """Kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    media_types: NotRequired[list[str]]
    """Media types, as the platform reports them, of which one matches exactly."""
    metadata: NotRequired[dict[str, str]]
    """Tags of the account, which has to have all of them."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    platform: NotRequired['Platform']
    """Platform."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time."""
    q: NotRequired[str]
    """Substring of the caption, ignoring case."""


class CollectionShare(TypedDict):
    """A link to the report of a collection."""
    added_at: str
    """Time at which the share was created."""
    collection_id: str
    """Collection id."""
    expires_at: str
    """Time at which the link ends."""
    id: str
    """Share id."""
    last_viewed_at: 'str | None'
    """Time at which it was opened last; null before."""
    name: str
    """Name, which the report shows."""
    period: 'SharePeriod'
    """Window of the report, unless its reader chooses another one."""
    show: 'list[SharePart]'
    """Parts of the report."""
    token: 'str | None'
    """Bearer token of the report; only in the response to its creation, null otherwise."""
    type: Literal['collection_share']
    """Always `collection_share`."""
    url: 'str | None'
    """Link to the report, which contains the token; null where the token is."""
    views: int
    """How often the report was opened."""


class CollectionTotals(TypedDict):
    """The posts that are in a collection now."""
    accounts: int
    """Number of accounts that posted them."""
    comments: int
    """Latest comments."""
    creators: int
    """Number of creators of these accounts."""
    likes: int
    """Latest likes."""
    plays: int
    """Latest plays; on TikTok a play is a view."""
    saves: 'int | None'
    """Latest saves; null if no platform reports them."""
    shares: int
    """Latest shares."""
    videos: int
    """Number of posts."""
    views: int
    """Latest views."""


class CollectionVideo(TypedDict):
    """A video with its state in a collection."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    account_name: 'str | None'
    """Display name of the account that posted it."""
    account_username: 'str | None'
    """Username of the account that posted it."""
    added_at: str
    """Time at which the video was discovered or added; under `/content` the earlier one if both."""
    comment_count: int
    """Comments, by the last scrape."""
    cover_image_url: 'str | None'
    """Cover image: a stable copy if there is one, otherwise the platform's URL."""
    cover_image_url_original: 'str | None'
    """Cover image at the platform; the URL expires."""
    create_time: 'str | None'
    """Time at which it was posted; null until a source reports it."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    description: 'str | None'
    """Caption."""
    duration: 'float | None'
    """Duration in seconds."""
    engagement_rate: 'float | None'
    """Latest likes, comments and shares per view, to six decimals; null without views."""
    external_id: 'str | None'
    """Id on the platform; null until it is known. On Instagram the Graph id, else the pk."""
    fb_like_count: 'int | None'
    """Likes on Facebook, by the last scrape; null if the platform never reported them."""
    fb_play_count: 'int | None'
    """Plays on Facebook, by the last scrape; null if the platform never reported them."""
    first_scrape_time: 'str | None'
    """Time of the first scrape; null before it."""
    hashtags: list[str]
    """Hashtags of the caption, in lower case and without `#`, in order of appearance."""
    id: str
    """Video id."""
    ig_play_count: 'int | None'
    """Plays on Instagram, by the last scrape; null if the platform never reported them."""
    internal_id: int
    """Id for `/account-videos/metrics`, unique over both platforms."""
    is_active: bool
    """Whether individual tracking is active; `false` if paused."""
    is_tracked: bool
    """Whether the video is tracked individually."""
    is_unavailable: bool
    """Whether the platform no longer shows the video."""
    kinds: 'list[ContentKind]'
    """How the video is tracked: with its account, individually, or both."""
    last_scrape_time: 'str | None'
    """Time of the latest scrape; null before the first."""
    like_count: int
    """Likes, by the last scrape."""
    media_type: 'str | None'
    """Media type as reported by the platform."""
    metadata: dict[str, str]
    """Your own tags."""
    platform: 'Platform'
    """Platform of the video."""
    platform_account_id: 'str | None'
    """Id on the platform of the account that posted it."""
    platform_data: dict[str, Any]
    """Other data that the platform reported."""
    play_count: int
    """Plays (on TikTok equal to views), by the last scrape."""
    saved_count: 'int | None'
    """Saves, by the last scrape; null if the platform never reported them."""
    scrape_interval_hours: int
    """Hours between scrapes, if tracked individually."""
    share_count: int
    """Shares, by the last scrape."""
    shortcode: 'str | None'
    """Shortcode in Instagram URLs; null on TikTok."""
    state: 'MemberState'
    """Why the video is listed: it is included or excluded by hand, or in the collection by its rule."""
    tracking: 'Tracking'
    """Tracking status."""
    type: 'VideoType'
    """`account_video` under `/account-videos`, `video` under `/videos`, `content` under `/content`."""
    unknown_counters: list[Literal['view_count', 'like_count', 'comment_count', 'share_count', 'saved_count', 'play_count', 'ig_play_count', 'fb_play_count', 'fb_like_count']]
    """Counters that the platform has and that were never known, for example hidden likes: their value is 0 or null."""
    updated_at: str
    """Time of the latest change of the record."""
    url: 'str | None'
    """URL of the video on the platform."""
    video_url: 'str | None'
    """Video file: a stable copy if there is one, otherwise the platform's URL."""
    video_url_original: 'str | None'
    """Video file at the platform; the URL expires."""
    view_count: int
    """Views, by the last scrape."""


class Content(TypedDict):
    """A video of either kind. Its `added_at` is the earlier one of both kinds."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    account_name: 'str | None'
    """Display name of the account that posted it."""
    account_username: 'str | None'
    """Username of the account that posted it."""
    added_at: str
    """Time at which the video was discovered or added; under `/content` the earlier one if both."""
    comment_count: int
    """Comments, by the last scrape."""
    cover_image_url: 'str | None'
    """Cover image: a stable copy if there is one, otherwise the platform's URL."""
    cover_image_url_original: 'str | None'
    """Cover image at the platform; the URL expires."""
    create_time: 'str | None'
    """Time at which it was posted; null until a source reports it."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    description: 'str | None'
    """Caption."""
    duration: 'float | None'
    """Duration in seconds."""
    engagement_rate: 'float | None'
    """Latest likes, comments and shares per view, to six decimals; null without views."""
    external_id: 'str | None'
    """Id on the platform; null until it is known. On Instagram the Graph id, else the pk."""
    fb_like_count: 'int | None'
    """Likes on Facebook, by the last scrape; null if the platform never reported them."""
    fb_play_count: 'int | None'
    """Plays on Facebook, by the last scrape; null if the platform never reported them."""
    first_scrape_time: 'str | None'
    """Time of the first scrape; null before it."""
    hashtags: list[str]
    """Hashtags of the caption, in lower case and without `#`, in order of appearance."""
    id: str
    """Video id."""
    ig_play_count: 'int | None'
    """Plays on Instagram, by the last scrape; null if the platform never reported them."""
    internal_id: int
    """Id for `/account-videos/metrics`, unique over both platforms."""
    is_active: bool
    """Whether individual tracking is active; `false` if paused."""
    is_tracked: bool
    """Whether the video is tracked individually."""
    is_unavailable: bool
    """Whether the platform no longer shows the video."""
    kinds: 'list[ContentKind]'
    """How the video is tracked: with its account, individually, or both."""
    last_scrape_time: 'str | None'
    """Time of the latest scrape; null before the first."""
    like_count: int
    """Likes, by the last scrape."""
    media_type: 'str | None'
    """Media type as reported by the platform."""
    metadata: dict[str, str]
    """Your own tags."""
    platform: 'Platform'
    """Platform of the video."""
    platform_account_id: 'str | None'
    """Id on the platform of the account that posted it."""
    platform_data: dict[str, Any]
    """Other data that the platform reported."""
    play_count: int
    """Plays (on TikTok equal to views), by the last scrape."""
    saved_count: 'int | None'
    """Saves, by the last scrape; null if the platform never reported them."""
    scrape_interval_hours: int
    """Hours between scrapes, if tracked individually."""
    share_count: int
    """Shares, by the last scrape."""
    shortcode: 'str | None'
    """Shortcode in Instagram URLs; null on TikTok."""
    tracking: 'Tracking'
    """Tracking status."""
    type: 'VideoType'
    """`account_video` under `/account-videos`, `video` under `/videos`, `content` under `/content`."""
    unknown_counters: list[Literal['view_count', 'like_count', 'comment_count', 'share_count', 'saved_count', 'play_count', 'ig_play_count', 'fb_play_count', 'fb_like_count']]
    """Counters that the platform has and that were never known, for example hidden likes: their value is 0 or null."""
    updated_at: str
    """Time of the latest change of the record."""
    url: 'str | None'
    """URL of the video on the platform."""
    video_url: 'str | None'
    """Video file: a stable copy if there is one, otherwise the platform's URL."""
    video_url_original: 'str | None'
    """Video file at the platform; the URL expires."""
    view_count: int
    """Views, by the last scrape."""


class ContentAgesMeta(TypedDict):
    """The ages, and the ids that were not found."""
    ages: list[int]
    """Ages in days."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""


class Counters(TypedDict):
    """The counters of a video as observed, or their gains; `None` is unknown."""
    comment_count: 'int | None'
    """Comments."""
    fb_like_count: 'int | None'
    """Likes on Facebook."""
    fb_play_count: 'int | None'
    """Plays on Facebook."""
    ig_play_count: 'int | None'
    """Plays on Instagram."""
    like_count: 'int | None'
    """Likes."""
    play_count: 'int | None'
    """Plays (on TikTok equal to views)."""
    saved_count: 'int | None'
    """Saves."""
    share_count: 'int | None'
    """Shares."""
    view_count: 'int | None'
    """Views."""


class CoverageDay(TypedDict):
    """How many subjects were observed on a UTC day."""
    date: str
    """UTC day."""
    expected: int
    """Subjects that were added or first observed by this day and are not paused now."""
    observed: int
    """Expected subjects with an observation on this day."""


class CreateAccountBody(TypedDict):
    category: NotRequired['str | None']
    """Your own label; null removes it."""
    creator_id: NotRequired['str | None']
    """Creator of the account; null unlinks it."""
    is_active: NotRequired[bool]
    """`false` pauses tracking, `true` resumes it."""
    max_recent_posts_per_account: NotRequired['int | None']
    """Maximum number of posts that the first scrape reads; null for the organization's default."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags, replacing all existing ones."""
    platform: Literal['instagram', 'tiktok']
    """Platform of the account."""
    post_lookback_days: NotRequired['int | None']
    """Number of days that the first scrape goes back; null for the organization's default."""
    scrape_interval_hours: NotRequired[int]
    """Hours between scrapes."""
    username: str
    """Username, with or without `@`, or profile URL."""


class CreateAccountResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Account'
    """The result."""


class CreateAccountsBody(TypedDict):
    items: 'list[CreateAccountsBodyItems]'
    """Bodies of requests for one record. They apply in order."""


class CreateAccountsBodyItems(TypedDict):
    category: NotRequired['str | None']
    """Your own label; null removes it."""
    creator_id: NotRequired['str | None']
    """Creator of the account; null unlinks it."""
    is_active: NotRequired[bool]
    """`false` pauses tracking, `true` resumes it."""
    max_recent_posts_per_account: NotRequired['int | None']
    """Maximum number of posts that the first scrape reads; null for the organization's default."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags, replacing all existing ones."""
    platform: Literal['instagram', 'tiktok']
    """Platform of the account."""
    post_lookback_days: NotRequired['int | None']
    """Number of days that the first scrape goes back; null for the organization's default."""
    scrape_interval_hours: NotRequired[int]
    """Hours between scrapes."""
    username: str
    """Username, with or without `@`, or profile URL."""


class CreateAccountsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[BatchItemResult]'
    """The result."""
    meta: 'BatchMeta'
    """Scope of the result."""


class CreateCollectionBody(TypedDict):
    description: NotRequired['str | None']
    """Description."""
    name: str
    """Name, unique in the organization whatever its case."""
    payout: NotRequired['CreateCollectionBodyPayout | None']
    """How posts are paid."""
    rule: NotRequired['CreateCollectionBodyRule | None']
    """Posts that are in the collection by themselves: those for which all conditions hold, `{}` for all posts. Without a rule none are."""


class CreateCollectionBodyPayout(TypedDict):
    """How posts are paid."""
    bonuses: NotRequired['list[CreateCollectionBodyPayoutBonuses]']
    """Amounts for views that a post reaches; those of all reached ones are added. Only with `lifetime`."""
    count: NotRequired[Literal['lifetime', 'window']]
    """Views that are paid: the latest counters, or the gains of the window."""
    currency: str
    """Currency (ISO 4217)."""
    maximum_per_video: NotRequired['str | None']
    """The most that a post earns, bonuses included."""
    minimum_views: NotRequired['int | None']
    """Views below which a post earns nothing."""
    per_thousand_views: NotRequired['str | None']
    """Amount for a thousand views, with up to six decimals."""


class CreateCollectionBodyPayoutBonuses(TypedDict):
    amount: str
    """Amount."""
    views: int
    """Views to reach."""


class CreateCollectionBodyRule(TypedDict):
    """Posts that are in the collection by themselves: those for which all conditions hold, `{}` for all posts. Without a rule none are."""
    account_ids: NotRequired[list[str]]
    """Accounts, of which one matches."""
    category: NotRequired[str]
    """Category of the account (exact match)."""
    creator_ids: NotRequired[list[str]]
    """Creators of the account, of which one matches."""
    hashtags: NotRequired[list[str]]
    """Hashtags of the caption, of which one matches. Case and a leading `#` do not matter."""
    kind: NotRequired[Literal['discovered', 'tracked']]
    """Kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    media_types: NotRequired[list[str]]
    """Media types, as the platform reports them, of which one matches exactly."""
    metadata: NotRequired[dict[str, str]]
    """Tags of the account, which has to have all of them."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Platform."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time."""
    q: NotRequired[str]
    """Substring of the caption, ignoring case."""


class CreateCollectionResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Collection'
    """The result."""


class CreateCollectionShareBody(TypedDict):
    expires_at: NotRequired['str | None']
    """When the link ends: a date, which means 00:00 UTC, or a time. Null or absent: in 90 days."""
    name: str
    """Name, which the report shows."""
    period: NotRequired[Literal['7d', '30d', '90d']]
    """Window of the report, unless its reader chooses another one."""
    show: list[Literal['overview', 'timeseries', 'content', 'accounts', 'creators', 'payouts']]
    """Parts of the report."""


class CreateCollectionShareParameters(TypedDict):
    collection_id: str
    """Collection id."""


class CreateCollectionShareResponse(TypedDict):
    """`{"data": …}`"""
    data: 'CollectionShare'
    """The result."""


class CreateCreatorBody(TypedDict):
    is_active: NotRequired[bool]
    """`false` pauses tracking of all its accounts."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags, replacing all existing ones."""
    name: str
    """Name; need not be unique."""


class CreateCreatorResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Creator'
    """The result."""


class CreateImportParameters(TypedDict):
    filename: NotRequired[str]
    """Name of the file, to recognize the import by. Its format follows from its content."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Platform of rows that do not name one."""
    username: NotRequired[str]
    """Username of rows that do not name one."""
    observed_at: NotRequired[str]
    """When counters without a time were observed: a time, or a date as its first moment. Defaults to the time of the upload for formats whose counters are those of the export."""
    time_zone: NotRequired[str]
    """Time zone of times without one, as an IANA name such as `Europe/Berlin`."""
    day_first: NotRequired[bool]
    """Whether `03/04/2026` is 3 April instead of 4 March."""
    track: NotRequired[bool]
    """Whether new accounts are tracked, instead of created as paused."""
    dry_run: NotRequired[bool]
    """Whether to read the file and store nothing."""


class CreateImportResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Import'
    """The result."""


class CreateVideoBody(TypedDict):
    identifier: str
    """Video URL, short link, Instagram shortcode, or id on the platform."""
    is_active: NotRequired[bool]
    """`false` adds the video paused."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags."""
    platform: Literal['instagram', 'tiktok']
    """Platform of the video."""
    scrape_interval_hours: NotRequired[int]
    """Hours between scrapes."""


class CreateVideoResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Video'
    """The result."""


class CreateVideosBody(TypedDict):
    items: 'list[CreateVideosBodyItems]'
    """Bodies of requests for one record. They apply in order."""


class CreateVideosBodyItems(TypedDict):
    identifier: str
    """Video URL, short link, Instagram shortcode, or id on the platform."""
    is_active: NotRequired[bool]
    """`false` adds the video paused."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags."""
    platform: Literal['instagram', 'tiktok']
    """Platform of the video."""
    scrape_interval_hours: NotRequired[int]
    """Hours between scrapes."""


class CreateVideosResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[BatchItemResult]'
    """The result."""
    meta: 'BatchMeta'
    """Scope of the result."""


class CreateWebhookBody(TypedDict):
    description: NotRequired['str | None']
    """Description."""
    filter: NotRequired['CreateWebhookBodyFilter | None']
    """Which of their events to send; null for all."""
    format: NotRequired[Literal['standard', 'slack', 'discord']]
    """What to send."""
    is_active: NotRequired[bool]
    """Whether to send events."""
    types: NotRequired["list[Literal['video.published', 'video.views_reached', 'video.breakout', 'account.followers_reached', 'account.unavailable', 'account.available', 'account.renamed', 'account.failing', 'account.recovered', 'import.ended', 'webhook.disabled']] | None"]
    """Types of events to send; null for all."""
    url: str
    """URL of the receiver. It begins with https://, and its addresses are public; the operator may allow other hosts."""


class CreateWebhookBodyFilter(TypedDict):
    """Which of their events to send; null for all."""
    account_ids: NotRequired['list[str] | None']
    """Accounts, of which one matches; null for all."""
    collection_ids: NotRequired['list[str] | None']
    """Collections that the post is in when the event is delivered, of which one matches; null for all."""
    creator_ids: NotRequired['list[str] | None']
    """Creators that the account has when the event is delivered, of which one matches; null for all."""


class CreateWebhookResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Webhook'
    """The result."""


class Creator(TypedDict):
    """A creator, with a summary of the accounts that are linked now."""
    accounts_summary: 'AccountsSummary'
    """Linked accounts."""
    added_at: str
    """Time at which the creator was created."""
    id: str
    """Creator id."""
    is_active: bool
    """Whether its accounts are tracked; `false` pauses all of them."""
    metadata: dict[str, str]
    """Your own tags."""
    name: str
    """Name; need not be unique."""
    type: Literal['creator']
    """Always `creator`."""
    updated_at: str
    """Time of the latest change of the record."""


class CreatorAccountLink(TypedDict):
    """The link between a creator and one of its accounts."""
    account_id: str
    """Account id."""
    creator_id: str
    """Creator id."""
    linked_at: str
    """Time at which the account was linked."""
    type: Literal['creator_account_link']
    """Always `creator_account_link`."""


class CreatorDay(TypedDict):
    """Gains of a creator on one UTC day."""
    date: str
    """UTC day."""
    engagement: int
    """Likes, comments and shares gained."""
    views: int
    """Views gained."""


class CreatorHit(TypedDict):
    """A creator whose name matches."""
    accounts_summary: 'AccountsSummary'
    """Linked accounts."""
    id: str
    """Creator id."""
    name: str
    """Name of the creator."""


class DailyMeta(TypedDict):
    """The window, and the gains over all of it."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    id: str
    """Id of the video, account or creator."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""
    totals: 'Counters'
    """Gains over the whole window, whatever `values`."""
    values: Literal['gains', 'cumulative', 'both']
    """Whether rows have `gains` of each day, `cumulative` counters at its end, or `both`.
    
    - `gains`: Gained on the day.
    - `cumulative`: Counters at the end of the day.
    - `both`: Gains, and counters at the end of the day as `levels`."""


class DeleteAccountParameters(TypedDict):
    account_id: str
    """Account id, or username with a leading `@`."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Platform of the username, if it is tracked on both."""


class DeleteCollectionParameters(TypedDict):
    collection_id: str
    """Collection id."""


class DeleteCollectionShareParameters(TypedDict):
    collection_id: str
    """Collection id."""
    share_id: str
    """Share id."""


class DeleteCreatorParameters(TypedDict):
    creator_id: str
    """Creator id."""


class DeleteVideoParameters(TypedDict):
    video_id: str
    """Video id."""


class DeleteWebhookParameters(TypedDict):
    webhook_id: str
    """Webhook id."""


class DeltasMeta(TypedDict):
    """The look-back windows and the videos found."""
    complete_through: str
    """Last complete UTC day: yesterday."""
    data_as_of: 'str | None'
    """Time of the latest observation of the videos; null if there is none."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    video_count: int
    """Number of videos found."""
    windows: list[int]
    """Lengths of the windows in days, including today."""


class EffectiveCaps(TypedDict):
    """Maximum number of matches per section."""
    accounts: int
    """Maximum number of accounts."""
    creators: int
    """Maximum number of creators."""
    videos: int
    """Maximum number of videos; lower if the query has fewer than three characters."""


class Event(TypedDict):
    """Something that happened."""
    created_at: str
    """Time at which it became known."""
    data: 'EventData'
    """What it is about, and what its type says."""
    id: str
    """Event id. Ids follow the order in which events became known."""
    type: 'EventType'
    """What happened."""


class EventAccount(TypedDict):
    """The account of an event, as it was then."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    id: str
    """Account id."""
    name: 'str | None'
    """Name of the profile; null until a source reports it."""
    platform: 'Platform'
    """Platform of the account."""
    type: Literal['account']
    """Always `account`."""
    username: str
    """Username, in lower case."""


EventData = TypedDict('EventData', {
    'account': NotRequired['EventAccount'],
    'actual': NotRequired[int],
    'age_days': NotRequired[int],
    'baseline': NotRequired[float],
    'import': NotRequired['EventImport'],
    'multiple': NotRequired[float],
    'previous_username': NotRequired[str],
    'reason': NotRequired['FailureReason'],
    'threshold': NotRequired[int],
    'video': NotRequired['EventVideo'],
    'webhook': NotRequired['EventWebhook'],
})
"""What an event is about, and what its type says. A field that the type does not have is absent."""


class EventImport(TypedDict):
    """The import of an event, as it ended."""
    error: 'str | None'
    """Why it failed; otherwise null."""
    filename: 'str | None'
    """Name of the file; null if none was sent."""
    id: str
    """Import id."""
    refused: int
    """Number of rows that were refused."""
    rows_read: int
    """Number of rows that were read."""
    snapshots_written: int
    """Number of observations that were stored."""
    status: 'ImportStatus'
    """How it ended."""
    type: Literal['import']
    """Always `import`."""


class EventVideo(TypedDict):
    """The post of an event, as it was then."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    create_time: 'str | None'
    """Time at which it was posted; null until a source reports it."""
    description: 'str | None'
    """Caption."""
    external_id: 'str | None'
    """Id on the platform; null until a source reports it."""
    id: str
    """Video id."""
    media_type: 'str | None'
    """Media type as reported by the platform."""
    platform: 'Platform'
    """Platform of the video."""
    type: 'VideoType'
    """Always `content`."""
    url: 'str | None'
    """URL of the video on the platform."""


class EventWebhook(TypedDict):
    """The webhook of an event, without its URL, which may be a secret."""
    description: 'str | None'
    """Description."""
    format: 'WebhookFormat'
    """What it sends."""
    id: str
    """Webhook id."""
    type: Literal['webhook']
    """Always `webhook`."""


class ExportAccountsParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    q: NotRequired[str]
    """Filter by a substring of the username, ignoring case."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    creator_id: NotRequired[list[str]]
    """Filter by creator: accounts of any of these. At most 100 different values, separated by commas or in repeated parameters."""
    linked: NotRequired[bool]
    """Whether the account has a creator."""
    status: NotRequired[list[Literal['unsupported', 'unavailable', 'paused', 'paused_by_creator', 'failing', 'pending', 'active']]]
    """Filter by `tracking.status`: accounts with any of these. At most 7 different values, separated by commas or in repeated parameters."""
    failure: NotRequired[Literal['not_found', 'transient', 'malformed', 'unsupported', 'internal']]
    """Filter by why the latest attempt failed: accounts with the status `failing` and this reason, as in `failures` of the state of tracking."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    raw: NotRequired[bool]
    """Whether text that a spreadsheet would take for a formula stays as it is. By default, `'` is put before text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return."""


class ExportAccountsParquetParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    q: NotRequired[str]
    """Filter by a substring of the username, ignoring case."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    creator_id: NotRequired[list[str]]
    """Filter by creator: accounts of any of these. At most 100 different values, separated by commas or in repeated parameters."""
    linked: NotRequired[bool]
    """Whether the account has a creator."""
    status: NotRequired[list[Literal['unsupported', 'unavailable', 'paused', 'paused_by_creator', 'failing', 'pending', 'active']]]
    """Filter by `tracking.status`: accounts with any of these. At most 7 different values, separated by commas or in repeated parameters."""
    failure: NotRequired[Literal['not_found', 'transient', 'malformed', 'unsupported', 'internal']]
    """Filter by why the latest attempt failed: accounts with the status `failing` and this reason, as in `failures` of the state of tracking."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class ExportContentParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    kind: NotRequired[Literal['discovered', 'tracked']]
    """Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    is_unavailable: NotRequired[bool]
    """Filter by `is_unavailable`."""
    media_type: NotRequired[list[str]]
    """Filter by media types, as the platform reports them, of which one matches exactly. Videos without a media type do not match. At most 20 different values, separated by commas or in repeated parameters."""
    collection_id: NotRequired[str]
    """Filter by collection."""
    hashtag: NotRequired[list[str]]
    """Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter. At most 50 different values, separated by commas or in repeated parameters."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    q: NotRequired[str]
    """Filter by a substring of the caption, ignoring case."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    raw: NotRequired[bool]
    """Whether text that a spreadsheet would take for a formula stays as it is. By default, `'` is put before text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return."""


class ExportContentParquetParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    kind: NotRequired[Literal['discovered', 'tracked']]
    """Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    is_unavailable: NotRequired[bool]
    """Filter by `is_unavailable`."""
    media_type: NotRequired[list[str]]
    """Filter by media types, as the platform reports them, of which one matches exactly. Videos without a media type do not match. At most 20 different values, separated by commas or in repeated parameters."""
    collection_id: NotRequired[str]
    """Filter by collection."""
    hashtag: NotRequired[list[str]]
    """Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter. At most 50 different values, separated by commas or in repeated parameters."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    q: NotRequired[str]
    """Filter by a substring of the caption, ignoring case."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class ExportCreatorsParameters(TypedDict):
    q: NotRequired[str]
    """Filter by a substring of the name, ignoring case."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    raw: NotRequired[bool]
    """Whether text that a spreadsheet would take for a formula stays as it is. By default, `'` is put before text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return."""


class ExportCreatorsParquetParameters(TypedDict):
    q: NotRequired[str]
    """Filter by a substring of the name, ignoring case."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class ExportDailyGainsParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    q: NotRequired[str]
    """Filter by a substring of the username, ignoring case."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    creator_id: NotRequired[list[str]]
    """Filter by creator: accounts of any of these. At most 100 different values, separated by commas or in repeated parameters."""
    linked: NotRequired[bool]
    """Whether the account has a creator."""
    status: NotRequired[list[Literal['unsupported', 'unavailable', 'paused', 'paused_by_creator', 'failing', 'pending', 'active']]]
    """Filter by `tracking.status`: accounts with any of these. At most 7 different values, separated by commas or in repeated parameters."""
    failure: NotRequired[Literal['not_found', 'transient', 'malformed', 'unsupported', 'internal']]
    """Filter by why the latest attempt failed: accounts with the status `failing` and this reason, as in `failures` of the state of tracking."""
    account_id: NotRequired[str]
    """Filter by account."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    raw: NotRequired[bool]
    """Whether text that a spreadsheet would take for a formula stays as it is. By default, `'` is put before text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return."""


class ExportDailyGainsParquetParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    q: NotRequired[str]
    """Filter by a substring of the username, ignoring case."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    creator_id: NotRequired[list[str]]
    """Filter by creator: accounts of any of these. At most 100 different values, separated by commas or in repeated parameters."""
    linked: NotRequired[bool]
    """Whether the account has a creator."""
    status: NotRequired[list[Literal['unsupported', 'unavailable', 'paused', 'paused_by_creator', 'failing', 'pending', 'active']]]
    """Filter by `tracking.status`: accounts with any of these. At most 7 different values, separated by commas or in repeated parameters."""
    failure: NotRequired[Literal['not_found', 'transient', 'malformed', 'unsupported', 'internal']]
    """Filter by why the latest attempt failed: accounts with the status `failing` and this reason, as in `failures` of the state of tracking."""
    account_id: NotRequired[str]
    """Filter by account."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class ExportPayoutVideosParameters(TypedDict):
    collection_id: str
    """Collection."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    raw: NotRequired[bool]
    """Whether text that a spreadsheet would take for a formula stays as it is. By default, `'` is put before text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return."""


class ExportPayoutsParameters(TypedDict):
    collection_id: str
    """Collection."""
    group_by: NotRequired[Literal['account', 'creator']]
    """By what posts are added up."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    raw: NotRequired[bool]
    """Whether text that a spreadsheet would take for a formula stays as it is. By default, `'` is put before text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return."""


class Failures(TypedDict):
    """Records with the status `failing`, by the reason."""
    accounts: int
    """Number of accounts."""
    reason: 'FailureReason'
    """Why their latest attempt failed."""
    since: 'str | None'
    """Time of the first of the failures in a row, of the record that has failed for longest; null while it is unknown,
    which it is right after an upgrade."""
    videos: int
    """Number of individually tracked videos."""


class FiguresByPlatform(TypedDict):
    """Figures by platform."""
    instagram: 'SeriesFigures'
    """Figures on Instagram."""
    tiktok: 'SeriesFigures'
    """Figures on TikTok."""


class Gains(TypedDict):
    """Gains of one or more videos. Platforms correct counters, so a gain may be negative."""
    comments: int
    """Comments gained."""
    engagement: int
    """Likes, comments and shares gained."""
    likes: int
    """Likes gained."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class GetAccountAnalyticsParameters(TypedDict):
    account_id: str
    """Account id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date`, `end_date` or both. Default: `7d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive). Without `end_date`, the window ends today."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive). Without `start_date`, the window has 7 days."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    values: NotRequired[Literal['gains', 'cumulative', 'both']]
    """Return what was gained on each day, the counters at its end, or both."""


class GetAccountAnalyticsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[AccountDay]'
    """The result."""
    meta: 'DailyMeta'
    """Scope of the result."""


class GetAccountBenchmarksParameters(TypedDict):
    account_id: str
    """Account id."""
    media_type: NotRequired[str]
    """Media type of the posts, as the platform reports it; empty for all."""
    ages: NotRequired[list[int]]
    """Ages in days. Default: 7. At most 10 different values, separated by commas or in repeated parameters."""


class GetAccountBenchmarksResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[Benchmark]'
    """The result."""
    meta: 'BenchmarksMeta'
    """Scope of the result."""


class GetAccountMetricsParameters(TypedDict):
    account_ids: list[str]
    """Account ids. At most 100 different values, separated by commas or in repeated parameters."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetAccountMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, AccountGains]'
    """The result."""
    meta: 'GetAccountMetricsResponseMeta'
    """Scope of the result."""


class GetAccountMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class GetAccountParameters(TypedDict):
    account_id: str
    """Account id, or username with a leading `@`."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Platform of the username, if it is tracked on both."""


class GetAccountResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Account'
    """The result."""


class GetAccountSparklinesParameters(TypedDict):
    account_ids: list[str]
    """Account ids. At most 100 different values, separated by commas or in repeated parameters."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement', 'followers', 'new_posts']]
    """Gain per day; `followers` is the level at the end of the day, `new_posts` the number of discovered videos posted."""
    unobserved: NotRequired[Literal['zero', 'null']]
    """What a gain is on days without an observation: `zero`, or `null`. Does not affect `followers` and `new_posts`."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 92 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetAccountSparklinesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, list[int | None]]'
    """The result."""
    meta: 'GetAccountSparklinesResponseMeta'
    """Scope of the result."""


class GetAccountSparklinesResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    dates: list[str]
    """UTC days of the window, ascending: one for each value."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    metric: Literal['views', 'likes', 'comments', 'shares', 'engagement', 'followers', 'new_posts']
    """Metric in effect."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class GetAccountVideoMetricsParameters(TypedDict):
    instagram_post_ids: NotRequired[list[int]]
    """Internal ids (`internal_id`) of account-discovered videos of this platform. At most 100 different values, separated by commas or in repeated parameters."""
    tiktok_video_ids: NotRequired[list[int]]
    """Internal ids (`internal_id`) of account-discovered videos of this platform. At most 100 different values, separated by commas or in repeated parameters."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetAccountVideoMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, Gains]'
    """The result."""
    meta: 'GetAccountVideoMetricsResponseMeta'
    """Scope of the result."""


class GetAccountVideoMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[int]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class GetAccountVideoParameters(TypedDict):
    video_id: str
    """Video id."""


class GetAccountVideoResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Video'
    """The result."""


class GetCollectionMarkParameters(TypedDict):
    collection_id: str
    """Collection id."""
    video_id: str
    """Video id."""


class GetCollectionMarkResponse(TypedDict):
    """`{"data": …}`"""
    data: 'CollectionMark'
    """The result."""


class GetCollectionOverviewParameters(TypedDict):
    collection_id: str
    """Collection id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""


class GetCollectionOverviewResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'CollectionOverview'
    """The result."""
    meta: 'OverviewMeta'
    """Scope of the result."""


class GetCollectionParameters(TypedDict):
    collection_id: str
    """Collection id."""


class GetCollectionResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Collection'
    """The result."""


class GetCollectionShareParameters(TypedDict):
    collection_id: str
    """Collection id."""
    share_id: str
    """Share id."""


class GetCollectionShareResponse(TypedDict):
    """`{"data": …}`"""
    data: 'CollectionShare'
    """The result."""


class GetCollectionTimeseriesParameters(TypedDict):
    collection_id: str
    """Collection id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    group_by: NotRequired[Literal['platform']]
    """Adds the figures of each platform."""
    compare: NotRequired[Literal['previous']]
    """Adds the row of the same position in the previous window, which has as many days."""
    granularity: NotRequired[Literal['day', 'week', 'month']]
    """One row for each day, week (from Monday) or month of the window, with its `end_date`. The window may cut the first and the last. Default: days, without `end_date`."""


class GetCollectionTimeseriesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[CollectionRow]'
    """The result."""
    meta: 'WindowMeta'
    """Scope of the result."""


class GetContentAgesParameters(TypedDict):
    video_id: str
    """Video id."""
    ages: NotRequired[list[int]]
    """Ages in days. Default: 1, 3, 7, 14 and 30. At most 10 different values, separated by commas or in repeated parameters."""


class GetContentAgesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[AgeViews]'
    """The result."""
    meta: 'VideoAgesMeta'
    """Scope of the result."""


class GetContentParameters(TypedDict):
    video_id: str
    """Video id."""


class GetContentResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Content'
    """The result."""


class GetContentSparklinesParameters(TypedDict):
    ids: list[str]
    """Ids of account-discovered or individually tracked videos. At most 100 different values, separated by commas or in repeated parameters."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    unobserved: NotRequired[Literal['zero', 'null']]
    """What a gain is on days without an observation: `zero`, or `null`."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 92 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetContentSparklinesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, list[int | None]]'
    """The result."""
    meta: 'GetContentSparklinesResponseMeta'
    """Scope of the result."""


class GetContentSparklinesResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    dates: list[str]
    """UTC days of the window, ascending: one for each value."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    metric: Literal['views', 'likes', 'comments', 'shares', 'engagement']
    """Metric in effect."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class GetCreatorAccountParameters(TypedDict):
    creator_id: str
    """Creator id."""
    account_id: str
    """Account id."""


class GetCreatorAccountResponse(TypedDict):
    """`{"data": …}`"""
    data: 'CreatorAccountLink'
    """The result."""


class GetCreatorAnalyticsParameters(TypedDict):
    creator_id: str
    """Creator id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date`, `end_date` or both. Default: `7d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive). Without `end_date`, the window ends today."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive). Without `start_date`, the window has 7 days."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    values: NotRequired[Literal['gains', 'cumulative', 'both']]
    """Return what was gained on each day, the counters at its end, or both."""


class GetCreatorAnalyticsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[AccountsDay]'
    """The result."""
    meta: 'DailyMeta'
    """Scope of the result."""


class GetCreatorMetricsParameters(TypedDict):
    creator_ids: list[str]
    """Creator ids. At most 100 different values, separated by commas or in repeated parameters."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetCreatorMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, AccountGains]'
    """The result."""
    meta: 'GetCreatorMetricsResponseMeta'
    """Scope of the result."""


class GetCreatorMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class GetCreatorParameters(TypedDict):
    creator_id: str
    """Creator id."""


class GetCreatorResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Creator'
    """The result."""


class GetCreatorSparklinesParameters(TypedDict):
    creator_ids: list[str]
    """Creator ids. At most 100 different values, separated by commas or in repeated parameters."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement', 'followers', 'new_posts']]
    """Gain per day; `followers` is the level at the end of the day, `new_posts` the number of discovered videos posted."""
    unobserved: NotRequired[Literal['zero', 'null']]
    """What a gain is on days without an observation: `zero`, or `null`. Does not affect `followers` and `new_posts`."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 92 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetCreatorSparklinesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, list[int | None]]'
    """The result."""
    meta: 'GetCreatorSparklinesResponseMeta'
    """Scope of the result."""


class GetCreatorSparklinesResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    dates: list[str]
    """UTC days of the window, ascending: one for each value."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    metric: Literal['views', 'likes', 'comments', 'shares', 'engagement', 'followers', 'new_posts']
    """Metric in effect."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class GetCreatorTimeseriesParameters(TypedDict):
    creator_id: str
    """Creator id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetCreatorTimeseriesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[CreatorDay]'
    """The result."""
    meta: 'WindowMeta'
    """Scope of the result."""


class GetHealthResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Health'
    """The result."""


class GetIdentityResponse(TypedDict):
    """`{"data": …}`"""
    data: 'WhoAmI'
    """The result."""


class GetImportParameters(TypedDict):
    import_id: str
    """Import id."""


class GetImportResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Import'
    """The result."""


class GetMetaResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Meta'
    """The result."""


class GetOverviewParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""


class GetOverviewResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'Overview'
    """The result."""
    meta: 'OverviewMeta'
    """Scope of the result."""


class GetSharedOverviewParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""


class GetSharedOverviewResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'CollectionOverview'
    """The result."""
    meta: 'OverviewMeta'
    """Scope of the result."""


class GetSharedReportResponse(TypedDict):
    """`{"data": …}`"""
    data: 'SharedReport'
    """The result."""


class GetSharedTimeseriesParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    group_by: NotRequired[Literal['platform']]
    """Adds the figures of each platform."""
    compare: NotRequired[Literal['previous']]
    """Adds the row of the same position in the previous window, which has as many days."""
    granularity: NotRequired[Literal['day', 'week', 'month']]
    """One row for each day, week (from Monday) or month of the window, with its `end_date`. The window may cut the first and the last. Default: days, without `end_date`."""


class GetSharedTimeseriesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[CollectionRow]'
    """The result."""
    meta: 'WindowMeta'
    """Scope of the result."""


class GetTimeseriesParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    group_by: NotRequired[Literal['platform']]
    """Adds the figures of each platform."""
    compare: NotRequired[Literal['previous']]
    """Adds the row of the same position in the previous window, which has as many days."""
    granularity: NotRequired[Literal['day', 'week', 'month']]
    """One row for each day, week (from Monday) or month of the window, with its `end_date`. The window may cut the first and the last. Default: days, without `end_date`."""


class GetTimeseriesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[SeriesRow]'
    """The result."""
    meta: 'WindowMeta'
    """Scope of the result."""


class GetTrackingCoverageParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetTrackingCoverageResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[CoverageDay]'
    """The result."""
    meta: 'WindowMeta'
    """Scope of the result."""


class GetTrackingResponse(TypedDict):
    """`{"data": …}`"""
    data: 'TrackingHealth'
    """The result."""


class GetVideoAnalyticsParameters(TypedDict):
    video_id: str
    """Video id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date`, `end_date` or both. Default: `7d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive). Without `end_date`, the window ends today."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive). Without `start_date`, the window has 7 days."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    values: NotRequired[Literal['gains', 'cumulative', 'both']]
    """Return what was gained on each day, the counters at its end, or both."""


class GetVideoAnalyticsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[VideoDay]'
    """The result."""
    meta: 'DailyMeta'
    """Scope of the result."""


class GetVideoDeltasParameters(TypedDict):
    video_ids: list[str]
    """Ids of account-discovered or individually tracked videos. At most 100 different values, separated by commas or in repeated parameters."""
    windows: NotRequired[list[int]]
    """Lengths of the look-back windows in days, including today. Default: 1, 7, 14 and 30. At most 10 different values, separated by commas or in repeated parameters."""


class GetVideoDeltasResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: dict[str, dict[str, int]]
    """The result."""
    meta: 'DeltasMeta'
    """Scope of the result."""


class GetVideoMetricsParameters(TypedDict):
    video_ids: list[str]
    """Ids of account-discovered or individually tracked videos. At most 100 different values, separated by commas or in repeated parameters."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""


class GetVideoMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, Gains]'
    """The result."""
    meta: 'GetVideoMetricsResponseMeta'
    """Scope of the result."""


class GetVideoMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class GetVideoParameters(TypedDict):
    video_id: str
    """Video id."""


class GetVideoResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Video'
    """The result."""


class GetWebhookParameters(TypedDict):
    webhook_id: str
    """Webhook id."""


class GetWebhookResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Webhook'
    """The result."""


class HashtagEntry(TypedDict):
    """A hashtag with the videos that carry it."""
    hashtag: str
    """Hashtag in lower case, without `#`."""
    metrics: 'Metrics'
    """Gains of these videos in the window."""
    videos: int
    """Number of videos that carry it, whenever they were posted."""


class Health(TypedDict):
    checks: 'Checks'
    """Status of each part."""
    status: 'HealthStatus'
    """Status of the service."""
    type: str
    """Always `health`."""
    version: str
    """Version of the service."""


class Import(TypedDict):
    """An import over HTTP."""
    accounts: int
    """Number of accounts with rows that were saved; of a dry run, that would be. Known at its end."""
    assumed: list[str]
    """What the file does not say and was assumed, in sentences."""
    created_at: str
    """Time at which the file was complete."""
    dry_run: bool
    """Whether the file is only read, and nothing is stored."""
    error: 'str | None'
    """Why it failed; otherwise null."""
    filename: 'str | None'
    """Name of the file; null if none was sent."""
    finished_at: 'str | None'
    """Time at which it ended; null before."""
    format: 'str | None'
    """Format of the file, as `tidemark import --formats` lists them; null if it is not known."""
    id: str
    """Import id."""
    refusals: 'list[ImportRefusal]'
    """The first 100 refused rows."""
    refused: int
    """Number of rows that were refused so far."""
    rows_read: int
    """Number of rows that were read so far."""
    sample: 'list[dict[str, Any]] | None'
    """Of a dry run, the first five rows as they would be stored; otherwise null."""
    snapshots_written: int
    """Number of observations that were stored so far."""
    status: 'ImportStatus'
    """Where it stands."""
    type: Literal['import']
    """Always `import`."""
    videos: int
    """Number of videos with rows that were saved; of a dry run, that would be. Known at its end."""


class ImportRefusal(TypedDict):
    """A row that was not loaded."""
    line: int
    """Line or row of the file, from 1."""
    reason: str
    """What is wrong with it, with the column and the value."""


class LifetimeCounts(TypedDict):
    """The latest counters of posts together."""
    comments: int
    """Comments."""
    engagement: int
    """Likes, comments and shares."""
    likes: int
    """Likes."""
    shares: int
    """Shares."""
    views: int
    """Views."""


class LinkCreatorAccountParameters(TypedDict):
    creator_id: str
    """Creator id."""
    account_id: str
    """Account id."""


class LinkCreatorAccountResponse(TypedDict):
    """`{"data": …}`"""
    data: 'CreatorAccountLink'
    """The result."""


class ListAccountCategoriesResponse(TypedDict):
    """`{"data": …}`"""
    data: 'list[AccountCategory]'
    """The result."""


class ListAccountStatsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[AccountStats]'
    """The result."""
    meta: 'StatsMeta'
    """Scope of the result."""


class ListAccountVideosParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    q: NotRequired[str]
    """Filter by a substring of the caption, ignoring case."""
    sort: NotRequired[Literal['create_time', '-create_time', 'view_count', '-view_count', 'like_count', '-like_count', 'play_count', '-play_count']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['create_time', 'view_count', 'like_count', 'play_count']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListAccountVideosResponse(TypedDict):
    """A page of a list."""
    data: 'list[Video]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListAccountsParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    q: NotRequired[str]
    """Filter by a substring of the username, ignoring case."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    creator_id: NotRequired[list[str]]
    """Filter by creator: accounts of any of these. At most 100 different values, separated by commas or in repeated parameters."""
    linked: NotRequired[bool]
    """Whether the account has a creator."""
    status: NotRequired[list[Literal['unsupported', 'unavailable', 'paused', 'paused_by_creator', 'failing', 'pending', 'active']]]
    """Filter by `tracking.status`: accounts with any of these. At most 7 different values, separated by commas or in repeated parameters."""
    failure: NotRequired[Literal['not_found', 'transient', 'malformed', 'unsupported', 'internal']]
    """Filter by why the latest attempt failed: accounts with the status `failing` and this reason, as in `failures` of the state of tracking."""
    sort: NotRequired[Literal['added_at', '-added_at', 'username', '-username', 'last_scrape_time', '-last_scrape_time', 'next_attempt_at', '-next_attempt_at', 'follower_count', '-follower_count', 'total_post_count', '-total_post_count', 'view_count', '-view_count', 'like_count', '-like_count', 'play_count', '-play_count']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['added_at', 'username', 'last_scrape_time', 'next_attempt_at', 'follower_count', 'total_post_count', 'view_count', 'like_count', 'play_count']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListAccountsResponse(TypedDict):
    """A page of a list."""
    data: 'list[Account]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListBreakoutsParameters(TypedDict):
    age_days: NotRequired[Literal[1, 3, 7, 14, 30]]
    """Age at which videos are compared, in days after the day on which they were posted."""
    min_multiple: NotRequired[float]
    """Lowest `multiple`."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time. Default: 90 days ago."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    collection_id: NotRequired[str]
    """Filter by collection."""
    hashtag: NotRequired[list[str]]
    """Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter. At most 50 different values, separated by commas or in repeated parameters."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListBreakoutsResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[BreakoutVideo]'
    """Entries of the page."""
    meta: 'BreakoutsMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListCollectionAccountsParameters(TypedDict):
    collection_id: str
    """Collection id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListCollectionAccountsResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[CollectionAccount]'
    """Entries of the page."""
    meta: 'CollectionMembersMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListCollectionCreatorsParameters(TypedDict):
    collection_id: str
    """Collection id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListCollectionCreatorsResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[CollectionCreator]'
    """Entries of the page."""
    meta: 'CollectionMembersMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListCollectionPayoutVideosParameters(TypedDict):
    collection_id: str
    """Collection id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListCollectionPayoutVideosResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[PaidVideo]'
    """Entries of the page."""
    meta: 'PayoutsMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListCollectionPayoutsParameters(TypedDict):
    collection_id: str
    """Collection id."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    group_by: NotRequired[Literal['account', 'creator']]
    """By what posts are added up."""


class ListCollectionPayoutsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[PayoutRow]'
    """The result."""
    meta: 'PayoutsMeta'
    """Scope of the result."""


class ListCollectionSharesParameters(TypedDict):
    collection_id: str
    """Collection id."""
    sort: NotRequired[Literal['added_at', '-added_at']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['added_at']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListCollectionSharesResponse(TypedDict):
    """A page of a list."""
    data: 'list[CollectionShare]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListCollectionVideosParameters(TypedDict):
    collection_id: str
    """Collection id."""
    state: NotRequired[Literal['included', 'excluded', 'rule']]
    """Filter by state: included or excluded by hand, or in the collection by its rule."""
    sort: NotRequired[Literal['create_time', '-create_time', 'view_count', '-view_count', 'like_count', '-like_count', 'play_count', '-play_count']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['create_time', 'view_count', 'like_count', 'play_count']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListCollectionVideosResponse(TypedDict):
    """A page of a list."""
    data: 'list[CollectionVideo]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListCollectionsParameters(TypedDict):
    q: NotRequired[str]
    """Filter by a substring of the name, ignoring case."""
    sort: NotRequired[Literal['name', '-name', 'added_at', '-added_at']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['name', 'added_at']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListCollectionsResponse(TypedDict):
    """A page of a list."""
    data: 'list[Collection]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListContentAgesParameters(TypedDict):
    ids: list[str]
    """Ids of account-discovered or individually tracked videos. At most 100 different values, separated by commas or in repeated parameters."""
    ages: NotRequired[list[int]]
    """Ages in days. Default: 1, 3, 7, 14 and 30. At most 10 different values, separated by commas or in repeated parameters."""


class ListContentAgesResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, list[AgeViews]]'
    """The result."""
    meta: 'ContentAgesMeta'
    """Scope of the result."""


class ListContentParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    kind: NotRequired[Literal['discovered', 'tracked']]
    """Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    is_unavailable: NotRequired[bool]
    """Filter by `is_unavailable`."""
    media_type: NotRequired[list[str]]
    """Filter by media types, as the platform reports them, of which one matches exactly. Videos without a media type do not match. At most 20 different values, separated by commas or in repeated parameters."""
    collection_id: NotRequired[str]
    """Filter by collection."""
    hashtag: NotRequired[list[str]]
    """Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter. At most 50 different values, separated by commas or in repeated parameters."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    q: NotRequired[str]
    """Filter by a substring of the caption, ignoring case."""
    sort: NotRequired[Literal['added_at', '-added_at', 'create_time', '-create_time', 'view_count', '-view_count', 'like_count', '-like_count', 'play_count', '-play_count']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['added_at', 'create_time', 'view_count', 'like_count', 'play_count']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListContentResponse(TypedDict):
    """A page of a list."""
    data: 'list[Content]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListCreatorsParameters(TypedDict):
    q: NotRequired[str]
    """Filter by a substring of the name, ignoring case."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    sort: NotRequired[Literal['name', '-name', 'added_at', '-added_at']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['name', 'added_at']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListCreatorsResponse(TypedDict):
    """A page of a list."""
    data: 'list[Creator]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListEventsParameters(TypedDict):
    type: NotRequired[list[Literal['video.published', 'video.views_reached', 'video.breakout', 'account.followers_reached', 'account.unavailable', 'account.available', 'account.renamed', 'account.failing', 'account.recovered', 'import.ended', 'webhook.disabled']]]
    """Filter by type: events of any of these. At most 11 different values, separated by commas or in repeated parameters."""
    account_id: NotRequired[str]
    """Filter by account, also that of a post."""
    creator_id: NotRequired[str]
    """Filter by the creator that the account has now."""
    collection_id: NotRequired[str]
    """Filter by collection: events of posts that are in it now."""
    created_after: NotRequired[str]
    """Earliest `created_at`: a date, which includes its whole UTC day, or a time."""
    sort: NotRequired[Literal['created_at', '-created_at']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['created_at']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListEventsResponse(TypedDict):
    """A page of a list."""
    data: 'list[Event]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListHashtagsParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    kind: NotRequired[Literal['discovered', 'tracked']]
    """Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    is_unavailable: NotRequired[bool]
    """Filter by `is_unavailable`."""
    media_type: NotRequired[list[str]]
    """Filter by media types, as the platform reports them, of which one matches exactly. Videos without a media type do not match. At most 20 different values, separated by commas or in repeated parameters."""
    collection_id: NotRequired[str]
    """Filter by collection."""
    hashtag: NotRequired[list[str]]
    """Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter. At most 50 different values, separated by commas or in repeated parameters."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    q: NotRequired[str]
    """Filter by a substring of the caption, ignoring case."""
    limit: NotRequired[int]
    """Maximum number of hashtags."""


class ListHashtagsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[HashtagEntry]'
    """The result."""
    meta: 'WindowMeta'
    """Scope of the result."""


class ListImportsParameters(TypedDict):
    sort: NotRequired[Literal['created_at', '-created_at']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['created_at']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListImportsResponse(TypedDict):
    """A page of a list."""
    data: 'list[Import]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListSharedAccountsParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListSharedAccountsResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[CollectionAccount]'
    """Entries of the page."""
    meta: 'CollectionMembersMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListSharedContentParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListSharedContentResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[TopContent]'
    """Entries of the page."""
    meta: 'TopContentMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListSharedCreatorsParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListSharedCreatorsResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[CollectionCreator]'
    """Entries of the page."""
    meta: 'CollectionMembersMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListSharedPayoutsParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    group_by: NotRequired[Literal['account', 'creator']]
    """By what posts are added up."""


class ListSharedPayoutsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[PayoutRow]'
    """The result."""
    meta: 'PayoutsMeta'
    """Scope of the result."""


class ListTopAccountsParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    creator_id: NotRequired[str]
    """Filter by creator."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    status: NotRequired[list[Literal['unsupported', 'unavailable', 'paused', 'paused_by_creator', 'failing', 'pending', 'active']]]
    """Filter by `tracking.status`: accounts with any of these. At most 7 different values, separated by commas or in repeated parameters."""
    q: NotRequired[str]
    """Filter by a substring of the username, ignoring case."""
    linked: NotRequired[bool]
    """Whether the account has a creator."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement', 'engagement_rate', 'followers', 'new_posts']]
    """Metric to rank by: gains of the window, posts in it, or engagement per view."""
    min_gained_views: NotRequired[int]
    """With `metric=engagement_rate`: views that an account has to gain to be ranked. With `include_all`, those with fewer come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """`asc` lists the smallest values first, as losses are, and implies `include_all`. Ties are in the same order either way, and entries without a value come last."""
    include_all: NotRequired[bool]
    """Whether entries are listed that gained nothing, or less."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListTopAccountsResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[TopAccount]'
    """Entries of the page."""
    meta: 'RankingMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListTopContentParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement']]
    """Counter whose gains count; `engagement` is likes, comments and shares."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    kind: NotRequired[Literal['discovered', 'tracked']]
    """Filter by kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    is_unavailable: NotRequired[bool]
    """Filter by `is_unavailable`."""
    media_type: NotRequired[list[str]]
    """Filter by media types, as the platform reports them, of which one matches exactly. Videos without a media type do not match. At most 20 different values, separated by commas or in repeated parameters."""
    collection_id: NotRequired[str]
    """Filter by collection."""
    hashtag: NotRequired[list[str]]
    """Filter by hashtags of the caption, of which the video has any. Case and a leading `#` do not matter. At most 50 different values, separated by commas or in repeated parameters."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time. Videos without a `create_time` do not match."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    q: NotRequired[str]
    """Filter by a substring of the caption, ignoring case."""
    posted: NotRequired[Literal['any', 'in_window']]
    """`in_window` ranks only videos whose `create_time` is on a day of the window."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """`asc` lists the smallest values first, as losses are, and implies `include_all`. Ties are in the same order either way, and entries without a value come last."""
    include_all: NotRequired[bool]
    """Whether entries are listed that gained nothing, or less."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListTopContentResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[TopContent]'
    """Entries of the page."""
    meta: 'TopContentMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListTopCreatorsParameters(TypedDict):
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    include_today: NotRequired[bool]
    """`false` ends a window of 7, 30 or 90 days yesterday, the last complete day."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    category: NotRequired[str]
    """Filter by the category of the account (exact match)."""
    metadata: NotRequired[dict[str, str]]
    """Filter by your own tags of the account: `metadata.KEY=value` for each tag that it has to have, with exactly this value."""
    metric: NotRequired[Literal['views', 'likes', 'comments', 'shares', 'engagement', 'engagement_rate', 'followers', 'new_posts']]
    """Metric to rank by: gains of the window, posts in it, or engagement per view."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """`asc` lists the smallest values first, as losses are, and implies `include_all`. Ties are in the same order either way, and entries without a value come last."""
    include_all: NotRequired[bool]
    """Whether entries are listed that gained nothing, or less."""
    limit: NotRequired[int]
    """Page size."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListTopCreatorsResponse(TypedDict):
    """A page of a ranking."""
    data: 'list[TopCreator]'
    """Entries of the page."""
    meta: 'RankingMeta'
    """Scope of the ranking."""
    pagination: 'Pagination'
    """Position of the page in the ranking."""


class ListVideosOfAccountParameters(TypedDict):
    account_id: str
    """Account id."""
    sort: NotRequired[Literal['create_time', '-create_time', 'view_count', '-view_count', 'like_count', '-like_count', 'play_count', '-play_count']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['create_time', 'view_count', 'like_count', 'play_count']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListVideosOfAccountResponse(TypedDict):
    """A page of a list."""
    data: 'list[Video]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListVideosParameters(TypedDict):
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Filter by platform."""
    account_id: NotRequired[str]
    """Filter by account."""
    creator_id: NotRequired[str]
    """Filter by the creator of the account."""
    is_active: NotRequired[bool]
    """Filter by `is_active`."""
    q: NotRequired[str]
    """Filter by a substring of the caption, ignoring case."""
    sort: NotRequired[Literal['added_at', '-added_at', 'create_time', '-create_time', 'view_count', '-view_count', 'like_count', '-like_count', 'play_count', '-play_count']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['added_at', 'create_time', 'view_count', 'like_count', 'play_count']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListVideosResponse(TypedDict):
    """A page of a list."""
    data: 'list[Video]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListWebhookDeliveriesParameters(TypedDict):
    webhook_id: str
    """Webhook id."""
    sort: NotRequired[Literal['attempted_at', '-attempted_at']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['attempted_at']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListWebhookDeliveriesResponse(TypedDict):
    """A page of a list."""
    data: 'list[WebhookDelivery]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class ListWebhooksParameters(TypedDict):
    sort: NotRequired[Literal['added_at', '-added_at']]
    """Legacy form of the sort: a sort key, with `-` before it for descending."""
    order_by: NotRequired[Literal['added_at']]
    """Sort key; overrides the key of `sort`. Entries without a value come last."""
    order_direction: NotRequired[Literal['asc', 'desc']]
    """Sort direction; overrides the sign of `sort`. Defaults to `desc` if `order_by` is given."""
    limit: NotRequired[int]
    """Page size."""
    include_total: NotRequired[bool]
    """Whether to count all entries of the list, as `pagination.total_count`."""
    cursor: NotRequired[str]
    """Cursor of the page: `pagination.next_cursor` of the previous page, requested with the same filters and sort. Omit it for the first page."""


class ListWebhooksResponse(TypedDict):
    """A page of a list."""
    data: 'list[Webhook]'
    """Entries of the page."""
    filters: dict[str, Any]
    """Filters and sort in effect."""
    pagination: 'Pagination'
    """Position of the page in the list."""


class MarkCollectionVideoBody(TypedDict):
    state: Literal['included', 'excluded']
    """`included`: always in the collection; `excluded`: never."""


class MarkCollectionVideoParameters(TypedDict):
    collection_id: str
    """Collection id."""
    video_id: str
    """Video id."""


class MarkCollectionVideoResponse(TypedDict):
    """`{"data": …}`"""
    data: 'CollectionMark'
    """The result."""


class MarkCollectionVideosBody(TypedDict):
    state: Literal['included', 'excluded', None]
    """`included`: always in the collection; `excluded`: never; null: as the rule says."""
    video_ids: list[str]
    """Video ids."""


class MarkCollectionVideosParameters(TypedDict):
    collection_id: str
    """Collection id."""


class MarkCollectionVideosResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'MarksUpdate'
    """The result."""
    meta: 'MarksMeta'
    """Scope of the result."""


class MarksMeta(TypedDict):
    """Ids without a video."""
    not_found: list[str]
    """Ids that are not videos of the organization."""


class MarksUpdate(TypedDict):
    """The effect of a change of many marks."""
    updated: int
    """Number of the videos that have the state now."""


class Meta(TypedDict):
    """An API version and its URLs."""
    api_version: str
    """Version of the API at this path."""
    deprecation: 'str | None'
    """Date from which the version is deprecated; null if it is not."""
    docs_url: str
    """URL of the documentation."""
    openapi_url: str
    """URL of the OpenAPI document."""
    status: str
    """`current` or `deprecated`."""
    sunset: 'str | None'
    """Date from which the version may be removed; null if it is not deprecated."""
    type: str
    """Always `api_meta`."""
    whoami_url: str
    """URL to test a key with."""


class Metrics(TypedDict):
    """Gains with the rate of engagement."""
    comments: int
    """Comments gained."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    likes: int
    """Likes gained."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class Overview(TypedDict):
    """Current totals, and gains compared with the previous window."""
    comments: 'OverviewComments'
    """Comments gained."""
    engagement: 'OverviewEngagement'
    """Likes, comments and shares gained."""
    engagement_rate: 'OverviewEngagementRate'
    """Engagement per view, rounded to six decimals; null without views."""
    followers: 'OverviewFollowers'
    """Followers of all accounts at the end of the window; null before the first observation."""
    followers_gained: 'OverviewFollowersGained'
    """Followers that the accounts gained: an account that was added in the window counts with what it gained since, not
    with its level."""
    likes: 'OverviewLikes'
    """Likes gained."""
    new_posts: 'OverviewNewPosts'
    """Number of videos posted."""
    plays: 'OverviewPlays'
    """Plays gained; on TikTok a play is a view."""
    shares: 'OverviewShares'
    """Shares gained."""
    totals: 'RecordCounts'
    """Current number of records, whatever the window."""
    views: 'OverviewViews'
    """Views gained."""


class OverviewComments(TypedDict):
    """Comments gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class OverviewEngagement(TypedDict):
    """Likes, comments and shares gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class OverviewEngagementRate(TypedDict):
    """Engagement per view, rounded to six decimals; null without views."""
    change: 'float | None'
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: 'float | None'
    """Value of the window; null if unknown."""
    previous: 'float | None'
    """Value of the previous window; null if unknown."""


class OverviewFollowers(TypedDict):
    """Followers of all accounts at the end of the window; null before the first observation."""
    change: 'int | None'
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: 'int | None'
    """Value of the window; null if unknown."""
    previous: 'int | None'
    """Value of the previous window; null if unknown."""


class OverviewFollowersGained(TypedDict):
    """Followers that the accounts gained: an account that was added in the window counts with what it gained since, not
    with its level."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class OverviewLikes(TypedDict):
    """Likes gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class OverviewMeta(TypedDict):
    """The window and the previous one, which has as many days."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    previous_end_date: str
    """Last day of the previous window (UTC, inclusive), the day before `start_date`."""
    previous_start_date: str
    """First day of the previous window (UTC, inclusive)."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class OverviewNewPosts(TypedDict):
    """Number of videos posted."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class OverviewPlays(TypedDict):
    """Plays gained; on TikTok a play is a view."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class OverviewShares(TypedDict):
    """Shares gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class OverviewViews(TypedDict):
    """Views gained."""
    change: int
    """`current` minus `previous`; null if one is unknown."""
    change_percent: 'float | None'
    """`change` in percent of `previous`, with one decimal; null if `previous` is 0 or unknown."""
    current: int
    """Value of the window; null if unknown."""
    previous: int
    """Value of the previous window; null if unknown."""


class Pagination(TypedDict):
    """Position of a page in its list."""
    has_next: bool
    """False on the last page."""
    limit: int
    """Page size in effect."""
    next_cursor: 'str | None'
    """Cursor of the next page; null on the last page."""
    total_count: NotRequired[int]
    """Number of entries in the whole list; only with `include_total=true`."""


class PaidVideo(TypedDict):
    """A post with what it earns."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    account_username: 'str | None'
    """Username of the account."""
    amount: str
    """Amount in the currency."""
    cover_image_url: 'str | None'
    """Cover image: a stable copy if there is one, otherwise the platform's URL."""
    create_time: 'str | None'
    """Time at which it was posted; null until a source reports it."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    description: 'str | None'
    """Caption."""
    duration: 'float | None'
    """Duration in seconds."""
    external_id: 'str | None'
    """Id on the platform; null until a source reports it."""
    hashtags: list[str]
    """Hashtags of the caption, in lower case and without `#`, in order of appearance."""
    id: str
    """Video id."""
    media_type: 'str | None'
    """Media type as reported by the platform."""
    platform: 'Platform'
    """Platform of the video."""
    reason: 'UnpaidReason | None'
    """Why it earns nothing; null if it is paid."""
    type: 'VideoType'
    """Always `content`."""
    url: 'str | None'
    """URL of the video on the platform."""
    view_count: int
    """Views, by the last scrape."""
    views: int
    """Paid views: the latest counter, or gains of the window."""


class PayoutRow(TypedDict):
    """What the posts of an account or a creator earn."""
    account_id: 'str | None'
    """Account; null with `group_by=creator`, and for posts without an account."""
    account_username: 'str | None'
    """Username of the account."""
    amount: str
    """Amount in the currency."""
    creator_id: 'str | None'
    """Creator; null without one."""
    creator_name: 'str | None'
    """Name of the creator."""
    eligible_videos: int
    """Number of posts that are neither unavailable nor below the minimum."""
    videos: int
    """Number of posts in the collection."""
    views: int
    """Paid views of these posts."""


class PayoutsMeta(TypedDict):
    """The sum, and the window."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    currency: str
    """Currency (ISO 4217)."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""
    total: str
    """Sum of all amounts."""
    video_count: int
    """Number of posts in the collection."""


class Problem(TypedDict):
    """An error response (RFC 9457)."""
    code: str
    """Kind of problem, for programs."""
    detail: str
    """Explanation and advice, for people."""
    errors: NotRequired['list[Violation]']
    """The first 100 violations; with 422 only. `detail` counts all."""
    instance: str
    """Path of the request."""
    request_id: str
    """The `X-Request-ID` of the response."""
    status: int
    """HTTP status."""
    title: str
    """Reason phrase of the status."""
    type: str
    """URN of the kind of problem: `urn:tidemark:error:` and the code in kebab case."""


class QueryAccountMetricsBody(TypedDict):
    account_ids: list[str]
    """Account ids."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""


class QueryAccountMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, AccountGains]'
    """The result."""
    meta: 'QueryAccountMetricsResponseMeta'
    """Scope of the result."""


class QueryAccountMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class QueryAccountVideoMetricsBody(TypedDict):
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    instagram_post_ids: NotRequired[list[int]]
    """Internal ids (`internal_id`) of account-discovered videos of this platform."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    tiktok_video_ids: NotRequired[list[int]]
    """Internal ids (`internal_id`) of account-discovered videos of this platform."""


class QueryAccountVideoMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, Gains]'
    """The result."""
    meta: 'QueryAccountVideoMetricsResponseMeta'
    """Scope of the result."""


class QueryAccountVideoMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[int]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class QueryCreatorMetricsBody(TypedDict):
    creator_ids: list[str]
    """Creator ids."""
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""


class QueryCreatorMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, AccountGains]'
    """The result."""
    meta: 'QueryCreatorMetricsResponseMeta'
    """Scope of the result."""


class QueryCreatorMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class QueryVideoDeltasBody(TypedDict):
    video_ids: list[str]
    """Ids of account-discovered or individually tracked videos."""
    windows: NotRequired[list[int]]
    """Lengths of the look-back windows in days, including today. Default: 1, 7, 14 and 30."""


class QueryVideoDeltasResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: dict[str, dict[str, int]]
    """The result."""
    meta: 'DeltasMeta'
    """Scope of the result."""


class QueryVideoMetricsBody(TypedDict):
    end_date: NotRequired[str]
    """Last day of a `custom` window (UTC, inclusive), at most 731 days from the first to the last."""
    period: NotRequired[Literal['7d', '30d', '90d', 'custom']]
    """The last 7, 30 or 90 UTC days including today, or `custom` with `start_date` and `end_date`. Default: `30d`."""
    start_date: NotRequired[str]
    """First day of a `custom` window (UTC, inclusive)."""
    video_ids: list[str]
    """Ids of account-discovered or individually tracked videos."""


class QueryVideoMetricsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'dict[str, Gains]'
    """The result."""
    meta: 'QueryVideoMetricsResponseMeta'
    """Scope of the result."""


class QueryVideoMetricsResponseMeta(TypedDict):
    """Scope of the result."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    not_found: list[str]
    """Requested ids that do not exist, in request order."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class RankingMeta(TypedDict):
    """The window of a ranking and the previous one, which has as many days."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    metric: Literal['views', 'likes', 'comments', 'shares', 'engagement', 'engagement_rate', 'followers', 'new_posts']
    """Metric that entries are ranked by."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    previous_end_date: str
    """Last day of the previous window (UTC, inclusive), the day before `start_date`."""
    previous_start_date: str
    """First day of the previous window (UTC, inclusive)."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class RankingMetrics(TypedDict):
    """Metrics of accounts over a window."""
    comments: int
    """Comments gained."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    followers: int
    """Followers gained."""
    likes: int
    """Likes gained."""
    new_posts: int
    """Number of discovered videos posted."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class RecordCounts(TypedDict):
    """Number of records of an organization."""
    account_videos: int
    """Account-discovered videos."""
    accounts: int
    """Accounts, including paused ones."""
    active_accounts: int
    """Accounts whose own `is_active` is true."""
    creators: int
    """Creators; with a filter, those of the accounts that match."""
    individual_videos: int
    """Individually tracked videos."""
    videos: int
    """Account-discovered and individually tracked videos, each counted once."""


class Refresh(TypedDict):
    """A requested refresh."""
    id: str
    """Account or video id."""
    refreshable_at: 'str | None'
    """When a request can succeed, if the status is `fresh` or `source_paused`; otherwise null."""
    status: 'RefreshStatus'
    """Status of the refresh."""


class RefreshAccountParameters(TypedDict):
    account_id: str
    """Account id."""


class RefreshAccountResponse(TypedDict):
    """`{"data": …}`"""
    data: 'list[Refresh]'
    """The result."""


class RefreshAccountsBody(TypedDict):
    account_ids: list[str]
    """Accounts to refresh."""


class RefreshAccountsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[Refresh]'
    """The result."""
    meta: 'RefreshMeta'
    """Scope of the result."""


class RefreshMeta(TypedDict):
    """Ids without a record."""
    not_found: list[str]
    """Requested ids that are not accounts of the organization."""


class RefreshVideoParameters(TypedDict):
    video_id: str
    """Video id."""


class RefreshVideoResponse(TypedDict):
    """`{"data": …}`"""
    data: 'list[Refresh]'
    """The result."""


class RemainingPosts(TypedDict):
    """Posts that are in no entry."""
    metrics: 'Metrics'
    """Gains of these posts in the window."""
    videos: int
    """Number of posts."""


class RequestedDelivery(TypedDict):
    """A delivery that was requested."""
    webhook_id: str
    """Webhook id."""


class RetryWebhookDeliveryParameters(TypedDict):
    webhook_id: str
    """Webhook id."""
    delivery_id: str
    """Delivery id."""


class RetryWebhookDeliveryResponse(TypedDict):
    """`{"data": …}`"""
    data: 'RequestedDelivery'
    """The result."""


class RotateWebhookSecretParameters(TypedDict):
    webhook_id: str
    """Webhook id."""


class RotateWebhookSecretResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Webhook'
    """The result."""


class SearchMeta(TypedDict):
    """The query, and the limits of its sections."""
    effective_caps: 'EffectiveCaps'
    """Limits in effect."""
    limit_per_section: int
    """The requested `limit`."""
    query: str
    """The query, trimmed."""


class SearchParameters(TypedDict):
    q: NotRequired[str]
    """Text to find; an empty one finds nothing."""
    limit: NotRequired[int]
    """Maximum number of matches per section."""


class SearchResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'Sections'
    """The result."""
    meta: 'SearchMeta'
    """Scope of the result."""


class Sections(TypedDict):
    """Search results, best first."""
    accounts: 'list[AccountHit]'
    """Accounts whose username matches."""
    creators: 'list[CreatorHit]'
    """Creators whose name matches."""
    videos: 'list[VideoHit]'
    """Videos whose caption matches, account-discovered or individually tracked."""


class SeriesBucket(TypedDict):
    """One or more UTC days."""
    comments: int
    """Comments gained."""
    date: str
    """UTC day, the first of several."""
    end_date: NotRequired[str]
    """Last UTC day; only with `granularity`."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    followers: 'int | None'
    """Followers of all accounts at the end; null before the first observation."""
    likes: int
    """Likes gained."""
    new_posts: int
    """Number of videos posted."""
    observed: int
    """Number of accounts, and of individually tracked videos without an account, that were observed; of several days, on
    the one with the most. An account is observed when its profile or one of its videos is."""
    platforms: NotRequired['FiguresByPlatform']
    """Figures by platform; only with `group_by=platform`."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class SeriesFigures(TypedDict):
    """Figures of one or more UTC days."""
    comments: int
    """Comments gained."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    followers: 'int | None'
    """Followers of all accounts at the end; null before the first observation."""
    likes: int
    """Likes gained."""
    new_posts: int
    """Number of videos posted."""
    observed: int
    """Number of accounts, and of individually tracked videos without an account, that were observed; of several days, on
    the one with the most. An account is observed when its profile or one of its videos is."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class SeriesRow(TypedDict):
    """One or more UTC days of the window."""
    comments: int
    """Comments gained."""
    date: str
    """UTC day, the first of several."""
    end_date: NotRequired[str]
    """Last UTC day; only with `granularity`."""
    engagement: int
    """Likes, comments and shares gained."""
    engagement_rate: 'float | None'
    """`engagement` per view, rounded to six decimals; null without views."""
    followers: 'int | None'
    """Followers of all accounts at the end; null before the first observation."""
    likes: int
    """Likes gained."""
    new_posts: int
    """Number of videos posted."""
    observed: int
    """Number of accounts, and of individually tracked videos without an account, that were observed; of several days, on
    the one with the most. An account is observed when its profile or one of its videos is."""
    platforms: NotRequired['FiguresByPlatform']
    """Figures by platform; only with `group_by=platform`."""
    plays: int
    """Plays gained; on TikTok a play is a view."""
    previous: NotRequired['SeriesBucket']
    """The days of the same position in the previous window; only with `compare=previous`."""
    shares: int
    """Shares gained."""
    views: int
    """Views gained."""


class SharedReport(TypedDict):
    """A report."""
    expires_at: str
    """Time at which the link ends."""
    name: str
    """Name of the share."""
    period: 'SharePeriod'
    """Window of the report, unless another one is requested."""
    show: 'list[SharePart]'
    """Parts of the report."""
    type: Literal['shared_report']
    """Always `shared_report`."""


class Source(TypedDict):
    """Where data of a platform comes from."""
    name: str
    """Name of the source."""
    paused_until: 'str | None'
    """When it is tried again; null if it is not paused."""
    platform: 'Platform'
    """Platform that it reads."""
    reason: 'PauseCause | None'
    """Why it is paused; null if it is not."""
    status: 'SourceStatus'
    """Whether it can be used."""


class StatsMeta(TypedDict):
    """The days of the post counts."""
    days: list[str]
    """UTC days, oldest first; the last one is today."""


class StatusCounts(TypedDict):
    """Number of records by tracking status."""
    active: int
    """Scraped at their interval."""
    failing: int
    """The latest attempt failed; it is retried."""
    paused: int
    """Their own `is_active` is false."""
    paused_by_creator: int
    """Their creator's `is_active` is false."""
    pending: int
    """Not scraped yet."""
    unavailable: int
    """The platform no longer shows them."""
    unsupported: int
    """No configured source can scrape them."""


class TestWebhookParameters(TypedDict):
    webhook_id: str
    """Webhook id."""


class TestWebhookResponse(TypedDict):
    """`{"data": …}`"""
    data: 'RequestedDelivery'
    """The result."""


class TopAccount(TypedDict):
    """An account in the ranking."""
    change_percent: 'float | None'
    """Change of the metric that is ranked by, in percent of its previous value, with one decimal; null if that is 0 or
    unknown."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    follower_count: int
    """Followers at the latest scrape."""
    id: str
    """Account id."""
    is_active: bool
    """Whether tracking is active; `false` if paused."""
    metrics: 'RankingMetrics'
    """Metrics of the window."""
    name: 'str | None'
    """Display name; null before the first scrape, or if there is none."""
    platform: 'Platform'
    """Platform of the account."""
    previous: 'RankingMetrics'
    """Metrics of the previous window."""
    profile_pic_url: 'str | None'
    """Profile picture: a stable copy if there is one, otherwise the platform's URL."""
    tracking: 'Tracking'
    """Tracking status."""
    type: Literal['account']
    """Always `account`."""
    username: str
    """Username on the platform, in lower case, without `@`."""


class TopContent(TypedDict):
    """A video in the ranking."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    account_username: 'str | None'
    """Username of the account."""
    cover_image_url: 'str | None'
    """Cover image: a stable copy if there is one, otherwise the platform's URL."""
    create_time: 'str | None'
    """Time at which it was posted; null until a source reports it."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    description: 'str | None'
    """Caption."""
    duration: 'float | None'
    """Duration in seconds."""
    external_id: 'str | None'
    """Id on the platform; null until a source reports it."""
    hashtags: list[str]
    """Hashtags of the caption, in lower case and without `#`, in order of appearance."""
    id: str
    """Video id."""
    media_type: 'str | None'
    """Media type as reported by the platform."""
    metrics: 'Metrics'
    """Gains of the window."""
    platform: 'Platform'
    """Platform of the video."""
    type: 'VideoType'
    """Always `content`."""
    unknown_counters: list[Literal['view_count', 'like_count', 'comment_count', 'share_count', 'saved_count', 'play_count', 'ig_play_count', 'fb_play_count', 'fb_like_count']]
    """Counters that the platform has and that were never known, for example hidden likes: their gains are 0."""
    url: 'str | None'
    """URL of the video on the platform."""
    view_count: int
    """Views, by the last scrape."""


class TopContentMeta(TypedDict):
    """The window and the metric of a ranking."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    metric: Literal['views', 'likes', 'comments', 'shares', 'engagement']
    """Metric that videos are ranked by."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""


class TopCreator(TypedDict):
    """A creator in the ranking."""
    account_count: int
    """Number of its accounts that match."""
    change_percent: 'float | None'
    """Change of the metric that is ranked by, in percent of its previous value, with one decimal; null if that is 0 or
    unknown."""
    engagement: int
    """Likes, comments and shares that its accounts gained."""
    follower_count: int
    """Current followers of these accounts together."""
    id: str
    """Creator id."""
    metrics: 'RankingMetrics'
    """Metrics of the window."""
    name: str
    """Name of the creator."""
    previous: 'RankingMetrics'
    """Metrics of the previous window."""
    type: Literal['creator']
    """Always `creator`."""
    views: int
    """Views that its accounts gained."""


class TrackerCheck(TypedDict):
    """The result of the tracker's check, and its queue."""
    detail: NotRequired[str]
    """Problem and remedy, or the paused source; absent if there is nothing to report."""
    due: 'int | None'
    """Accounts and videos whose next attempt is due and has not begun; null if unknown."""
    failing: 'int | None'
    """Accounts and videos whose latest attempt failed; null if unknown."""
    lag_seconds: 'int | None'
    """How long the oldest due attempt has waited; null if unknown."""
    latency_ms: int
    """Duration of the check in milliseconds."""
    status: 'HealthStatus'
    """Status of the part."""


class Tracking(TypedDict):
    """Whether a record is updated, and why not."""
    last_attempt_at: 'str | None'
    """Time of the latest attempt, successful or not; null before the first."""
    last_error: 'str | None'
    """Error of the latest attempt; null if it succeeded."""
    next_attempt_at: 'str | None'
    """Time of the next attempt; null if none is planned."""
    status: 'TrackingStatus'
    """Status of tracking."""


class TrackingHealth(TypedDict):
    """State of an organization's tracking."""
    accounts: 'StatusCounts'
    """Accounts by tracking status."""
    due: int
    """Accounts and individually tracked videos whose next attempt is due and has not begun."""
    failures: 'list[Failures]'
    """Records that fail now, by reason; reasons without a record are absent."""
    in_flight: int
    """Attempts in progress."""
    lag_seconds: int
    """How long the oldest due attempt has waited; 0 if none is due."""
    scrapes_24h: 'AttemptCounts'
    """Attempts that ended in the last 24 hours, to the minute."""
    sources: 'list[Source]'
    """Sources of the installation, in the order in which they are tried."""
    videos: 'StatusCounts'
    """Individually tracked videos by tracking status."""


class UnlinkCreatorAccountParameters(TypedDict):
    creator_id: str
    """Creator id."""
    account_id: str
    """Account id."""


class UnmarkCollectionVideoParameters(TypedDict):
    collection_id: str
    """Collection id."""
    video_id: str
    """Video id."""


class UpdateAccountBody(TypedDict):
    category: NotRequired['str | None']
    """Your own label; null removes it."""
    creator_id: NotRequired['str | None']
    """Creator of the account; null unlinks it."""
    is_active: NotRequired[bool]
    """`false` pauses tracking, `true` resumes it."""
    max_recent_posts_per_account: NotRequired['int | None']
    """Maximum number of posts that the first scrape reads; null for the organization's default."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags, replacing all existing ones."""
    post_lookback_days: NotRequired['int | None']
    """Number of days that the first scrape goes back; null for the organization's default."""
    scrape_interval_hours: NotRequired[int]
    """Hours between scrapes."""
    username: NotRequired[str]
    """New username or profile URL, if the account was renamed on its platform or could never be scraped under the current one."""


class UpdateAccountParameters(TypedDict):
    account_id: str
    """Account id, or username with a leading `@`."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Platform of the username, if it is tracked on both."""


class UpdateAccountResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Account'
    """The result."""


class UpdateAccountsBody(TypedDict):
    ids: list[str]
    """Accounts to update."""
    set: 'UpdateAccountsBodySet'
    """Fields to change."""


class UpdateAccountsBodySet(TypedDict):
    """Fields to change."""
    category: NotRequired['str | None']
    """Your own label; null removes it."""
    creator_id: NotRequired['str | None']
    """Creator of the account; null unlinks it."""
    is_active: NotRequired[bool]
    """`false` pauses tracking, `true` resumes it."""
    max_recent_posts_per_account: NotRequired['int | None']
    """Maximum number of posts that the first scrape reads; null for the organization's default."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags, replacing all existing ones."""
    post_lookback_days: NotRequired['int | None']
    """Number of days that the first scrape goes back; null for the organization's default."""
    scrape_interval_hours: NotRequired[int]
    """Hours between scrapes."""


class UpdateAccountsResponse(TypedDict):
    """`{"data": …, "meta": …}`"""
    data: 'list[BatchItemResult]'
    """The result."""
    meta: 'BatchMeta'
    """Scope of the result."""


class UpdateCollectionBody(TypedDict):
    description: NotRequired['str | None']
    """Description; null removes it."""
    name: NotRequired[str]
    """Name, unique in the organization whatever its case."""
    payout: NotRequired['UpdateCollectionBodyPayout | None']
    """How posts are paid, replacing all existing terms; null removes them."""
    rule: NotRequired['UpdateCollectionBodyRule | None']
    """Rule, replacing the whole existing one; null removes it."""


class UpdateCollectionBodyPayout(TypedDict):
    """How posts are paid, replacing all existing terms; null removes them."""
    bonuses: NotRequired['list[UpdateCollectionBodyPayoutBonuses]']
    """Amounts for views that a post reaches; those of all reached ones are added. Only with `lifetime`."""
    count: NotRequired[Literal['lifetime', 'window']]
    """Views that are paid: the latest counters, or the gains of the window."""
    currency: str
    """Currency (ISO 4217)."""
    maximum_per_video: NotRequired['str | None']
    """The most that a post earns, bonuses included."""
    minimum_views: NotRequired['int | None']
    """Views below which a post earns nothing."""
    per_thousand_views: NotRequired['str | None']
    """Amount for a thousand views, with up to six decimals."""


class UpdateCollectionBodyPayoutBonuses(TypedDict):
    amount: str
    """Amount."""
    views: int
    """Views to reach."""


class UpdateCollectionBodyRule(TypedDict):
    """Rule, replacing the whole existing one; null removes it."""
    account_ids: NotRequired[list[str]]
    """Accounts, of which one matches."""
    category: NotRequired[str]
    """Category of the account (exact match)."""
    creator_ids: NotRequired[list[str]]
    """Creators of the account, of which one matches."""
    hashtags: NotRequired[list[str]]
    """Hashtags of the caption, of which one matches. Case and a leading `#` do not matter."""
    kind: NotRequired[Literal['discovered', 'tracked']]
    """Kind: `discovered` on an account, or `tracked` individually. A video of both kinds matches either."""
    media_types: NotRequired[list[str]]
    """Media types, as the platform reports them, of which one matches exactly."""
    metadata: NotRequired[dict[str, str]]
    """Tags of the account, which has to have all of them."""
    min_views: NotRequired[int]
    """Lowest `view_count`."""
    platform: NotRequired[Literal['instagram', 'tiktok']]
    """Platform."""
    posted_after: NotRequired[str]
    """Earliest `create_time`: a date, which includes its whole UTC day, or a time."""
    posted_before: NotRequired[str]
    """Latest `create_time`: a date, which includes its whole UTC day, or a time."""
    q: NotRequired[str]
    """Substring of the caption, ignoring case."""


class UpdateCollectionParameters(TypedDict):
    collection_id: str
    """Collection id."""


class UpdateCollectionResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Collection'
    """The result."""


class UpdateCreatorBody(TypedDict):
    is_active: NotRequired[bool]
    """`false` pauses tracking of all its accounts."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags, replacing all existing ones."""
    name: NotRequired[str]
    """Name; need not be unique."""


class UpdateCreatorParameters(TypedDict):
    creator_id: str
    """Creator id."""


class UpdateCreatorResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Creator'
    """The result."""


class UpdateVideoBody(TypedDict):
    is_active: NotRequired[bool]
    """`false` pauses tracking, `true` resumes it."""
    metadata: NotRequired[dict[str, str]]
    """Your own tags, replacing all existing ones."""
    scrape_interval_hours: NotRequired[int]
    """Hours between scrapes."""


class UpdateVideoParameters(TypedDict):
    video_id: str
    """Video id."""


class UpdateVideoResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Video'
    """The result."""


class UpdateWebhookBody(TypedDict):
    description: NotRequired['str | None']
    """Description; null removes it."""
    filter: NotRequired['UpdateWebhookBodyFilter | None']
    """Which of their events to send, replacing the whole existing filter; null for all."""
    format: NotRequired[Literal['standard', 'slack', 'discord']]
    """What to send."""
    is_active: NotRequired[bool]
    """Whether to send events. True also enables a disabled webhook, from the next event on; false ends retries."""
    types: NotRequired["list[Literal['video.published', 'video.views_reached', 'video.breakout', 'account.followers_reached', 'account.unavailable', 'account.available', 'account.renamed', 'account.failing', 'account.recovered', 'import.ended', 'webhook.disabled']] | None"]
    """Types of events to send; null for all."""
    url: NotRequired[str]
    """URL of the receiver. It begins with https://, and its addresses are public; the operator may allow other hosts."""


class UpdateWebhookBodyFilter(TypedDict):
    """Which of their events to send, replacing the whole existing filter; null for all."""
    account_ids: NotRequired['list[str] | None']
    """Accounts, of which one matches; null for all."""
    collection_ids: NotRequired['list[str] | None']
    """Collections that the post is in when the event is delivered, of which one matches; null for all."""
    creator_ids: NotRequired['list[str] | None']
    """Creators that the account has when the event is delivered, of which one matches; null for all."""


class UpdateWebhookParameters(TypedDict):
    webhook_id: str
    """Webhook id."""


class UpdateWebhookResponse(TypedDict):
    """`{"data": …}`"""
    data: 'Webhook'
    """The result."""


class Video(TypedDict):
    """A video, with its latest counters and the account on which it was discovered."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    account_name: 'str | None'
    """Display name of the account that posted it."""
    account_username: 'str | None'
    """Username of the account that posted it."""
    added_at: str
    """Time at which the video was discovered or added; under `/content` the earlier one if both."""
    comment_count: int
    """Comments, by the last scrape."""
    cover_image_url: 'str | None'
    """Cover image: a stable copy if there is one, otherwise the platform's URL."""
    cover_image_url_original: 'str | None'
    """Cover image at the platform; the URL expires."""
    create_time: 'str | None'
    """Time at which it was posted; null until a source reports it."""
    creator_id: 'str | None'
    """Creator of the account; null if it has none."""
    creator_name: 'str | None'
    """Name of the creator."""
    description: 'str | None'
    """Caption."""
    duration: 'float | None'
    """Duration in seconds."""
    external_id: 'str | None'
    """Id on the platform; null until it is known. On Instagram the Graph id, else the pk."""
    fb_like_count: 'int | None'
    """Likes on Facebook, by the last scrape; null if the platform never reported them."""
    fb_play_count: 'int | None'
    """Plays on Facebook, by the last scrape; null if the platform never reported them."""
    first_scrape_time: 'str | None'
    """Time of the first scrape; null before it."""
    hashtags: list[str]
    """Hashtags of the caption, in lower case and without `#`, in order of appearance."""
    id: str
    """Video id."""
    ig_play_count: 'int | None'
    """Plays on Instagram, by the last scrape; null if the platform never reported them."""
    internal_id: int
    """Id for `/account-videos/metrics`, unique over both platforms."""
    is_active: bool
    """Whether individual tracking is active; `false` if paused."""
    is_tracked: bool
    """Whether the video is tracked individually."""
    is_unavailable: bool
    """Whether the platform no longer shows the video."""
    last_scrape_time: 'str | None'
    """Time of the latest scrape; null before the first."""
    like_count: int
    """Likes, by the last scrape."""
    media_type: 'str | None'
    """Media type as reported by the platform."""
    metadata: dict[str, str]
    """Your own tags."""
    platform: 'Platform'
    """Platform of the video."""
    platform_account_id: 'str | None'
    """Id on the platform of the account that posted it."""
    platform_data: dict[str, Any]
    """Other data that the platform reported."""
    play_count: int
    """Plays (on TikTok equal to views), by the last scrape."""
    saved_count: 'int | None'
    """Saves, by the last scrape; null if the platform never reported them."""
    scrape_interval_hours: int
    """Hours between scrapes, if tracked individually."""
    share_count: int
    """Shares, by the last scrape."""
    shortcode: 'str | None'
    """Shortcode in Instagram URLs; null on TikTok."""
    tracking: 'Tracking'
    """Tracking status."""
    type: 'VideoType'
    """`account_video` under `/account-videos`, `video` under `/videos`, `content` under `/content`."""
    unknown_counters: list[Literal['view_count', 'like_count', 'comment_count', 'share_count', 'saved_count', 'play_count', 'ig_play_count', 'fb_play_count', 'fb_like_count']]
    """Counters that the platform has and that were never known, for example hidden likes: their value is 0 or null."""
    updated_at: str
    """Time of the latest change of the record."""
    url: 'str | None'
    """URL of the video on the platform."""
    video_url: 'str | None'
    """Video file: a stable copy if there is one, otherwise the platform's URL."""
    video_url_original: 'str | None'
    """Video file at the platform; the URL expires."""
    view_count: int
    """Views, by the last scrape."""


class VideoAgesMeta(TypedDict):
    """The video."""
    id: str
    """Video id."""


class VideoDay(TypedDict):
    """One UTC day of a video."""
    comment_count: 'int | None'
    """Comments."""
    date: str
    """UTC day."""
    fb_like_count: 'int | None'
    """Likes on Facebook."""
    fb_play_count: 'int | None'
    """Plays on Facebook."""
    ig_play_count: 'int | None'
    """Plays on Instagram."""
    levels: NotRequired['Counters']
    """Counters at the end of the day; only with `values=both`."""
    like_count: 'int | None'
    """Likes."""
    observed: bool
    """Whether the video was observed on this day."""
    play_count: 'int | None'
    """Plays (on TikTok equal to views)."""
    saved_count: 'int | None'
    """Saves."""
    share_count: 'int | None'
    """Shares."""
    since: NotRequired['str | None']
    """Day of the observation before, since which it gained what this day shows; null without one, and on days without an
    observation. Only with `values=both`."""
    view_count: 'int | None'
    """Views."""


class VideoHit(TypedDict):
    """A video whose caption matches."""
    account_id: 'str | None'
    """Tracked account on which the video was discovered; null if none."""
    account_username: 'str | None'
    """Username of the account that posted it."""
    caption: 'str | None'
    """Caption."""
    cover_image_url: 'str | None'
    """Cover image: a stable copy if there is one, otherwise the platform's URL."""
    create_time: 'str | None'
    """Time at which it was posted; null if unknown."""
    creator_name: 'str | None'
    """Name of that account's creator."""
    id: str
    """Video id."""
    platform: 'Platform'
    """Platform of the video."""
    view_count: int
    """Views at the latest scrape."""


class Violation(TypedDict):
    """A field that is wrong."""
    field: str
    """Dotted path of the field, such as `metadata.team` or `instagram_post_ids[3]`."""
    message: str
    """Requirement on the field."""


class Webhook(TypedDict):
    """A receiver of events."""
    added_at: str
    """Time at which the webhook was created."""
    description: 'str | None'
    """Description."""
    failing_since: 'str | None'
    """First failure since the last success; null if the latest attempt succeeded."""
    filter: 'WebhookFilter | None'
    """Which of their events are sent; null for all."""
    format: 'WebhookFormat'
    """What is sent."""
    id: str
    """Webhook id."""
    is_active: bool
    """Whether events are sent. Those of the time in which they are not are passed over."""
    secret: 'str | None'
    """Signing secret; only in responses with status 201, null otherwise."""
    status: 'WebhookStatus'
    """Whether it works."""
    type: Literal['webhook']
    """Always `webhook`."""
    types: 'list[EventType] | None'
    """Types of events that are sent; null for all."""
    updated_at: str
    """Time of the latest change by a request."""
    url: str
    """URL of the receiver."""


class WebhookDelivery(TypedDict):
    """An attempt to deliver an event."""
    attempt: int
    """Number of the attempt to deliver this event, from 1."""
    attempted_at: str
    """Time of the attempt."""
    duration_ms: int
    """Milliseconds until the response, or the failure."""
    error: 'str | None'
    """Why it failed; null if it succeeded."""
    event_id: 'str | None'
    """Event id; null for a test."""
    id: str
    """Delivery id."""
    next_attempt_at: 'str | None'
    """Time of the next attempt, after the latest one of an event; null if there is none."""
    response_body: 'str | None'
    """First 1,024 bytes of the receiver's response; null without a response."""
    response_code: 'int | None'
    """HTTP status of the receiver; null without a response."""
    status: 'DeliveryStatus'
    """How it ended."""
    type: str
    """Type of the event, or `webhook.test`."""


class WebhookFilter(TypedDict):
    """Which events a webhook reports: those for which every condition holds. None without an account."""
    account_ids: 'list[str] | None'
    """Accounts, of which one matches; null for all."""
    collection_ids: 'list[str] | None'
    """Collections that the post is in when the event is delivered, of which one matches; null for all."""
    creator_ids: 'list[str] | None'
    """Creators that the account has when the event is delivered, of which one matches; null for all."""


class WhoAmI(TypedDict):
    """The organization and the permissions of an API key."""
    api_key_name: str
    """Name of the key."""
    history_since: NotRequired[str]
    """First UTC day with history; absent if the organization does not limit its history."""
    organization: 'CallerOrganization'
    """Organization of the key, with its name."""
    organization_id: str
    """Organization of the key."""
    rate_limit: int
    """Requests per clock minute."""
    scopes: 'list[Scope]'
    """Scopes of the key, including implied ones."""
    type: str
    """Always `whoami`."""
    usage: 'AccountUsage'
    """Accounts of the organization."""


class WindowMeta(TypedDict):
    """The window of a response."""
    complete_through: str
    """Last complete UTC day, no later than `end_date`."""
    data_as_of: 'str | None'
    """Time of the latest observation included; null if there is none."""
    days: int
    """Number of days of the window."""
    end_date: str
    """Last day of the window (UTC, inclusive)."""
    period: 'Period'
    """The requested period; `custom` if dates were sent."""
    start_date: str
    """First day of the window (UTC, inclusive)."""
