-- no-transaction
-- GET /accounts by total_post_count.
create index concurrently if not exists accounts_by_posts on accounts (organization_id, total_post_count, id);
