"""A marimo notebook over the H200 results of this repository: what binds each point, and what the traces say.

`marimo edit docs/notebook.py` opens it in the browser, `python docs/notebook.py` runs it as a script.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium")

with app.setup:
    from pathlib import Path

    import altair as alt
    import marimo as mo

    from analysis import frame, open_store

    STORE = Path(__file__).parent / "results" / "h200"


@app.cell
def _():
    connection = open_store(STORE)
    return (connection,)


@app.cell
def _(connection):
    counted = frame(
        connection, "SELECT bound, count(*) AS points FROM bounds GROUP BY bound ORDER BY points DESC, bound"
    )
    mo.vstack([mo.md("# What binds each point of one H200"), mo.ui.table(counted, selection=None)])
    return (counted,)


@app.cell
def _(connection):
    dtypes = frame(connection, "SELECT DISTINCT dtype FROM bounds WHERE workload = 'matmul_add' ORDER BY 1")[
        "dtype"
    ].to_list()
    dtype = mo.ui.dropdown(dtypes, value="bf16", label="dtype")
    mo.hstack([dtype], justify="start")
    return (dtype,)


@app.cell
def _(connection, dtype):
    times = frame(
        connection,
        f"""
        SELECT size, compile, quantity, us
        FROM bounds
        UNPIVOT (us FOR quantity IN (issue_us, device_us, wall_us))
        WHERE workload = 'matmul_add' AND dtype = '{dtype.value}' AND compile = 'false' AND batch IS NULL AND size >= 64
        ORDER BY ALL
        """,
    )
    chart = (
        alt.Chart(times, title="The step takes as long as the slower of host (issue) and device")
        .mark_line(point=True)
        .encode(
            x=alt.X("size", scale=alt.Scale(type="log", base=2), title="size"),
            y=alt.Y("us", scale=alt.Scale(type="log"), title="microseconds a step"),
            color=alt.Color("quantity", title="time"),
        )
    )
    mo.vstack([mo.md("## Eager, along the size"), chart])
    return chart, times


@app.cell
def _(connection):
    crossovers = frame(
        connection,
        """
        SELECT dtype, batch, compile, "text" AS crossover, status
        FROM crossovers
        WHERE workload = 'matmul_add' AND axis = 'size'
        ORDER BY ALL
        """,
    )
    mo.vstack([mo.md("## Where each series changes sides"), mo.ui.table(crossovers, selection=None)])
    return (crossovers,)


@app.cell
def _(connection):
    found = frame(
        connection,
        """
        SELECT severity, "rule", count(*) AS runs, max(gain) AS best_gain, any_value(sentence) AS example
        FROM findings
        GROUP BY ALL
        ORDER BY severity, runs DESC, "rule"
        """,
    )
    mo.vstack([mo.md("## What the rules read in the traces"), mo.ui.table(found, selection=None)])
    return (found,)


if __name__ == "__main__":
    app.run()
