//! All tools, completed with what the OpenAPI document says of their operations.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::operation::Operation;
use super::schema;
use super::tool::{Answer, Tool};
use crate::api::openapi::DOCUMENT;
use crate::api::{
    accounts, batches, breakouts, collections, content, overview, refreshes, search, timeseries,
    top_accounts, top_content, top_creators, tracking,
};

/// Reads first, each in the order in which a model should consider them.
const TOOLS: [&Tool; 17] = [
    &overview::TOOL,
    &search::TOOL,
    &content::LIST_TOOL,
    &top_content::TOOL,
    &top_accounts::TOOL,
    &top_creators::TOOL,
    &timeseries::TOOL,
    &breakouts::TOOL,
    &accounts::TOOL,
    &content::GET_TOOL,
    &collections::LIST_TOOL,
    &collections::REPORT_TOOL,
    &tracking::TOOL,
    &batches::ACCOUNTS_TOOL,
    &batches::VIDEOS_TOOL,
    &refreshes::TOOL,
    &collections::CREATE_TOOL,
];

pub(super) static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(&DOCUMENT).unwrap_or_default();
    TOOLS.iter().filter_map(|tool| Definition::new(tool, &document)).collect()
});

/// A tool and its operations.
pub(super) struct Definition {
    pub tool: &'static Tool,
    pub operations: Vec<Operation>,
    /// The entry of `tools/list`.
    pub listed: Value,
}

impl Definition {
    fn new(tool: &'static Tool, document: &Value) -> Option<Self> {
        let find = |id| Operation::find(document, id);
        let operations = match tool.answer {
            Answer::Response(id) => vec![find(id)?],
            Answer::Joined(parts) => parts.iter().map(|(_, id)| find(id)).collect::<Option<_>>()?,
        };
        let mut definition = Definition { tool, operations, listed: Value::Null };
        definition.listed = json!({
            "name": tool.name,
            "title": definition.operations.last()?.summary,
            "description": tool.description,
            "inputSchema": schema::input(&definition.operations),
            "outputSchema": schema::output(document, tool.answer, &definition.operations),
            "annotations": definition.annotations(),
        });
        Some(definition)
    }

    pub fn is_read_only(&self) -> bool {
        self.operations.iter().all(|operation| operation.method.is_safe())
    }

