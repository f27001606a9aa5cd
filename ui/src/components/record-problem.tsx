// Instead of the page of a record that cannot be shown.

import type { Resource } from "../api/resource.ts";
import { linkTo } from "../state/view.ts";
import { Empty, ProblemNotice } from "./parts.tsx";

interface Props {
  name: string;
  resource: Resource<unknown>;
  /** Path of the list of such records. */
  list: string;
}

export function RecordProblem({ name, resource, list }: Props) {
  const { problem } = resource;
  if (!problem) return null;
  const isMissing = problem.status === 404 || problem.status === 422;
  return (
    <>
      <h1>{isMissing ? `No such ${name.toLowerCase()}` : name}</h1>
      <ProblemNotice of={resource} />
      {isMissing && (
        <Empty>
          It may have been removed.{" "}
          <a class="link" href={linkTo(list)}>
            All {list.slice(1)}
          </a>
        </Empty>
      )}
    </>
  );
}
