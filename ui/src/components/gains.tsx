// What an account or a creator gained in the window.

import type { Resource } from "../api/resource.ts";
import { gain } from "../format.ts";
import { FIGURE_NAMES } from "./figures.ts";
import { Card, Count } from "./parts.tsx";

const GAINED = ["views", "likes", "comments", "shares", "engagement", "followers"] as const;

interface Props {
  id: string;
  resource: Resource<{ data: Record<string, Record<(typeof GAINED)[number], number>> }>;
}

export function GainsCard({ id, resource }: Props) {
  return (
    <Card title="Gained in this period" resource={resource} height={50}>
      {({ data }) => (
        <dl class="counters">
          {GAINED.map((name) => <div key={name}><dt class="quiet small">{FIGURE_NAMES[name]}</dt><dd><b><Count value={data[id]?.[name]} format={gain} /></b></dd></div>)}
        </dl>
      )}
    </Card>
  );
}
