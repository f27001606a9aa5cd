//! Simulates short links. TikTok's: `ZM` and a video's id redirects to the video, `ZU` and a username to the profile,
//! anything else to the front page. Links of `vt.` and `/t/` redirect to `vm.` first. Instagram's, under `/share/`: `BA` and a
//! shortcode redirects to the post, anything else to the front page.

use std::sync::Arc;

use salvo::prelude::*;
use serde_json::Value;

use super::ids;
use super::platform::{Platform, tiktok_video_url};
use super::response::{JsonResponse, PlatformError, respond};
use super::world::World;

/// Handles `GET /short/{host}/{**path}`.
pub struct ShortLinkHandler(pub Arc<World>);

#[handler]
impl ShortLinkHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let host = req.param::<String>("host").unwrap_or_default();
        let path = req.param::<String>("path").unwrap_or_default();
        let platform = if host == "www.instagram.com" { Platform::Instagram } else { Platform::Tiktok };
        let success = async { redirect(&self.0, &host, path.trim_matches('/')) };
        respond(&self.0, platform, res, success, failure).await;
    }
}

fn redirect(world: &World, host: &str, path: &str) -> JsonResponse {
    let target = match (host, path) {
        ("vm.tiktok.com", code) => resolve(world, code),
        ("vt.tiktok.com", code) => Some(format!("https://vm.tiktok.com/{code}/")),
        ("www.instagram.com", path) => return redirect_instagram(world, path),
        ("www.tiktok.com" | "lite.tiktok.com", path) => {
            path.strip_prefix("t/").map(|code| format!("https://vm.tiktok.com/{code}/"))
        }
        _ => return JsonResponse::new(StatusCode::NOT_FOUND, Value::Null),
    };
    let target = target.unwrap_or_else(|| "https://www.tiktok.com/?_r=1".to_owned());
    JsonResponse::new(StatusCode::MOVED_PERMANENTLY, Value::Null).with_header("location", target)
}

fn redirect_instagram(world: &World, path: &str) -> JsonResponse {
    let post = |target: &str| {
        let code = target.rsplit('/').next()?.strip_prefix("BA")?;
        let visible = world.account_at(ids::parse_shortcode_account(code)?)?;
        let is_post = visible.posts().any(|(post, _)| post.shortcode.as_deref() == Some(code));
        is_post.then(|| format!("https://www.instagram.com/reel/{code}/?igsh=MTc4"))
    };
    let target = path.strip_prefix("share/").and_then(post);
    let target = target.unwrap_or_else(|| "https://www.instagram.com/".to_owned());
    JsonResponse::new(StatusCode::FOUND, Value::Null).with_header("location", target)
}

/// Returns the URL of the video or profile that a code stands for.
fn resolve(world: &World, code: &str) -> Option<String> {
    if let Some(username) = code.strip_prefix("ZU") {
        let visible = world.find_by_username(Platform::Tiktok, username)?;
        return Some(format!("https://www.tiktok.com/@{}?_r=1", visible.username));
    }
    let id = code.strip_prefix("ZM")?;
    let visible = world.account_at(ids::parse_tiktok_post_account(id)?)?;
    let (post, _) = visible.posts().find(|(post, _)| post.id == id)?;
    Some(format!("{}?_r=1", tiktok_video_url(&visible.username, &post.id)))
}

fn failure(error: PlatformError) -> JsonResponse {
    let status = match error {
        PlatformError::RateLimit => StatusCode::TOO_MANY_REQUESTS,
        PlatformError::Internal => StatusCode::BAD_GATEWAY,
        PlatformError::Unauthorized => StatusCode::FORBIDDEN,
    };
    JsonResponse::new(status, Value::Null)
}
