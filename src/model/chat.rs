//! Messages to chats: a line of text and a link to the dashboard, with mentions disabled.

use serde_json::json;
use uuid::Uuid;

use super::event::{EventAccount, EventData, EventType};
use super::upload::ImportStatus;
use super::webhook_format::WebhookFormat;

/// Characters of a caption in a message.
const CAPTION_CHARS: usize = 120;
/// Characters of a description or an error. Discord takes 2,000 in a message: escaped, it fits with a filename and a link.
const TEXT_CHARS: usize = 300;

/// Returns the message of an event to the chat of a format; `None` if the format is none of a chat.
pub fn message(
    format: WebhookFormat,
    origin: &str,
    event_type: EventType,
    data: &EventData,
) -> Option<String> {
    let chat = Chat::new(format)?;
    Some(chat.body(&describe(chat, event_type, data), &format!("{origin}{}", page(data))))
}

/// Returns a message that shows that a webhook works.
pub fn test_message(format: WebhookFormat, origin: &str) -> String {
    let body = |chat: Chat| chat.body("Tidemark can send messages here", origin);
    Chat::new(format).map(body).unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chat {
    Slack,
    Discord,
}

impl Chat {
    const fn new(format: WebhookFormat) -> Option<Self> {
        match format {
            WebhookFormat::Standard => None,
            WebhookFormat::Slack => Some(Chat::Slack),
            WebhookFormat::Discord => Some(Chat::Discord),
        }
    }

    fn body(self, text: &str, link: &str) -> String {
        let body = match self {
            Chat::Slack => json!({
                "text": format!("{text} <{link}|Open in Tidemark>"), "unfurl_links": false, "unfurl_media": false,
            }),
            Chat::Discord => json!({
                "content": format!("{text} [Open in Tidemark](<{link}>)"), "allowed_mentions": {"parse": []},
            }),
        };
        body.to_string()
    }

    /// Makes a foreign text one line that shows its characters and nothing else.
    fn escape(self, text: &str) -> String {
        let mut escaped = String::new();
        for letter in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
            match (self, letter) {
                (_, letter) if letter.is_control() => {}
                (Chat::Slack, '&') => escaped.push_str("&amp;"),
                (Chat::Slack, '<') => escaped.push_str("&lt;"),
                (Chat::Slack, '>') => escaped.push_str("&gt;"),
                // A character without width keeps Slack from formatting, and from reading a mention.
                (Chat::Slack, '@' | '*' | '_' | '~' | '`') => escaped.extend([letter, '\u{2060}']),
                (Chat::Discord, letter) if letter.is_ascii_punctuation() => escaped.extend(['\\', letter]),
                (_, letter) => escaped.push(letter),
            }
        }
        escaped
    }
}

/// The page of the dashboard about an event.
fn page(data: &EventData) -> String {
    let of = |page: &str, id: Uuid| format!("/{page}/{id}");
    let video = data.video.as_ref().map(|video| of("content", video.id));
    let account = data.account.as_ref().map(|account| of("accounts", account.id));
    let import = data.import.as_ref().map(|_| "/imports".to_owned());
    video.or(account).or(import).unwrap_or_default()
}

fn describe(chat: Chat, event_type: EventType, data: &EventData) -> String {
    let account = data.account.as_ref().map(|account| name(chat, account));
    let by = account.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
    let account = account.unwrap_or_else(|| "An account".to_owned());
    let caption = caption(chat, data);
    let threshold = group_digits(data.threshold.unwrap_or_default());
    match event_type {
        EventType::VideoPublished => format!("New post{by}{caption}"),
        EventType::VideoViewsReached => format!("A post{by} passed {threshold} views{caption}"),
        EventType::VideoBreakout => {
            let multiple = data.multiple.unwrap_or_default();
            let (age, views) =
                (data.age_days.unwrap_or_default(), group_digits(data.actual.unwrap_or_default()));
            let days = if age == 1 { "day" } else { "days" };
            format!(
                "Breakout: a post{by} has {views} views after {age} {days}, {multiple} times the usual{caption}"
            )
        }
        EventType::AccountFollowersReached => format!("{account} passed {threshold} followers"),
        EventType::AccountUnavailable => format!("{account} is no longer available"),
        EventType::AccountAvailable => format!("{account} is available again"),
        EventType::AccountRenamed => {
            let previous = chat.escape(data.previous_username.as_deref().unwrap_or_default());
            format!("{account} was renamed, from {previous}")
        }
        EventType::AccountFailing => format!("{account} cannot be read: three attempts failed"),
        EventType::AccountRecovered => format!("{account} is read again"),
        EventType::ImportEnded => describe_import(chat, data),
        EventType::WebhookDisabled => {
            let description = data.webhook.as_ref().and_then(|webhook| webhook.description.as_deref());
            let named = description.map(|text| format!(": {}", chat.escape(&shorten(text, TEXT_CHARS))));
            format!("A webhook was disabled, because its deliveries fail{}", named.unwrap_or_default())
        }
    }
}

fn describe_import(chat: Chat, data: &EventData) -> String {
    let Some(import) = &data.import else { return "An import ended".to_owned() };
    let file =
        import.filename.as_deref().map(|name| format!(" of {}", chat.escape(name))).unwrap_or_default();
    let (stored, refused) = (group_digits(import.snapshots_written), group_digits(import.refused));
    match import.status {
        ImportStatus::Succeeded => {
            format!("The import{file} succeeded: {stored} observations stored, {refused} rows refused")
        }
        ImportStatus::Cancelled => format!("The import{file} was cancelled"),
        _ => {
            let error = import.error.as_deref().map(|error| shorten(error, TEXT_CHARS));
            let reason = error.map(|error| format!(": {}", chat.escape(&error)));
            format!("The import{file} failed{}", reason.unwrap_or_default())
        }
    }
}

