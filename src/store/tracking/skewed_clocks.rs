//! Machines on which a tracker does not scrape, because their clock differs from Postgres'.

use sqlx::PgPool;

use crate::store::Error;
use crate::store::postgres::clock::ClockSkew;

/// Records that a tracker on this machine does not scrape.
pub async fn record(pg: &PgPool, skew: ClockSkew) -> Result<(), Error> {
    sqlx::query(
        "with machine as (select coalesce(host(inet_client_addr()), 'local') as name),
              outdated as (
                  delete from skewed_clocks using machine where machine <> name and seen_at < now() - interval '1 day'
              )
         insert into skewed_clocks (machine, seconds_ahead, seen_at) select name, $1, now() from machine
         on conflict (machine) do update set seconds_ahead = excluded.seconds_ahead, seen_at = excluded.seen_at",
    )
    .bind(skew.as_seconds())
    .execute(pg)
    .await?;
    Ok(())
}

/// Describes each machine on which a tracker did not scrape lately. A tracker that scrapes again, or is not started
/// again, stops recording it.
pub async fn describe_all(pg: &PgPool) -> Result<Vec<String>, Error> {
    let skews: Vec<(String, f64)> = sqlx::query_as(
        "select machine, seconds_ahead from skewed_clocks where seen_at > now() - interval '2 minutes' order by machine",
    )
    .fetch_all(pg)
    .await?;
    let describe = |(machine, seconds): (String, f64)| {
        let skew = ClockSkew::from_seconds(seconds);
        format!("the tracker at {machine} does not scrape: its clock is {skew}")
    };
    Ok(skews.into_iter().map(describe).collect())
}
