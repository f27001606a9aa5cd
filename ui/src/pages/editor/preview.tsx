// Which posts a rule finds, before it is saved: what `/content` finds with its conditions.

import { api, unwrap } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { components, paths } from "../../api/schema.d.ts";
import { PLATFORM_NAMES } from "../../components/controls.tsx";
import { useDebounced } from "../../components/debounce.ts";
import { Card, Count, Empty, Entity } from "../../components/parts.tsx";
import type { Rule } from "../../components/rule-text.ts";
import { compact, exact, postedOn } from "../../format.ts";
import { TAG_PREFIX } from "../../state/view.ts";
import * as css from "../editor.module.css";

type Query = NonNullable<paths["/content"]["get"]["parameters"]["query"]>;
type Post = components["schemas"]["Content"];

/** The most requests of a preview: one for each pair of an account and a creator, which have no post in common. */
const MAX_QUERIES = 20;
const SHOWN = 8;

/** Queries that together find the posts of a rule, each once; null where that takes too many. */
export function previewQueries(rule: Rule): Query[] | null {
  const { account_ids, creator_ids, hashtags, media_types, metadata, ...filters } = rule;
  const accounts = account_ids?.map((account_id) => ({ account_id })) ?? [{}];
  const creators = creator_ids?.map((creator_id) => ({ creator_id })) ?? [{}];
  if (accounts.length * creators.length > MAX_QUERIES) return null;
  const tags = Object.entries(metadata ?? {}).map(([name, value]) => [TAG_PREFIX + name, value]);
  const shared = {
    ...filters,
    ...(hashtags ? { hashtag: hashtags } : {}),
    ...(media_types ? { media_type: media_types } : {}),
    ...(metadata ? { metadata: Object.fromEntries(tags) } : {}),
  };
  return accounts.flatMap((account) => creators.map((creator) => ({ ...shared, ...account, ...creator })));
}

async function fetchPreview(queries: readonly Query[], signal: AbortSignal) {
  const pages = await Promise.all(
    queries.map((query) =>
      unwrap(
        api.GET("/content", {
          params: { query: { ...query, sort: "-create_time", limit: SHOWN, include_total: true } },
          signal,
        }),
      ),
    ),
  );
  const posts = pages.flatMap(({ data }) => data);
  return {
    count: pages.reduce((sum, { pagination }) => sum + (pagination.total_count ?? 0), 0),
    posts: posts
      .toSorted((left, right) => (right.create_time ?? "").localeCompare(left.create_time ?? ""))
      .slice(0, SHOWN),
  };
}

export function Preview({ rule }: { rule: Rule }) {
  const settled = useDebounced(JSON.stringify(rule));
  const queries = previewQueries(JSON.parse(settled) as Rule);
  const found = useResource(queries && ((signal) => fetchPreview(queries, signal)), [settled]);
  return (
    <Card
      title="Posts that the rule finds"
      resource={found}
      height={200}
      idle={<Empty>The rule names many accounts and creators. Its posts are counted once it is saved.</Empty>}
    >
      {({ count, posts }) => (
        <>
          <p class={css.found} role="status">
            <b>
              <Count value={count} format={exact} />
            </b>{" "}
            {count === 1 ? "post" : "posts"}
            {Object.keys(JSON.parse(settled) as Rule).length === 0 && ", which are all"}
          </p>
          <ul class={css.posts}>
            {posts.map((post) => (
              <li key={post.id}>
                <PreviewPost post={post} />
              </li>
            ))}
          </ul>
          {count > posts.length && posts.length > 0 && <p class="quiet small">The newest {posts.length}.</p>}
        </>
      )}
    </Card>
  );
}

export function PreviewPost({ post }: { post: Omit<Post, "tracking"> }) {
  return (
    <Entity
      id={post.account_id ?? post.id}
      kind="cover"
      src={post.cover_image_url}
      href={post.url}
      name={post.description || "Post without a caption"}
      owner={post.account_username ?? PLATFORM_NAMES[post.platform]}
      detail={[
        post.account_username ? `@${post.account_username}` : PLATFORM_NAMES[post.platform],
        postedOn(post.create_time),
        `${compact(post.view_count)} views`,
      ].join(" · ")}
    />
  );
}
