// The daily history of one record: gains, or counters at the end of each day.

import { useState } from "preact/hooks";

import type { Resource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import { exact } from "../format.ts";
import { Card } from "./parts.tsx";

const COUNTERS = [
  { name: "view_count", title: "Views" },
  { name: "like_count", title: "Likes" },
  { name: "comment_count", title: "Comments" },
  { name: "share_count", title: "Shares" },
  { name: "saved_count", title: "Saves" },
] as const;
type Counter = (typeof COUNTERS)[number]["name"];
type Counts = Record<Counter, number | null>;

export interface HistoryDay extends Counts {
  date: string;
  levels?: Counts | null;
  observed: boolean | number;
}

interface Props {
  resource: Resource<{ data: readonly HistoryDay[]; meta: { complete_through: string } }>;
}

/** Days without an observation are gaps. */
export function HistoryCard({ resource }: Props) {
  const [counter, setCounter] = useState<Counter>("view_count");
  const [isCumulative, setCumulative] = useState(false);
  const title = COUNTERS.find(({ name }) => name === counter)?.title ?? "";
  const actions = (
    <div class="controls">
      <select aria-label="Counter" value={counter} onChange={(event) => setCounter(event.currentTarget.value as Counter)}>
        {COUNTERS.map(({ name, title }) => <option key={name} value={name}>{title}</option>)}
      </select>
      <select aria-label="Values" value={isCumulative ? "levels" : "gains"} onChange={(event) => setCumulative(event.currentTarget.value === "levels")}>
        <option value="gains">gained each day</option>
        <option value="levels">in all</option>
      </select>
    </div>
  );
  return (
    <Card title="History" resource={resource} height={300} actions={actions}>
      {({ data, meta }) => {
        const value = (day: HistoryDay) => (isCumulative ? day.levels?.[counter] ?? null : day.observed ? day[counter] : null);
        return (
          <LineChart title={`${title} ${isCumulative ? "at the end of each day" : "gained per day"}`} dates={data.map(({ date }) => date)}
            series={[{ name: title, values: data.map(value), colour: 1 }]} today={data.findIndex(({ date }) => date > meta.complete_through)} format={exact} />
        );
      }}
    </Card>
  );
}
