select * from {{ ref('totals') }} where last_day > today() + 1
