//! TikTok's short links, served: a link `ZM` and the id of a video leads to it, `ZU` and a username to a profile, and
//! any other, as TikTok does it, to the front page. Links of `vt.` and `/t/` lead to `vm.` first.

use std::sync::Arc;

use salvo::prelude::*;
use serde_json::Value;

use super::ids;
use super::response::{JsonResponse, PlatformError, respond};
use super::world::World;
use crate::model::identifier::video_url;
use crate::model::platform::Platform;

/// Answers `GET /short/{host}/{**path}`.
pub struct ShortLinkHandler(pub Arc<World>);

#[handler]
impl ShortLinkHandler {
    async fn handle(&self, req: &mut Request, res: &mut Response) {
        let host = req.param::<String>("host").unwrap_or_default();
        let path = req.param::<String>("path").unwrap_or_default();
        let right = async { redirect(&self.0, &host, path.trim_matches('/')) };
        respond(&self.0, Platform::Tiktok, res, right, refused).await;
    }
}

fn redirect(world: &World, host: &str, path: &str) -> JsonResponse {
    let to = match (host, path) {
        ("vm.tiktok.com", code) => behind(world, code),
        ("vt.tiktok.com", code) => Some(format!("https://vm.tiktok.com/{code}/")),
        ("www.tiktok.com", path) => {
            path.strip_prefix("t/").map(|code| format!("https://vm.tiktok.com/{code}/"))
        }
        _ => return JsonResponse::new(StatusCode::NOT_FOUND, Value::Null),
    };
    let to = to.unwrap_or_else(|| "https://www.tiktok.com/?_r=1".to_owned());
    JsonResponse::new(StatusCode::MOVED_PERMANENTLY, Value::Null).with_header("location", to)
}

/// What a code stands for.
fn behind(world: &World, code: &str) -> Option<String> {
    if let Some(username) = code.strip_prefix("ZU") {
        let seen = world.find_by_username(Platform::Tiktok, username)?;
        return Some(format!("https://www.tiktok.com/@{}?_r=1", seen.username));
    }
    let id = code.strip_prefix("ZM")?;
    let seen = world.account_at(ids::parse_tiktok_post_account(id)?)?;
    let (post, _) = seen.posts().find(|(post, _)| post.id == id)?;
    video_url(Platform::Tiktok, Some(&seen.username), None, Some(&post.id)).map(|url| format!("{url}?_r=1"))
}

fn refused(how: PlatformError) -> JsonResponse {
    let status = match how {
        PlatformError::RateLimit => StatusCode::TOO_MANY_REQUESTS,
        PlatformError::Error => StatusCode::BAD_GATEWAY,
        PlatformError::Unauthorized => StatusCode::FORBIDDEN,
    };
    JsonResponse::new(status, Value::Null)
}
