select org_id, date, sum(view_gain) as views, count() as accounts
from {{ source('tidemark', 'account_daily') }}
group by org_id, date
