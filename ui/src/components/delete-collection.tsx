// The question before a collection is deleted.

import { useAction } from "../api/action.ts";
import { api, unwrap } from "../api/client.ts";
import { ConfirmDialog } from "./confirm.tsx";
import { ProblemNotice } from "./parts.tsx";

interface Props {
  collection: { id: string; name: string };
  onClose: () => void;
  onDeleted: () => void;
}

export function DeleteCollection({ collection: { id, name }, onClose, onDeleted }: Props) {
  const remove = useAction(async (signal) => {
    await unwrap(
      api.DELETE("/collections/{collection_id}", { params: { path: { collection_id: id } }, signal }),
    );
    onDeleted();
    onClose();
  });
  return (
    <ConfirmDialog
      title={`Delete ${name}?`}
      action="Delete"
      isRunning={remove.isRunning}
      onConfirm={() => void remove.run()}
      onClose={onClose}
    >
      <p>
        Its rule, marks and payout terms go, and its links stop working. The posts and their history stay.
      </p>
      <ProblemNotice of={remove} />
    </ConfirmDialog>
  );
}
