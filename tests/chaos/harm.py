"""What we may have done to the sources and to the machine: nobody must suffer from being watched."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.run_process import RunProcess
from chaos.scenery import CRM, GEO, SHOP
from chaos.world import World

OPEN_SECONDS_MAX = 60
LOG_BYTES_MAX = 2 << 30
MEMORY_BYTES_MAX = {"python": 2 << 30, "java": 3 << 30}

_POSTGRES = f"""
SELECT 'a transaction of ours is open for ' || extract(epoch FROM now() - xact_start)::int || ' s'
FROM pg_stat_activity
WHERE state = 'idle in transaction' AND now() - xact_start > interval '{OPEN_SECONDS_MAX} s'
UNION ALL
SELECT 'somebody waits for a lock on ' || relation::regclass FROM pg_locks
WHERE NOT granted AND relation IS NOT NULL
UNION ALL
SELECT 'there are several slots' WHERE (SELECT count(*) FROM pg_replication_slots) > 1
"""
_MARIADB = f"""
SELECT CONCAT('a transaction is open for ', TIMESTAMPDIFF(SECOND, trx_started, NOW()), ' s')
FROM information_schema.innodb_trx
WHERE TIMESTAMPDIFF(SECOND, trx_started, NOW()) > {OPEN_SECONDS_MAX}
"""


def found(world: World) -> Iterator[str]:
    """What is wrong at the sources now, while nobody writes."""
    for source, sql in ((SHOP, _POSTGRES), (CRM, _MARIADB)):
        with world.client(source) as client:
            yield from (f"{source}: {text}" for (text,) in client.fetch(sql))
    with world.client(GEO) as client:
        # Whoever wants to write can: this raises when somebody holds the file.
        client.run("PRAGMA busy_timeout = 20000")
        client.begin()
        client.abort()
    kept = log_kept(world)
    if kept > LOG_BYTES_MAX:
        yield f"shop: our slot keeps {kept:,} bytes of log"


def log_kept(world: World) -> int:
    """The log that PostgreSQL keeps for us, in bytes."""
    with world.client(SHOP) as client:
        [(size,)] = client.fetch(
            "SELECT COALESCE(MAX(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0) "
            "FROM pg_replication_slots"
        )
    return int(size)


def memory(run: RunProcess) -> Iterator[str]:
    for part, size in run.measure().items():
        if size > MEMORY_BYTES_MAX[part]:
            yield f"the run's {part} takes {size:,} bytes"
