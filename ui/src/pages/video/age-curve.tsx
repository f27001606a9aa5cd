// How a post did at each age, beside the other posts of its account: in a sentence and as a chart.

import { api, unwrap } from "../../api/client.ts";
import { type Resource, useResource } from "../../api/resource.ts";
import type { components } from "../../api/schema.d.ts";
import { Card, Empty } from "../../components/parts.tsx";
import { exact, plural, times } from "../../format.ts";
import { AgeChart } from "./age-chart.tsx";

type Content = components["schemas"]["Content"];

const AGES = [1, 2, 3, 5, 7, 10, 14, 21, 30, 60];
const NO_RANGE = { p10: null, p50: null, p90: null };

async function fetchAges({ id, account_id, media_type }: Content, signal: AbortSignal) {
  const type = media_type ? { media_type } : {};
  const [ages, benchmarks] = await Promise.all([
    unwrap(
      api.GET("/content/{video_id}/ages", {
        params: { path: { video_id: id }, query: { ages: AGES } },
        signal,
      }),
    ),
    account_id
      ? unwrap(
          api.GET("/accounts/{account_id}/benchmarks", {
            params: { path: { account_id }, query: { ages: AGES, ...type } },
            signal,
          }),
        )
      : null,
  ]);
  return {
    views: ages.data.map(({ views }) => views),
    usual: AGES.map((_, index) => benchmarks?.data[index]?.views ?? NO_RANGE),
  };
}

type Ages = Resource<Awaited<ReturnType<typeof fetchAges>>>;

/** Empty until the post is known. */
export function useAges(video: Content | undefined): Ages {
  return useResource(video ? (signal) => fetchAges(video, signal) : null, [video?.id], { isBelow: true });
}

/** Whether the post is unusual at the last age that is known of it and of others. */
export function Compared({ video, ages: { data } }: { video: Content; ages: Ages }) {
  const last = data?.views.findLastIndex((views, index) => views !== null && data.usual[index]?.p50) ?? -1;
  const [views, usual] = [data?.views[last], data?.usual[last]];
  if (views === undefined || views === null || !usual?.p50) return null;
  const { p10, p50, p90 } = usual;
  const rank =
    p90 !== null && views > p90
      ? ": more than nine of ten of them"
      : p10 !== null && views < p10
        ? ": fewer than nine of ten of them"
        : "";
  return (
    <p>
      <b title={`${exact(views)} views; half of them have ${exact(p50)} or more`}>{times(views / p50)}</b>{" "}
      what @{video.account_username}’s posts usually have after {plural(AGES[last] ?? 0, "day")}
      {rank}.
    </p>
  );
}

export function AgeCurve({ video, ages: resource }: { video: Content | undefined; ages: Ages }) {
  const hasRange = resource.data?.usual.some(({ p50 }) => p50 !== null);
  return (
    <Card
      title="Views by age"
      note={
        hasRange
          ? `days after it was posted; shaded: four of five of its account’s posts${video?.media_type ? " of this type" : ""}`
          : "days after it was posted"
      }
      resource={resource}
      height={292}
    >
      {({ views, usual }) =>
        views.every((value) => value === null) ? (
          <Empty>Not known: a post has a curve if it was first read within two days and is a day old.</Empty>
        ) : (
          <AgeChart title="Views by age" ages={AGES} values={views} usual={usual} />
        )
      }
    </Card>
  );
}
