#!/usr/bin/env python3
"""Reads exports of a run with pyarrow, DuckDB, polars, datasets and NumPy; compares them with each other and with queries.

    scripts/check-exports.py PROGRAM

PROGRAM is exact2048. The script solves a small board in a temporary folder. It installs Python packages from PyPI into a
separate environment in target/exports.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / "target" / "exports"
NEEDED = ["datasets", "duckdb", "numpy", "polars", "pyarrow"]
BOARD = (3, 2)
MOVES = ["left", "right", "up", "down"]
# Approximate number of queried states.
QUERIED = 2000


def in_environment():
    """Restarts the script in an environment with the needed packages."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDED], check=True)
    os.execv(python, [str(python), __file__, "--here", *sys.argv[1:]])


def text(board):
    """A packed board as a text for queries."""
    rows, columns = BOARD
    tiles = [1 << (board >> 4 * cell & 15) for cell in range(rows * columns)]
    tiles = ["0" if tile == 1 else str(tile) for tile in tiles]
    return " / ".join(" ".join(tiles[row * columns : (row + 1) * columns]) for row in range(rows))


def check(name, is_right):
    if not is_right:
        sys.exit(f"error: {name}")
    print(f"ok: {name}")


def main(program):
    import datasets
    import duckdb
    import numpy
    import polars
    import pyarrow.parquet as parquet

    size = "x".join(map(str, BOARD))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run = str(folder / "run")

        def call(*args, **options):
            done = subprocess.run([program, *args], check=True, capture_output=True, text=True, **options)
            return done.stdout

        solved = json.loads(call("solve", "--json", "--board", size, "--run", run))
        for what in ["states", "policy", "afterstates"]:
            for file_format in ["parquet", "npy", "csv"]:
                out = str(folder / f"{what}-{file_format}")
                call("export", "--run", run, "--what", what, "--format", file_format, "-o", out)
            data = {kind: folder / f"{what}-{kind}" / "data" for kind in ["parquet", "npy", "csv"]}
            arrow = parquet.read_table(data["parquet"])
            names = arrow.column_names
            # Missing values are masked.
            columns = {name: numpy.ma.masked_array(arrow[name].to_numpy(), arrow[name].is_null().to_numpy()) for name in names}
            missing = {name for name in names if columns[name].mask.any()}
            check(f"{what}: only values of moves are missing", missing == (set(MOVES) if what == "policy" else set()))

            def is_same(read):
                """Whether columns are equal, including missing values."""
                for name in names:
                    found = numpy.ma.masked_invalid(read[name])
                    masks = numpy.ma.getmaskarray(found), numpy.ma.getmaskarray(columns[name])
                    if not numpy.array_equal(*masks) or not numpy.ma.allequal(found, columns[name]):
                        return False
                return True

            check(f"{what}: the number of rows matches the count", arrow.num_rows == solved[what.replace("policy", "states")])

            def array(name):
                return numpy.concatenate([numpy.load(path) for path in sorted(data["npy"].glob(f"*.{name}.npy"))])

            check(f"{what}: NumPy and pyarrow read the same", is_same({name: array(name) for name in names}))
            masks = {name: array(f"{name}.mask") for name in missing}
            right = all(numpy.array_equal(mask, numpy.isnan(array(name))) for name, mask in masks.items())
            check(f"{what}: masks of arrays mark missing values", right)
            mapped = [numpy.load(path, mmap_mode="r") for path in data["npy"].iterdir()]
            check(f"{what}: arrays are aligned", all(one.flags.aligned and one.offset % 64 == 0 for one in mapped))

            def by_duckdb(source):
                return is_same(duckdb.sql(f"SELECT * FROM {source} ORDER BY layer, board").fetchnumpy())

            check(f"{what}: DuckDB reads the same Parquet", by_duckdb(f"read_parquet('{data['parquet']}/*')"))
            check(f"{what}: DuckDB reads the same CSV", by_duckdb(f"read_csv('{data['csv']}/*')"))

            def of_polars(read):
                return is_same({name: numpy.ma.masked_array(read[name].to_numpy(), read[name].is_null()) for name in names})

            check(f"{what}: polars reads the folder of Parquet", of_polars(polars.read_parquet(data["parquet"])))
            check(f"{what}: polars reads the folder of CSV", of_polars(polars.read_csv(data["csv"])))
            for kind in ["parquet", "csv"]:
                cache = str(folder / "cache")
                read = datasets.load_dataset(kind, data_dir=str(data[kind]), cache_dir=cache, split="train")
                read = read.data.table
                read = {name: numpy.ma.masked_array(read[name].to_numpy(), read[name].is_null().to_numpy()) for name in names}
                check(f"{what}: datasets reads the folder of {kind}", is_same(read))
            if missing:
                high = float(columns["left"].max())
                found = duckdb.sql(f"SELECT count(*), max(\"left\") FROM read_parquet('{data['parquet']}/*') WHERE \"left\" >= {high!r}")
                check("policy: DuckDB compares only legal moves", found.fetchall()[0] == (int((columns["left"] == high).sum()), high))

            file = parquet.ParquetFile(next(iter(sorted(data["parquet"].glob("*.parquet")))))
            group = file.metadata.row_group(0)
            kinds = {group.column(at).compression for at in range(len(names))}
            board = group.column(names.index("board")).statistics
            layer = group.column(names.index("layer")).statistics
            has_statistics = board.min == columns["board"].min() and layer.max == columns["layer"].max()
            check(f"{what}: Zstandard and statistics", kinds == {"ZSTD"} and has_statistics)
            if what == "afterstates":
                continue

            step = max(1, arrow.num_rows // QUERIED)
            asked = range(0, arrow.num_rows, step)
            boards = "".join(text(int(columns["board"][row])) + "\n" for row in asked)
            answers = [json.loads(line) for line in call("query", "--run", run, "--json", "-", input=boards).splitlines()]
            wrong = 0
            for row, answer in zip(asked, answers, strict=True):
                moves = {move["move"]: move for move in answer["moves"]}
                if what == "states":
                    wrong += columns["value"][row] != answer["value"]
                    continue
                for bit, name in enumerate(MOVES):
                    value = None if columns[name].mask[row] else float(columns[name][row])
                    move = moves.get(name, {})
                    wrong += value != (move.get("value") if move.get("legal", True) else None)
                    wrong += bool(columns["best"][row] >> bit & 1) != bool(move.get("best"))
            check(f"{what}: {len(answers)} queries agree", wrong == 0)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--here"]:
        in_environment()
    if len(sys.argv) != 3:
        sys.exit("expected the program: scripts/check-exports.py PROGRAM")
    main(sys.argv[2])
