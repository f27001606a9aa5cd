// One video: its counters, its history, its caption, and how it is tracked.

import { mayWrite } from "../api/identity.ts";
import { useResource } from "../api/resource.ts";
import type { components } from "../api/schema.d.ts";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { Facts } from "../components/facts.tsx";
import { marking } from "../components/marks.tsx";
import { Card, Count, ProblemNotice, WindowNote } from "../components/parts.tsx";
import { Picture } from "../components/picture.tsx";
import { clock, gain, rate, time } from "../format.ts";
import { fetchHistory, fetchVideo } from "../loads/records.ts";
import { useTitle } from "../state/title.ts";
import { linkTo, view } from "../state/view.ts";
import type { PageProps } from "./props.ts";
import { AgeCurve, Compared, useAges } from "./video/age-curve.tsx";
import { type Counts, HistoryCard } from "./video/history.tsx";
import { accountLink, VideoTracking } from "./video/tracking.tsx";
import * as css from "./video.module.css";

type Content = components["schemas"]["Content"];

const COUNTERS = [
  ["Views", "view_count"],
  ["Likes", "like_count"],
  ["Comments", "comment_count"],
  ["Shares", "share_count"],
  ["Saves", "saved_count"],
] as const;

export default function VideoPage({ id, identity }: PageProps) {
  const current = view.value;
  const video = useResource((signal) => fetchVideo(id, signal), [id]);
  const history = useResource(
    (signal) => fetchHistory(id, current, signal),
    [id, JSON.stringify(current.range)],
  );
  const record = video.data;
  const ages = useAges(record);
  useTitle(record && (record.description || `Post of @${record.account_username ?? "nobody"}`));
  if (video.problem?.status === 404)
    return (
      <>
        <div class="page-head">
          <h1>Post</h1>
        </div>
        <ProblemNotice of={video} />
      </>
    );
  const posted = record?.create_time?.slice(0, 10);
  return (
    <>
      <div class={`page-head ${css.head}`}>
        <Picture
          id={record?.account_id ?? id}
          name={record ? (record.account_username ?? PLATFORM_NAMES[record.platform]) : "?"}
          kind="cover"
          src={record?.cover_image_url ?? null}
        />
        <div class="grow">
          <h1 class={css.title}>
            <span dir="auto">{record ? record.description || "Post without a caption" : "Post"}</span>
          </h1>
          <p class="small quiet">{record ? <Origin video={record} /> : "\u00a0"}</p>
          <WindowNote meta={history.data?.meta} />
          {record && <Compared video={record} ages={ages} />}
        </div>
        {mayWrite(identity) && record && (
          <button
            type="button"
            onClick={() =>
              (marking.value = { ids: [id], name: record.description || "Post without a caption" })
            }
          >
            Add to a collection…
          </button>
        )}
        <Controls hasComparison={false} hasPlatform={false} />
      </div>
      <Card
        title="Counters"
        note="since it was posted, and gained in this period"
        resource={video}
        requests={history.requests}
        height={74}
        placeholder={<Counters />}
      >
        {(video) => <Counters video={video} gains={history.data?.meta.totals} />}
      </Card>
      <div class="columns charts">
        <HistoryCard resource={history} {...(posted ? { events: new Map([[posted, "Posted"]]) } : {})} />
        <AgeCurve key={id} video={record} ages={ages} />
      </div>
      <div class="columns">
        <Card title="Post" resource={video} height={220}>
          {(video) => <Post video={video} />}
        </Card>
        <Card title="Tracking" resource={video} height={220}>
          {(record) => (
            <VideoTracking
              video={record}
              canWrite={mayWrite(identity) ?? false}
              onChanged={video.reload}
              onPoll={video.refresh}
              onRead={history.refresh}
            />
          )}
        </Card>
      </div>
    </>
  );
}

interface CountersProps {
  /** Without numbers until it is loaded. */
  video?: Content;
  gains?: Counts | null | undefined;
}

function Counters({ video, gains }: CountersProps) {
  const isUnknown = (name: keyof Counts) => video?.unknown_counters.includes(name);
  return (
    <dl class={css.counters}>
      {COUNTERS.map(([title, name]) => (
        <div key={name}>
          <dt class="quiet small">{title}</dt>
          <dd>
            <b>
              {video ? (
                <Count value={isUnknown(name) ? null : video[name]} />
              ) : (
                <span class="skeleton text" />
              )}
            </b>
          </dd>
          <dd class="quiet small">
            <Count value={isUnknown(name) ? null : gains?.[name]} format={gain} />
          </dd>
        </div>
      ))}
      <div>
        <dt class="quiet small">Engagement rate</dt>
        <dd>
          <b>
            {video ? (
              <Count value={isUnknown("like_count") ? null : video.engagement_rate} format={rate} />
            ) : (
              <span class="skeleton text" />
            )}
          </b>
        </dd>
        <dd class="quiet small">{video && isUnknown("like_count") ? "likes are hidden" : "\u00a0"}</dd>
      </div>
    </dl>
  );
}

/** Whose it is, and since when. */
function Origin({ video }: { video: Content }) {
  return (
    <>
      {accountLink(video)} · {PLATFORM_NAMES[video.platform]} · posted {time(video.create_time)}
    </>
  );
}

function Post({ video }: { video: Content }) {
  return (
    <>
      <p class={`${css.caption}${video.description ? "" : " quiet"}`} dir="auto">
        {video.description || "No caption"}
      </p>
      <Facts
        facts={[
          ["Account", accountLink(video)],
          [
            "Creator",
            video.creator_id ? (
              <a class="link" href={linkTo(`/creators/${video.creator_id}`)}>
                <bdi>{video.creator_name}</bdi>
              </a>
            ) : (
              "–"
            ),
          ],
          ["Platform", PLATFORM_NAMES[video.platform]],
          [
            "Type",
            [video.media_type, video.duration ? clock(video.duration) : null].filter(Boolean).join(", ") ||
              "–",
          ],
          ["Posted", time(video.create_time)],
          ["Hashtags", <Hashtags names={video.hashtags} />],
          [
            "Link",
            video.url ? (
              <a class="link" href={video.url} target="_blank" rel="noopener noreferrer">
                Open on {PLATFORM_NAMES[video.platform]} ↗
              </a>
            ) : (
              "–"
            ),
          ],
        ]}
      />
    </>
  );
}

/** Each leads to the posts whose captions have it. */
function Hashtags({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <>–</>;
  return names.map((name) => (
    <>
      <a class="link" dir="auto" href={linkTo("/content", { q: `#${name}` })}>
        #{name}
      </a>{" "}
    </>
  ));
}
