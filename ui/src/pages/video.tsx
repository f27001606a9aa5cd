// One video: its counters, its history, its caption.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { Facts } from "../components/facts.tsx";
import type { PageProps } from "../components/frame.tsx";
import { HistoryCard } from "../components/history.tsx";
import { Card, Count, Picture, ProblemNotice, Status } from "../components/parts.tsx";
import { rate, time } from "../format.ts";
import { linkTo, view, windowParameters } from "../state/view.ts";

export function VideoPage({ id }: PageProps) {
  const window = windowParameters(view.value.range);
  const video = useResource((signal) => unwrap(api.GET("/content/{video_id}", { params: { path: { video_id: id } }, signal })), [id]);
  const history = useResource(
    (signal) => unwrap(api.GET("/videos/{video_id}/analytics", { params: { path: { video_id: id }, query: { ...window, values: "both" } }, signal })),
    [id, JSON.stringify(window)],
  );
  const record = video.data?.data;
  return (
    <>
      {video.problem && <ProblemNotice problem={video.problem} retry={video.reload} />}
      <div class="page-head">
        {record && <Picture id={record.id} name={record.account_username ?? "?"} kind="cover" />}
        <div class="grow">
          <h1>{record?.account_username ? `Post of @${record.account_username}` : "Post"}</h1>
          <p class="quiet small">{record && `${PLATFORM_NAMES[record.platform]} · posted ${time(record.create_time)}`}</p>
        </div>
        <Controls />
      </div>
      <Card title="Since it was posted" resource={video} height={60}>
        {({ data }) => (
          <Facts facts={[
            ["Views", <Count value={data.view_count} />], ["Likes", <Count value={data.like_count} />], ["Comments", <Count value={data.comment_count} />],
            ["Shares", <Count value={data.share_count} />], ["Saves", <Count value={data.saved_count} />], ["Engagement rate", rate(data.engagement_rate)],
          ]} />
        )}
      </Card>
      <HistoryCard resource={history} />
      <Card title="Post" resource={video} height={160}>
        {({ data }) => (
          <>
            <p class="caption" dir="auto">{data.description || "No caption."}</p>
            <Facts facts={[
              ["Account", data.account_id ? <a href={linkTo(`/accounts/${data.account_id}`)}>@{data.account_username}</a> : "–"],
              ["Creator", data.creator_id ? <a href={linkTo(`/creators/${data.creator_id}`)}>{data.creator_name}</a> : "–"],
              ["Status", <Status status={data.tracking.status} />],
              ["Last read", time(data.last_scrape_time)],
              ["Link", data.url ? <a href={data.url} target="_blank" rel="noopener noreferrer">Open on {PLATFORM_NAMES[data.platform]}</a> : "–"],
            ]} />
          </>
        )}
      </Card>
    </>
  );
}
