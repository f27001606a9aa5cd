//! `tidemark clickhouse-user`: makes, lists and drops users of a ClickHouse server that read one organization's history.

use clap::Subcommand;
use serde_json::json;
use uuid::Uuid;

use super::Failure;
use super::answer::{self, AnswerArgs};
use crate::config::{ClickhouseArgs, PostgresArgs};
use crate::store::Error;
use crate::store::clickhouse::client;
use crate::store::clickhouse::users::{self, ClickhouseUser, NewUser};
use crate::store::postgres::pool;
use crate::store::records::organizations;

/// Make, list and drop users of a ClickHouse server that read one organization's data
///
/// They read the views of docs/data.md, only, within limits. Needs a ClickHouse server: the embedded engine has no users.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct ClickhouseUserArgs {
    #[command(subcommand)]
    command: ClickhouseUserCommand,
}

#[derive(Debug, Subcommand)]
enum ClickhouseUserCommand {
    /// Make a user. Its password is printed once and cannot be shown again
    ///
    /// Run again, it gives the user a new password, and the rights and limits of this version.
    Create {
        #[command(flatten)]
        which: Which,
        /// Print the statements instead of running them
        #[arg(long)]
        sql: bool,
        #[command(flatten)]
        answer: AnswerArgs,
        #[command(flatten)]
        postgres: PostgresArgs,
        #[command(flatten)]
        clickhouse: ClickhouseArgs,
    },
    /// List an organization's users, by name
    List {
        /// The organization
        #[arg(long, value_name = "ID")]
        org: Uuid,
        #[command(flatten)]
        answer: AnswerArgs,
        #[command(flatten)]
        clickhouse: ClickhouseArgs,
    },
    /// Drop a user
    Drop {
        #[command(flatten)]
        which: Which,
        /// Print the statements instead of running them
        #[arg(long)]
        sql: bool,
        #[command(flatten)]
        answer: AnswerArgs,
        #[command(flatten)]
        clickhouse: ClickhouseArgs,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The organization whose data it reads
    #[arg(long, value_name = "ID")]
    org: Uuid,
    /// What it is called, as in "reports"; it signs in under this name and the organization's id behind it
    #[arg(long, value_name = "NAME", value_parser = user_name)]
    name: String,
}

pub(super) async fn run(args: ClickhouseUserArgs) -> Result<(), Failure> {
    match args.command {
        ClickhouseUserCommand::Create { which, sql, answer, postgres, clickhouse } => {
            organizations::require(&pool::connect(&postgres)?, which.org).await?;
            let (database, public) = (&clickhouse.clickhouse_database, clickhouse.public_database());
            let new = NewUser::generate(database, &public, which.org, &which.name)?;
            if !sql {
                let client = client(&clickhouse);
                users::execute_all(&client, database, &new.statements).await?;
                if let Some(warning) = users::security_warning(&client).await? {
                    eprintln!("warning: {warning}");
                }
            }
            created(&new, sql, answer)
        }
        ClickhouseUserCommand::List { org, answer, clickhouse } => {
            answer.many(&users::list(&client(&clickhouse), org).await?, &["user", "name"])
        }
        ClickhouseUserCommand::Drop { which, sql, answer, clickhouse } => {
            let user = ClickhouseUser::new(which.org, &which.name);
            let database = &clickhouse.clickhouse_database;
            let statements = users::drop_statements(database, &user);
            if sql {
                return script(&statements);
            }
            let client = client(&clickhouse);
            let was_there = users::exists(&client, &user).await?;
            users::execute_all(&client, database, &statements).await?;
            if !was_there {
                return Err(Error::NotFound("user").into());
            }
            answer.one(&user, &["user", "name"])
        }
    }
}

/// A client that does not need the service's database to be there.
fn client(args: &ClickhouseArgs) -> clickhouse::Client {
    client::connect(args).with_database("default")
}

fn created(new: &NewUser, sql: bool, answer: AnswerArgs) -> Result<(), Failure> {
    let password = new.password.reveal();
    if answer.json {
        let mut record = serde_json::to_value(&new.user)?;
        record["password"] = json!(password);
        record["database"] = json!(new.database);
        if sql {
            record["statements"] = json!(new.statements);
        }
        return answer.one(&record, &[]);
    }
    eprintln!("this password is shown once: keep it");
    if sql {
        eprintln!("{} {password}", new.user.user);
        return script(&new.statements);
    }
    let record = json!({"user": new.user.user, "password": password, "database": new.database});
    answer.one(&record, &["user", "password", "database"])
}

/// Prints statements as any client reads them.
fn script(statements: &[String]) -> Result<(), Failure> {
    let statements: Vec<_> = statements.iter().map(|statement| format!("{statement};")).collect();
    answer::lines(statements.iter().map(String::as_str))
}

/// Reads a name that needs no quoting in any client's configuration.
fn user_name(text: &str) -> Result<String, String> {
    let starts = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if starts && plain && text.len() <= 32 {
        Ok(text.to_owned())
    } else {
        Err("a name has 1 to 32 letters, digits, hyphens and underscores, the first of them a letter"
            .to_owned())
    }
}
