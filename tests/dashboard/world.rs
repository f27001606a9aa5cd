//! The environment of the tests in the browser: organizations, keys, and an API whose databases may fail.

use std::sync::{Arc, Mutex};

use harness::{Organization, Stack, TcpProxy};
use sandbox::population::{Population, SimulatedAccount};
use serde_json::{Value, json};
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::{self, NewKey};

use crate::control::Control;
use crate::history;
use crate::pictures;

/// How many accounts of the sandbox the tests add.
const ADDABLE_ACCOUNTS: usize = 17;

pub struct World {
    stack: Stack,
    /// With history.
    main: Organization,
    empty: Organization,
    adding: Organization,
    importing: Organization,
    /// With pictures.
    pictured: Organization,
    /// Id of the account without a picture.
    account_without_picture: String,
    read_key: String,
    revocable_key: String,
    outage_url: String,
    control_url: String,
    addable: Vec<String>,
}

impl World {
    pub async fn start() -> Self {
        let stack = Stack::shared();
        let (main, empty, adding, importing, pictured) = tokio::join!(
            stack.unlimited_organization(),
            stack.unlimited_organization(),
            stack.unlimited_organization(),
            stack.unlimited_organization(),
            stack.unlimited_organization()
        );
        let ((), account_without_picture) = tokio::join!(history::load(&main), pictures::load(&pictured));
        let read = NewKey { scopes: vec![Scope::Read], ..NewKey::named("read key") };
        let revocable = keys::create(stack.pg(), main.id, &NewKey::named("revocable key")).await.unwrap();

        let clickhouse = url::Url::parse(&stack.connection.clickhouse_url).unwrap();
        let (host, port) = (clickhouse.host_str().unwrap(), clickhouse.port().unwrap());
        let proxy = TcpProxy::start(host, port).await;
        let proxy_url = format!("http://127.0.0.1:{}", proxy.port);
        let (api, outage_url) = stack.serve(&[("TIDEMARK_CLICKHOUSE_URL", proxy_url)]);
        let control = Control {
            clickhouse: Arc::new(proxy),
            api: Arc::new(Mutex::new(api)),
            pg: stack.pg().clone(),
            revocable_key: revocable.record.id,
        };
        World {
            read_key: main.create_key(read).await,
            revocable_key: revocable.key,
            addable: addable_accounts(),
            control_url: control.serve().await,
            outage_url,
            main,
            empty,
            adding,
            importing,
            pictured,
            account_without_picture,
            stack,
        }
    }

    /// As ui/browser/environment.ts reads it.
    pub fn description(&self) -> Value {
        json!({
            "baseUrl": self.stack.connection.base_url,
            "outageUrl": self.outage_url,
            "controlUrl": self.control_url,
            "keys": {
                "write": self.main.key,
                "read": self.read_key,
                "empty": self.empty.key,
                "adding": self.adding.key,
                "importing": self.importing.key,
                "pictured": self.pictured.key,
                "revocable": self.revocable_key,
            },
            "clockOffset": harness::clock_offset().num_milliseconds(),
            "addable": self.addable,
            "accountWithoutPicture": self.account_without_picture,
        })
    }
}

/// Links to accounts of the sandbox.
fn addable_accounts() -> Vec<String> {
    let population = Population::new(1, 100 + ADDABLE_ACCOUNTS);
    let link = |account: &SimulatedAccount| match account.platform {
        sandbox::Platform::Instagram => format!("https://www.instagram.com/{}/", account.username),
        sandbox::Platform::Tiktok => format!("https://www.tiktok.com/@{}", account.username),
    };
    population.after_first(100).iter().map(link).collect()
}
