// Sharing a report by a link. The code of the dialog is loaded when it is opened.

import { useState } from "preact/hooks";

import { useResource } from "../../api/resource.ts";
import { ProblemNotice } from "../../components/parts.tsx";
import type { Collection } from "../../loads/collections.ts";

export function ShareButton({ collection }: { collection: Collection | undefined }) {
  const [isOpen, setOpen] = useState(false);
  const code = useResource(isOpen ? () => import("../sharing.tsx") : null, [isOpen]);
  const Dialog = code.data?.default;
  return (
    <>
      <button type="button" disabled={!collection} onClick={() => setOpen(true)}>
        Share…
      </button>
      {isOpen && code.problem && <ProblemNotice of={code} />}
      {isOpen && Dialog && collection && <Dialog collection={collection} onClose={() => setOpen(false)} />}
    </>
  );
}
