"""Settings of the benchmarks: run `make bench`, or `make smoke` for one round of each."""

import pytest


def pytest_collect_file(parent: pytest.Collector, file_path: object) -> pytest.Module | None:
    """Collect bench_*.py without calling them tests."""
    name = getattr(file_path, "name", "")
    if name.startswith("bench_") and name.endswith(".py"):
        return pytest.Module.from_parent(parent, path=file_path)
    return None


@pytest.fixture(scope="session")
def tiny(pytestconfig: pytest.Config) -> bool:
    """True for the smoke run: small sizes, one round."""
    return bool(pytestconfig.getoption("benchmark_disable"))


@pytest.fixture
def race(benchmark, tiny):
    """Time one contender of a group; everything it returns is handed back for an assertion."""

    def run(group: str, work, operations: int, rounds: int = 15):
        benchmark.group = group
        benchmark.extra_info["operations"] = operations
        return benchmark.pedantic(work, rounds=1 if tiny else rounds, warmup_rounds=not tiny)

    return run
