// The dialog that puts posts into collections. Its code is loaded when it opens.

import { useResource } from "../api/resource.ts";
import { marking } from "../components/marks.tsx";

export function MarkDialog() {
  const posts = marking.value;
  const code = useResource(posts ? () => import("../pages/marking.tsx") : null, [posts]);
  const Dialog = code.data?.default;
  return posts && Dialog ? <Dialog posts={posts} onClose={() => (marking.value = null)} /> : null;
}
