#!/usr/bin/env python3
"""Merges a fleet's rows by another engine: `compare.py ENGINE FLEET.parquet SUM.parquet`, with DuckDB or Spark from PyPI.

`tamis profile merge SUM.parquet` then writes the same bytes as `tamis profile merge FLEET.parquet`. Spark runs as a cluster of two
workers on this machine."""

import glob
import shutil
import sys
import time
from pathlib import Path

engine, fleet, target = sys.argv[1:]
query = (Path(__file__).parent / "merge.sql").read_text()
began = time.monotonic()
if engine == "duckdb":
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW fleet AS SELECT * FROM read_parquet('{fleet}')")
    connection.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet)")
else:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    session = session.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    began = time.monotonic()
    session.read.parquet(fleet).createOrReplaceTempView("fleet")
    session.sql(query).coalesce(1).write.mode("overwrite").parquet(target + ".parts")
    shutil.copy(glob.glob(target + ".parts/*.parquet")[0], target)
    shutil.rmtree(target + ".parts")
    session.stop()
print(f"{engine}: {time.monotonic() - began:.1f} s")
