// What an account or a creator gained in the window.

import type { Resource } from "../api/resource.ts";
import { gain } from "../format.ts";
import { Facts } from "./facts.tsx";
import { Card, Count } from "./parts.tsx";

const FIGURES = [
  ["Views", "views"],
  ["Likes", "likes"],
  ["Comments", "comments"],
  ["Shares", "shares"],
  ["Followers", "followers"],
] as const;

interface Props {
  id: string;
  resource: Resource<{ data: Record<string, Record<(typeof FIGURES)[number][1], number>> }>;
}

export function GainsCard({ id, resource }: Props) {
  return (
    <Card title="Gained in this period" resource={resource} height={60}>
      {({ data }) => <Facts facts={FIGURES.map(([title, name]) => [title, <Count value={data[id]?.[name]} format={gain} />])} />}
    </Card>
  );
}
