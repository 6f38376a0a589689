"""Rich views on Spark: the same manager on staged relations, after every transaction as SQLite has it."""

import pytest

from simulation.rich import CLASSES, random_rich_scenario
from simulation.rich_runs import NETWORKS, check, run
from viewkeeper.protocols.messages import InstallBatch
from viewkeeper.protocols.stores import SelfKeptView

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


@pytest.mark.parametrize("kind", ["union", "group", "distinct", "full", "over"])
def test_spark_joins_and_every_transaction_is_right(spark, tmp_path, kind):
    from viewkeeper.spark.staged import Staging

    staging = Staging(spark, tmp_path, in_process_rows_max=0, in_arrow_rows_max=0)
    seed = CLASSES.index(kind)
    scenario = random_rich_scenario(seed, 4)
    check(scenario, run(scenario, seed, NETWORKS[seed % 3], embody=staging.of_bag))


class CountsBatches(SelfKeptView):
    """Remembers what was installed."""

    def step(self, event):
        actions = super().step(event)
        self.installed = [
            *getattr(self, "installed", ()),
            *(action for action in actions if isinstance(action, InstallBatch)),
        ]
        return actions


def test_small_batches_run_no_spark_job(spark, tmp_path):
    from viewkeeper.spark.staged import StagedRelation, Staging

    staging = Staging(spark, tmp_path)
    spark.sparkContext.setJobGroup("small", "batches that should not need Spark")
    for seed in range(len(CLASSES)):
        scenario = random_rich_scenario(seed, 20)
        world = run(scenario, seed, NETWORKS[0], CountsBatches, embody=staging.of_bag)
        check(scenario, world)
        for install in world.protocol.installed:
            for change in (install.change, *install.stores.values()):
                assert isinstance(change, StagedRelation)
    assert spark.sparkContext.statusTracker().getJobIdsForGroup("small") == []
