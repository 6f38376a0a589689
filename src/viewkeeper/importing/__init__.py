"""Views from other tools' projects, as texts of our own.

One duty: to translate what another tool wrote, or to say exactly what can't be translated. It knows
neither sources nor how views are kept; whether a view is right is found out later, like every other's.
Begin with `dbt_models`; `dbt_project` reads the other tool's files.
"""
