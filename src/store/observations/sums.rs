//! The sums that an account carries over the latest counters of its discovered videos.

use uuid::Uuid;

use crate::store::{Error, Write};

/// Computes the sums of the accounts again, each by its own videos: read together, many accounts would be looked for in all
/// of the organization's.
pub(super) async fn refresh(write: &mut Write, accounts: &[Uuid]) -> Result<(), Error> {
    sqlx::query(
        "update accounts a set
            total_post_count = s.posts, view_count = s.views, like_count = s.likes, comment_count = s.comments,
            share_count = s.shares, play_count = s.plays, saved_count = s.saved, ig_play_count = s.ig_plays,
            fb_play_count = s.fb_plays, fb_like_count = s.fb_likes
         from unnest($2::uuid[]) as x(account_id)
         cross join lateral (
            select count(*) as posts, coalesce(sum(view_count), 0)::bigint as views,
                   coalesce(sum(like_count), 0)::bigint as likes, coalesce(sum(comment_count), 0)::bigint as comments,
                   coalesce(sum(share_count), 0)::bigint as shares, coalesce(sum(play_count), 0)::bigint as plays,
                   sum(saved_count)::bigint as saved, sum(ig_play_count)::bigint as ig_plays,
                   sum(fb_play_count)::bigint as fb_plays, sum(fb_like_count)::bigint as fb_likes
            from videos where organization_id = $1 and account_id = x.account_id
         ) s
         where a.organization_id = $1 and a.id = x.account_id",
    )
    .bind(write.organization())
    .bind(accounts)
    .execute(write.connection())
    .await?;
    Ok(())
}