fn name(chat: Chat, account: &EventAccount) -> String {
    format!("{} ({})", chat.escape(&account.username), account.platform.as_str())
}

fn caption(chat: Chat, data: &EventData) -> String {
    let Some(caption) = data.video.as_ref().and_then(|video| video.description.as_deref()) else {
        return String::new();
    };
    format!(": {}", chat.escape(&shorten(caption, CAPTION_CHARS)))
}

/// Returns the beginning of a text, with an ellipsis if that is not all of it.
fn shorten(text: &str, chars: usize) -> String {
    let mut short: String = text.chars().take(chars).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Writes a number with commas between thousands.
fn group_digits(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut grouped = String::from(if number < 0 { "-" } else { "" });
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::account::AccountType;
    use crate::model::event::{EventImport, EventVideo, EventWebhook};
    use crate::model::limits::{MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS};
    use crate::model::platform::Platform;
    use crate::model::upload::ImportType;
    use crate::model::video::VideoType;
    use crate::model::webhook_format::WebhookType;

    const ORIGIN: &str = "https://tidemark.example";

    fn data(caption: &str) -> EventData {
        let account = EventAccount {
            id: Uuid::from_u128(1),
            r#type: AccountType::Account,
            platform: Platform::Tiktok,
            username: "salt_tide".to_owned(),
            name: None,
            creator_id: None,
        };
        let video = EventVideo {
            id: Uuid::from_u128(2),
            r#type: VideoType::Content,
            platform: Platform::Tiktok,
            external_id: None,
            url: None,
            description: Some(caption.to_owned()),
            media_type: None,
            create_time: None,
            account_id: Some(account.id),
        };
        let (account, video) = (Some(account), Some(video));
        EventData { account, video, threshold: Some(1_000_000), ..EventData::default() }
    }

    fn sent(format: WebhookFormat, caption: &str) -> serde_json::Value {
        let body = message(format, ORIGIN, EventType::VideoViewsReached, &data(caption)).unwrap();
        serde_json::from_str(&body).unwrap()
    }

    #[test]
    fn slack_message_mentions_nobody() {
        let body = sent(WebhookFormat::Slack, "Hi <!channel> <@U1>\n@here & <https://evil.example|more>");
        assert_eq!(
            body["text"],
            "A post by salt_\u{2060}tide (tiktok) passed 1,000,000 views: Hi &lt;!channel&gt; &lt;@\u{2060}U1&gt; \
             @\u{2060}here &amp; &lt;https://evil.example|more&gt; \
             <https://tidemark.example/content/00000000-0000-0000-0000-000000000002|Open in Tidemark>"
        );
        assert_eq!(body["unfurl_links"], false);
    }

    #[test]
    fn discord_message_mentions_nobody() {
        let body = sent(WebhookFormat::Discord, "@everyone <@1> [more](https://evil.example)");
        let text = body["content"].as_str().unwrap();
        assert!(
            text.starts_with("A post by salt\\_tide (tiktok) passed 1,000,000 views: \\@everyone \\<\\@1\\>"),
            "{text}"
        );
        assert!(text.contains("\\[more\\]\\(https\\:"), "{text}");
        assert_eq!(body["allowed_mentions"], json!({"parse": []}));
    }

    #[test]
    fn long_captions_are_shortened() {
        let body = sent(WebhookFormat::Discord, &"*".repeat(5_000));
        assert!(body["content"].as_str().unwrap().chars().count() < 2_000);
    }

    /// The longest texts, all of one letter.
    fn longest(letter: &str) -> [(EventType, EventData); 3] {
        let text = |chars: usize| Some(letter.repeat(chars));
        let import = EventImport {
            id: Uuid::nil(),
            r#type: ImportType::default(),
            status: ImportStatus::Failed,
            filename: text(MAX_NAME_CHARS),
            rows_read: 0,
            snapshots_written: 0,
            refused: 0,
            error: text(100_000),
        };
        let webhook = EventWebhook {
            id: Uuid::nil(),
            r#type: WebhookType::default(),
            format: WebhookFormat::default(),
            description: text(MAX_DESCRIPTION_CHARS),
        };
        [
            (EventType::ImportEnded, EventData { import: Some(import), ..EventData::default() }),
            (EventType::WebhookDisabled, EventData { webhook: Some(webhook), ..EventData::default() }),
            (EventType::VideoBreakout, data(&letter.repeat(100_000))),
        ]
    }

    #[test]
    fn longest_texts_fit_into_a_message() {
        let origin = format!("https://{}", "o".repeat(253));
        // Slack shortens messages far above these 4,000 characters, which it recommends.
        for (format, letters, field, limit) in [
            (WebhookFormat::Discord, ["*", "🌊"], "content", 2_000),
            (WebhookFormat::Slack, ["&", "🌊"], "text", 4_000),
        ] {
            for (event_type, data) in letters.into_iter().flat_map(longest) {
                let body = message(format, &origin, event_type, &data).unwrap();
                let body: serde_json::Value = serde_json::from_str(&body).unwrap();
                let text = body[field].as_str().unwrap();
                assert!(text.encode_utf16().count() <= limit, "{event_type:?}: {text}");
                assert!(text.contains('…') && text.contains("Open in Tidemark"), "{text}");
            }
        }
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 999, 1_000, -1_234_567].map(group_digits), ["0", "999", "1,000", "-1,234,567"]);
    }

    #[test]
    fn standard_format_has_no_line_of_text() {
        assert_eq!(message(WebhookFormat::Standard, ORIGIN, EventType::VideoPublished, &data("")), None);
    }
}
