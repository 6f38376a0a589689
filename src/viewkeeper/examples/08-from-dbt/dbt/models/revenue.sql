{{ config(materialized='table') }}

select c.region, sum(l.amount) as amount
from {{ ref('order_lines') }} l
join {{ source('crm', 'people') }} c on c.customer_id = l.customer_id
group by c.region
