-- Grain: one row a point and environment.
-- What binds it as measured (`_now_bounds`) and, by the two-term law, at another speed of host and device (`bounds`).
-- Imported traces have no times without a profiler to move, and are left out.
CREATE VIEW whatif_bounds AS
SELECT
    now.point_id, now.environment_id,
    now.workload, now.size, now.dtype, now.batch, now.compile, now.dynamic, now.warmup, now.device, now.params,
    now.bound, moved.bound AS then_bound,
    now.bound IS DISTINCT FROM moved.bound AS moves,
    now.margin, moved.margin AS then_margin,
    now.wall_us, moved.wall_us AS then_wall_us,
    now.wall_us / nullif(moved.wall_us, 0) AS speed_up,
    now.gain, moved.gain AS then_gain,
    moved.reason AS then_reason, moved.sentence AS then_sentence
FROM _now_bounds AS now
JOIN bounds AS moved
    ON now.point_id IS NOT DISTINCT FROM moved.point_id AND now.environment_id IS NOT DISTINCT FROM moved.environment_id
ANTI JOIN _imports AS i ON i.run_id = now.run_id;

COMMENT ON VIEW whatif_bounds IS
    'One row a point and environment: its bound, margin, wall time and gain as measured, and at another speed.';
COMMENT ON COLUMN whatif_bounds.bound IS 'What binds the point as it was measured.';
COMMENT ON COLUMN whatif_bounds.then_bound IS 'What would bind it at the other speed.';
COMMENT ON COLUMN whatif_bounds.moves IS 'The two bounds differ.';
COMMENT ON COLUMN whatif_bounds.then_margin IS 'overhead / work at the other speed.';
COMMENT ON COLUMN whatif_bounds.then_wall_us IS 'Steady time a step at the other speed; microseconds; NULL = unknown.';
COMMENT ON COLUMN whatif_bounds.speed_up IS 'wall_us / then_wall_us: how many times less a step would take.';
COMMENT ON COLUMN whatif_bounds.then_gain IS 'What would be left to gain at the other speed if the overhead went away.';
COMMENT ON COLUMN whatif_bounds.then_reason IS 'Why that bound, with the figures it rests on.';
COMMENT ON COLUMN whatif_bounds.then_sentence IS 'That verdict as one English sentence.';