    /// Writes only add records, and a repetition finds them.
    fn annotations(&self) -> Value {
        if self.is_read_only() {
            return json!({"readOnlyHint": true, "openWorldHint": false});
        }
        json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::mcp::operation::operation_ids;

    /// Why an operation has no tool.
    const WITHOUT_TOOL: [(&str, &[&str]); 9] = [
        (
            "filters of list_content and rank_content answer it for posts of any kind",
            &[
                "listAccountVideos",
                "getAccountVideo",
                "listVideosOfAccount",
                "listVideos",
                "getVideo",
                "listHashtags",
                "listCollectionVideos",
                "getCollectionMark",
            ],
        ),
        (
            "rank_accounts and rank_creators list and filter the same records, with their figures",
            &[
                "listAccounts",
                "listCreators",
                "getCreator",
                "getCreatorAccount",
                "listAccountStats",
                "listAccountCategories",
                "listCollectionCreators",
            ],
        ),
        (
            "get_overview and get_timeseries answer it with account_id, creator_id or a tag",
            &[
                "getAccountAnalytics",
                "getCreatorAnalytics",
                "getCreatorTimeseries",
                "getCollectionTimeseries",
                "getAccountMetrics",
                "queryAccountMetrics",
                "getCreatorMetrics",
                "queryCreatorMetrics",
            ],
        ),
        (
            "many numbers for charts of pages, more than a model needs",
            &[
                "getAccountSparklines",
                "getContentSparklines",
                "getCreatorSparklines",
                "getVideoAnalytics",
                "listContentAges",
                "getContentAges",
                "getAccountBenchmarks",
                "getTrackingCoverage",
                "getAccountVideoMetrics",
                "queryAccountVideoMetrics",
                "getVideoMetrics",
                "queryVideoMetrics",
                "getVideoDeltas",
                "queryVideoDeltas",
            ],
        ),
        (
            "files and streams are for programs",
            &[
                "exportAccounts",
                "exportAccountsParquet",
                "exportContent",
                "exportContentParquet",
                "exportCreators",
                "exportCreatorsParquet",
                "exportDailyGains",
                "exportDailyGainsParquet",
                "exportPayouts",
                "exportPayoutVideos",
                "createImport",
                "listImports",
                "getImport",
                "cancelImport",
                "streamEvents",
                "listEvents",
            ],
        ),
        (
            "changes or deletes what people arranged, or gives access: for people",
            &[
                "updateAccount",
                "updateAccounts",
                "deleteAccount",
                "updateVideo",
                "deleteVideo",
                "createCreator",
                "updateCreator",
                "deleteCreator",
                "linkCreatorAccount",
                "unlinkCreatorAccount",
                "updateCollection",
                "deleteCollection",
                "markCollectionVideo",
                "markCollectionVideos",
                "unmarkCollectionVideo",
                "createCollectionShare",
                "listCollectionShares",
                "getCollectionShare",
                "deleteCollectionShare",
                "listWebhooks",
                "createWebhook",
                "getWebhook",
                "updateWebhook",
                "deleteWebhook",
                "rotateWebhookSecret",
                "testWebhook",
                "listWebhookDeliveries",
                "retryWebhookDelivery",
            ],
        ),
        ("money is for people", &["listCollectionPayouts", "listCollectionPayoutVideos"]),
        (
            "track_accounts, track_videos and refresh take one or many",
            &["createAccount", "createVideo", "refreshAccount", "refreshVideo"],
        ),
        (
            "about the service, or for bearers of a share",
            &[
                "getHealth",
                "getMeta",
                "getOpenApi",
                "getIdentity",
                "getSharedReport",
                "listSharedAccounts",
                "listSharedContent",
                "listSharedCreators",
                "getSharedOverview",
                "listSharedPayouts",
                "getSharedTimeseries",
            ],
        ),
    ];

    fn ids(tool: &Tool) -> Vec<&'static str> {
        match tool.answer {
            Answer::Response(id) => vec![id],
            Answer::Joined(parts) => parts.iter().map(|(_, id)| *id).collect(),
        }
    }

    #[test]
    fn every_operation_has_a_tool_or_a_reason() {
        let document: Value = serde_json::from_str(&DOCUMENT).unwrap();
        let mut reasons = BTreeMap::new();
        let without = WITHOUT_TOOL.iter().flat_map(|(reason, ids)| ids.iter().map(move |id| (*id, *reason)));
        let with = TOOLS.iter().flat_map(|tool| ids(tool).into_iter().map(|id| (id, tool.name)));
        for (id, reason) in without.chain(with) {
            assert_eq!(reasons.insert(id.to_owned(), reason), None, "{id} is named twice");
        }
        let named: Vec<_> = reasons.into_keys().collect();
        assert_eq!(
            named,
            operation_ids(&document),
            "give each operation a tool, or a reason in WITHOUT_TOOL"
        );
    }

    #[test]
    fn tools_are_complete() {
        assert_eq!(DEFINITIONS.len(), TOOLS.len(), "every operation of a tool is in the document");
        for Definition { tool, listed, .. } in DEFINITIONS.iter() {
            assert!(tool.description.len() > 100 && tool.description.ends_with('.'), "{}", tool.name);
            for (schema, kind) in [("inputSchema", "input"), ("outputSchema", "output")] {
                assert_eq!(listed[schema]["type"], "object", "{} {kind}", tool.name);
            }
            let parameters = listed["inputSchema"]["properties"].as_object().unwrap();
            for (name, parameter) in parameters {
                assert!(parameter["description"].is_string(), "{} {name}", tool.name);
            }
        }
    }
}
