-- The sum of a fleet's rows, as rows again. The first inner query counts a run once if it is in several files; rows without a
-- run are sums or of runs without an id, and each counts. Files whose sums have a run in common can't be taken apart here:
-- tamis refuses them.
SELECT
    CASE WHEN kind = 'run' THEN run END AS run,
    CASE WHEN kind = 'run' THEN machine END AS machine,
    CASE WHEN kind = 'run' THEN program END AS program,
    kind, arch, nr, arg, value, args,
    CAST(CASE kind
        WHEN 'min_ns' THEN MIN(count)
        WHEN 'max_ns' THEN MAX(count)
        ELSE LEAST(SUM(CAST(count AS DECIMAL(30, 0))), 18446744073709551615)
    END AS DECIMAL(20, 0)) AS count,
    CAST(SUM(runs) AS BIGINT) AS runs
FROM (
    SELECT run, machine, program, kind, arch, nr, arg, value, args,
        CASE kind WHEN 'min_ns' THEN MIN(count) ELSE MAX(count) END AS count, MAX(runs) AS runs
    FROM fleet
    WHERE run IS NOT NULL
    GROUP BY run, machine, program, kind, arch, nr, arg, value, args
    UNION ALL
    SELECT run, machine, program, kind, arch, nr, arg, value, args, count, runs
    FROM fleet
    WHERE run IS NULL
)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
