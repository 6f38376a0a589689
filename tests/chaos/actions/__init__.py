"""Everything that can happen, one module per place where it happens."""

from chaos.actions import data, links, permanent, processes, schema, warehouses
from chaos.actions.action import Action

ALL: tuple[type[Action], ...] = (
    *processes.ACTIONS,
    *links.ACTIONS,
    *data.ACTIONS,
    *schema.ACTIONS,
    *warehouses.ACTIONS,
    *permanent.ACTIONS,
)
BY_NAME = {action.name: action for action in ALL}
