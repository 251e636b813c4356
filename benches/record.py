"""Turn a pytest-benchmark JSON into the table of ratios that is kept in benches/record.

Usage: python benches/record.py BENCHMARKS.json
"""

import json
import pathlib
import sys

import dpcore


def table(path: pathlib.Path) -> str:
    """Markdown: the fastest round of every contender, per draw, and its ratio to dpcore's."""
    report = json.loads(path.read_text())
    machine = report["machine_info"]["cpu"]
    cpu = f"{machine.get('brand_raw', 'unknown CPU')}, {machine.get('count')} cores"
    lines = [
        f"# {cpu}",
        "",
        f"{report['datetime'][:10]}, dpcore {dpcore.__version__}, path "
        f"`{dpcore._core.cpu()}`. Fastest of the rounds; ratio to the first row of a group. "
        f"Remade by `DPCORE_CPU={dpcore._core.cpu()} make bench`.",
    ]
    groups: dict[str, list[dict]] = {}
    for bench in report["benchmarks"]:
        groups.setdefault(bench["group"], []).append(bench)
    for name, benches in groups.items():
        lines += [
            "",
            f"## {name}",
            "",
            "| contender | ns an operation | seconds | ratio |",
            "| --- | ---: | ---: | ---: |",
        ]
        first = None
        for bench in benches:
            best = bench["stats"]["min"]
            cost = best / bench["extra_info"]["operations"]
            first = first or cost
            label = bench["param"] if bench["param"] is not None else bench["name"]
            more = {k: round(v, 3) for k, v in bench["extra_info"].items() if k != "operations"}
            label = f"{label} {more}" if more else label
            lines.append(f"| {label} | {1e9 * cost:.4g} | {best:.4g} | {cost / first:.3g} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1])
    target = pathlib.Path(__file__).parent / "record" / f"{dpcore._core.cpu()}.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(table(source))
    print(target)
