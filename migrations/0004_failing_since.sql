-- When the failures in a row began, by the service's clock; null unless the last attempt failed, and for targets that have
-- failed since before this column until their next attempt.
alter table scrape_targets add column failing_since timestamptz;
