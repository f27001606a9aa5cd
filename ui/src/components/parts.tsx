// Small parts that every page uses.

import type { ComponentChildren } from "preact";

import type { ApiProblem } from "../api/client.ts";
import type { Resource } from "../api/resource.ts";
import { change as formatChange, compact, exact, initials } from "../format.ts";

/** A number in short form; its title has all digits. */
export function Count({ value, format = compact }: { value: number | null | undefined; format?: (value: number | null) => string }) {
  return <span title={exact(value)}>{format(value ?? null)}</span>;
}

export function Change({ percent }: { percent: number | null }) {
  const direction = percent === null || percent === 0 ? "" : percent > 0 ? "up" : "down";
  return <span class={`change small ${direction || "quiet"}`} title="Compared with the period before">{formatChange(percent)}</span>;
}

/** A picture by its id: initials on a colour. */
export function Picture({ id, name, kind = "profile" }: { id: string; name: string; kind?: "profile" | "cover" }) {
  const hue = parseInt(id.replaceAll("-", "").slice(-4), 16) % 360;
  return (
    <span class={`picture ${kind}`} style={{ background: `hsl(${hue} 45% 38%)` }} aria-hidden="true">{initials(name)}</span>
  );
}

interface EntityProps {
  id: string;
  href: string;
  name: string;
  detail?: ComponentChildren;
  kind?: "profile" | "cover";
}

/** A picture with a linked name, and a detail below. */
export function Entity({ id, href, name, detail, kind = "profile" }: EntityProps) {
  return (
    <div class="entity">
      <Picture id={id} name={name} kind={kind} />
      <span>
        <a href={href} title={name}><b dir="auto">{name}</b></a>
        {detail && <small class="quiet small">{detail}</small>}
      </span>
    </div>
  );
}

export function ProblemNotice({ problem, retry }: { problem: ApiProblem; retry: () => void }) {
  return (
    <div class="notice" role="alert">
      <p>{problem.message}</p>
      {problem.requestId && <p class="quiet small">Request {problem.requestId}</p>}
      <p><button type="button" class="plain" onClick={retry}>Try again</button></p>
    </div>
  );
}

interface CardProps<T> {
  title: string;
  resource: Resource<T>;
  /** Height while nothing is loaded yet, in pixels. */
  height: number;
  actions?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}

/** A titled part of a page that loads: first a skeleton, then its data, which stays while newer loads. */
export function Card<T>({ title, resource: { data, problem, isLoading, reload }, height, actions, children }: CardProps<T>) {
  return (
    <section class="card" aria-busy={isLoading} aria-label={title}>
      <header><h2>{title}</h2>{actions}</header>
      {problem && <ProblemNotice problem={problem} retry={reload} />}
      {data !== null ? children(data) : !problem && <div class="skeleton" style={{ height: `${height}px` }} />}
    </section>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

const STATUS_TONE: Readonly<Record<string, string>> = {
  active: "ok",
  ok: "ok",
  failing: "bad",
  unavailable: "bad",
};

/** A tracking status in words. */
export function Status({ status, title }: { status: string; title?: string | undefined }) {
  return <span class={`status ${STATUS_TONE[status] ?? ""}`} title={title}>{status.replaceAll("_", " ")}</span>;
}
