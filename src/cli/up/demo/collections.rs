//! The demo's collections: a campaign by tag with a payout, a hashtag, and posts chosen by hand.

use uuid::Uuid;

use super::curation::{CAMPAIGNS, tags};
use super::stage::Stage;
use crate::cli::error::CommandError;
use crate::model::collection::{Mark, Rule};
use crate::model::payout::{Bonus, Payout, PayoutCount};
use crate::store::records::collections::{self, NewCollection, marks};
use crate::store::{self, Write};

/// Of accounts about food.
const HASHTAG: &str = "recipe";

impl Stage<'_> {
    /// Creates the collections; the last has some posts by hand.
    pub(super) async fn create_collections(&self, chosen: &[Uuid]) -> Result<(), CommandError> {
        let campaign = CAMPAIGNS[0];
        self.create_collection(&NewCollection {
            name: "Autumn launch".to_owned(),
            description: Some(format!("Posts of the accounts with the tag campaign = {campaign}")),
            rule: Some(Rule { metadata: tags([("campaign", campaign)]), ..Rule::default() }),
            payout: Some(payout()),
        })
        .await?;
        self.create_collection(&NewCollection {
            name: format!("#{HASHTAG}"),
            description: None,
            rule: Some(Rule { hashtags: Some(vec![HASHTAG.to_owned()]), ..Rule::default() }),
            payout: None,
        })
        .await?;
        let by_hand = self
            .create_collection(&NewCollection {
                name: "Paid posts".to_owned(),
                description: Some("Chosen by hand".to_owned()),
                rule: None,
                payout: None,
            })
            .await?;
        let include =
            async |write: &mut Write| marks::update(write, by_hand, chosen, Some(Mark::Included)).await;
        self.write(include).await?;
        Ok(())
    }

    async fn create_collection(&self, new: &NewCollection) -> Result<Uuid, CommandError> {
        match self.write(async |write| collections::create(write, new).await).await {
            // An interrupted start has created it.
            Ok(id) | Err(store::Error::Exists { id, .. }) => Ok(id),
            Err(error) => Err(error.into()),
        }
    }
}

fn payout() -> Payout {
    Payout {
        currency: "EUR".to_owned(),
        count: PayoutCount::Lifetime,
        per_thousand_views: Some("2.50".to_owned()),
        bonuses: vec![Bonus { views: 100_000, amount: "50".to_owned() }],
        minimum_views: Some(1_000),
        maximum_per_video: Some("500".to_owned()),
    }
}
