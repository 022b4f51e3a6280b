-- Grain: one row a pair of warm points alike but for one numeric axis that changes the FLOPs of a step at equal bytes, or
-- its bytes at equal FLOPs.
-- An intervention on the roofs: compute-bound points must answer to FLOPs alone, memory-bound ones to bytes alone. Equal
-- is within 5 %, changed at least 1.5 times. Only pairs of one and the same bound say anything.
CREATE VIEW interventions AS
WITH placed AS (
    SELECT s.* EXCLUDE (side), b.wall_us, b.flops, b.bytes
    FROM _series_points AS s
    JOIN bounds AS b USING (point_id, environment_id)
    WHERE b.bound IN ('compute-bound', 'memory-bound') AND b.flops > 0 AND b.bytes > 0 AND b.wall_us > 0
),
paired AS (
    SELECT
        a.environment_id, a.workload, a.size, a.dtype, a.batch, a.compile, a.dynamic, a.warmup, a.device, a.params,
        a.axis, a.bound,
        a.point_id AS less_point_id, z.point_id AS more_point_id,
        a.axis_value AS less_value, z.axis_value AS more_value,
        z.flops / a.flops AS flops_ratio, z.bytes / a.bytes AS bytes_ratio, z.wall_us / a.wall_us AS wall_ratio
    FROM placed AS a
    JOIN placed AS z
        ON z.environment_id = a.environment_id AND z.axis = a.axis AND z.workload = a.workload AND z.dtype = a.dtype
        AND z.size IS NOT DISTINCT FROM a.size AND z.batch IS NOT DISTINCT FROM a.batch AND z.compile = a.compile
        AND z.dynamic = a.dynamic AND z.warmup = a.warmup AND z.device = a.device AND z.params = a.params
        AND z.bound = a.bound AND z.axis_value > a.axis_value
),
changed AS (
    SELECT
        *,
        CASE
            WHEN abs(ln(flops_ratio)) >= ln(1.5) AND abs(ln(bytes_ratio)) <= ln(1.05) THEN 'flops'
            WHEN abs(ln(bytes_ratio)) >= ln(1.5) AND abs(ln(flops_ratio)) <= ln(1.05) THEN 'bytes'
        END AS changed
    FROM paired
)
SELECT
    * EXCLUDE (changed),
    changed,
    ln(wall_ratio) / ln(CASE changed WHEN 'flops' THEN flops_ratio ELSE bytes_ratio END) AS elasticity,
    bound = (CASE changed WHEN 'flops' THEN 'compute-bound' ELSE 'memory-bound' END) AS should_move,
    (elasticity > 0.5) = should_move AS agrees
FROM changed
WHERE changed IS NOT NULL;

COMMENT ON VIEW interventions IS
    'One row a pair of points that differ in FLOPs at equal bytes or the reverse: did the wall time move as the bound says?';
COMMENT ON COLUMN interventions.bound IS 'Bound of both points: compute-bound or memory-bound.';
COMMENT ON COLUMN interventions.axis IS 'The axis that varies; it is NULL or missing among the settings.';
COMMENT ON COLUMN interventions.less_point_id IS 'Point with the smaller value of the axis.';
COMMENT ON COLUMN interventions.more_point_id IS 'Point with the greater value of the axis.';
COMMENT ON COLUMN interventions.less_value IS 'Smaller value of the axis.';
COMMENT ON COLUMN interventions.more_value IS 'Greater value of the axis.';
COMMENT ON COLUMN interventions.flops_ratio IS 'FLOPs of a step at the greater value over those at the smaller.';
COMMENT ON COLUMN interventions.bytes_ratio IS 'Bytes that the operations move, likewise.';
COMMENT ON COLUMN interventions.wall_ratio IS 'wall_us, likewise.';
COMMENT ON COLUMN interventions.changed IS 'What was changed: flops or bytes.';
COMMENT ON COLUMN interventions.elasticity IS
    'ln(wall_ratio) / ln(ratio of what was changed): 1 where the wall follows it, 0 where it does not care.';
COMMENT ON COLUMN interventions.should_move IS 'The stated bound says that the wall follows the change.';
COMMENT ON COLUMN interventions.agrees IS 'The wall followed (elasticity above 0.5) exactly where it should.';
