// The daily history of one record: gains, or counters at the end of each day.

import type { Resource } from "../api/resource.ts";
import { LineChart } from "../charts/line.tsx";
import { exact } from "../format.ts";
import { setFilters, view } from "../state/view.ts";
import { Card } from "./parts.tsx";

const COUNTERS = [
  { name: "view_count", title: "Views" },
  { name: "like_count", title: "Likes" },
  { name: "comment_count", title: "Comments" },
  { name: "share_count", title: "Shares" },
  { name: "saved_count", title: "Saves" },
  { name: "play_count", title: "Plays" },
] as const;
type Counter = (typeof COUNTERS)[number]["name"];
export type Counts = Record<Counter, number | null>;

export interface HistoryDay extends Counts {
  date: string;
  levels?: Counts | null;
  observed: boolean | number;
}

interface Props {
  resource: Resource<{ data: readonly HistoryDay[]; meta: { complete_through: string } }>;
  /** What happened on some days. */
  events?: ReadonlyMap<string, string>;
}

/** Days without an observation are gaps. The counter, and whether it is cumulative, are in the address. */
export function HistoryCard({ resource, events }: Props) {
  const { filters } = view.value;
  const { name: counter, title } =
    COUNTERS.find(({ name }) => name === filters.get("counter")) ?? COUNTERS[0];
  const isCumulative = filters.get("values") === "cumulative";
  const actions = (
    <>
      <select
        aria-label="Counter"
        value={counter}
        onChange={(event) =>
          setFilters({
            counter: event.currentTarget.value === COUNTERS[0].name ? null : event.currentTarget.value,
          })
        }
      >
        {COUNTERS.map(({ name, title }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
      <select
        aria-label="Values"
        value={isCumulative ? "cumulative" : "gains"}
        onChange={(event) =>
          setFilters({ values: event.currentTarget.value === "gains" ? null : event.currentTarget.value })
        }
      >
        <option value="gains">each day</option>
        <option value="cumulative">in all</option>
      </select>
    </>
  );
  return (
    <Card
      title={`${title} ${isCumulative ? "at the end of each day" : "per day"}`}
      resource={resource}
      height={292}
      actions={actions}
    >
      {({ data, meta }) => {
        const value = (day: HistoryDay) =>
          !day.observed ? null : isCumulative ? (day.levels?.[counter] ?? null) : day[counter];
        const marks = new Map(
          data.flatMap(({ date }, position) =>
            events?.has(date) ? [[position, events.get(date) ?? ""] as const] : [],
          ),
        );
        return (
          <LineChart
            title={`${title} ${isCumulative ? "at the end of each day" : "gained per day"}`}
            dates={data.map(({ date }) => date)}
            events={marks}
            base={isCumulative ? "least" : "zero"}
            series={[{ name: title, values: data.map(value), colour: 1 }]}
            today={data.findIndex(({ date }) => date > meta.complete_through)}
            format={exact}
          />
        );
      }}
    </Card>
  );
}
