//! The sums that an account carries over the latest counters of its discovered videos.

use uuid::Uuid;

use crate::store::{Error, Write};

/// Computes the sums of the accounts again.
pub(super) async fn refresh(write: &mut Write, accounts: &[Uuid]) -> Result<(), Error> {
    sqlx::query(
        "update accounts a set
            total_post_count = s.posts, view_count = s.views, like_count = s.likes, comment_count = s.comments,
            share_count = s.shares, play_count = s.plays, saved_count = s.saved, ig_play_count = s.ig_plays,
            fb_play_count = s.fb_plays, fb_like_count = s.fb_likes
         from (
            select account_id, count(*) as posts, sum(view_count)::bigint as views, sum(like_count)::bigint as likes,
                   sum(comment_count)::bigint as comments, sum(share_count)::bigint as shares,
                   sum(play_count)::bigint as plays, sum(saved_count)::bigint as saved,
                   sum(ig_play_count)::bigint as ig_plays, sum(fb_play_count)::bigint as fb_plays,
                   sum(fb_like_count)::bigint as fb_likes
            from videos where organization_id = $1 and account_id = any($2) group by account_id
         ) s
         where a.organization_id = $1 and a.id = s.account_id",
    )
    .bind(write.organization())
    .bind(accounts)
    .execute(write.connection())
    .await?;
    Ok(())
}
