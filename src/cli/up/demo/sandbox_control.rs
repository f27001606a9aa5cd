//! Commands to the running sandbox.

use chrono::{DateTime, Utc};
use sandbox::Fault;
use sandbox::population::SimulatedAccount;
use serde_json::{Value, json};

use crate::cli::error::CommandError;
use crate::tls;

pub(super) struct SandboxControl {
    client: reqwest::Client,
    url: String,
}

impl SandboxControl {
    pub(super) fn new(sandbox_url: &str) -> Result<Self, CommandError> {
        let client = tls::client_builder()?.no_proxy().build()?;
        Ok(SandboxControl { client, url: format!("{sandbox_url}/_control") })
    }

    /// Makes requests for an account fail.
    pub(super) async fn break_account(
        &self,
        account: &SimulatedAccount,
        fault: Fault,
    ) -> Result<(), CommandError> {
        self.send(account, json!({"op": "break", "kind": fault})).await
    }

    /// Deletes an account, or one of its posts.
    pub(super) async fn delete(
        &self,
        account: &SimulatedAccount,
        post: Option<&str>,
    ) -> Result<(), CommandError> {
        self.send(account, json!({"op": "lose", "post": post})).await
    }

    pub(super) async fn rename(&self, account: &SimulatedAccount, to: &str) -> Result<(), CommandError> {
        self.send(account, json!({"op": "rename", "to": to})).await
    }

    /// Whether an account was not renamed yet.
    pub(super) async fn has_first_username(&self, account: &SimulatedAccount) -> Result<bool, CommandError> {
        let query = [("platform", account.platform.as_str()), ("username", &account.username)];
        let shown: Value = self.client.get(&self.url).query(&query).send().await?.json().await?;
        Ok(shown["accounts"].as_array().is_some_and(|accounts| !accounts.is_empty()))
    }

    /// Advances the clock to a time, unless it is later already.
    pub(super) async fn advance_to(
        &self,
        now: DateTime<Utc>,
        time: DateTime<Utc>,
    ) -> Result<(), CommandError> {
        let hours = (time - now).num_milliseconds().max(0) as f64 / 3_600_000.0;
        self.send_command(json!({"op": "advance", "hours": hours})).await
    }

    async fn send(&self, account: &SimulatedAccount, mut command: Value) -> Result<(), CommandError> {
        command["platform"] = json!(account.platform);
        command["username"] = json!(account.username);
        self.send_command(command).await
    }

    async fn send_command(&self, command: Value) -> Result<(), CommandError> {
        let response = self.client.post(&self.url).json(&command).send().await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(CommandError::new(format!("the sandbox rejected {command}: {}", response.text().await?)))
    }
}
