// The picture of an account or a post if the server has a copy of it, otherwise initials on a colour by the id, in the same size.

import { initials } from "../format.ts";

const COPY = /\/media\/[0-9a-f]{64}\.webp$/;

/** The path of a copy, on the server of the page. The API may name another host, if a proxy is between them. */
export function copyPath(url: string | null | undefined): string | null {
  return COPY.exec(url ?? "")?.[0] ?? null;
}

export interface PictureProps {
  id: string;
  /** What the initials are of. */
  name: string;
  kind?: "profile" | "cover" | "tile";
  /** As in the API. Those at the platforms are not shown: they expire, and would tell the platform who looks. */
  src?: string | null;
}

/** Decorative: a name is always beside it. */
export function Picture({ id, name, kind = "profile", src = null }: PictureProps) {
  const hue = parseInt(id.replaceAll("-", "").slice(-4), 16) % 360;
  const path = copyPath(src);
  return (
    <span class={`picture ${kind}`} style={{ "--hue": hue }} aria-hidden="true">
      <span>{initials(name)}</span>
      {/* `loading` before `src`: the browser may fetch as soon as it has the latter. */}
      {path && <img key={path} loading="lazy" decoding="async" alt="" src={path} onError={hide} />}
    </span>
  );
}

/** Shows the initials below it. */
function hide({ currentTarget }: { currentTarget: HTMLImageElement }): void {
  currentTarget.hidden = true;
}
