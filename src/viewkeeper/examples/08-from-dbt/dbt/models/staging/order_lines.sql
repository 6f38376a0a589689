{{ config(materialized='view') }}

select o.order_id, o.customer_id, o.quantity * p.price as amount
from {{ source('shop', 'orders') }} o
join {{ source('shop', 'products') }} p on o.product_id = p.product_id
