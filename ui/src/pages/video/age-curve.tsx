// How a post did at each age, beside the other posts of its account.

import { api, unwrap } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { components } from "../../api/schema.d.ts";
import { Card, Empty } from "../../components/parts.tsx";
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

/** Empty until the post is known. */
export function AgeCurve({ video }: { video: Content | undefined }) {
  const resource = useResource(video ? (signal) => fetchAges(video, signal) : null, [video?.id], {
    isBelow: true,
  });
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
