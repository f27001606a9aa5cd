select org_id, sum(views) as views, max(date) as last_day
from {{ ref('days') }}
group by org_id
