-- Grain: one row a series of the side.
CREATE OR REPLACE TEMP VIEW side_crossovers AS
SELECT
    concat_ws(' ', axis, _axes_key(workload, size, dtype, batch, compile, dynamic, warmup, device, params)) AS series,
    _axes_words(workload, size, dtype, batch, compile, warmup, params) AS name,
    axis, environment_id, "value", low, high, status, "text", reason
FROM crossovers;

COMMENT ON VIEW side_crossovers IS 'One row a series of one side: where its overhead stops binding.';
COMMENT ON COLUMN side_crossovers.series IS
    'The axis, and a JSON object of all others: series match where it is equal.';
COMMENT ON COLUMN side_crossovers.name IS 'The settings of the series in words.';
COMMENT ON COLUMN side_crossovers.axis IS 'The axis that varies.';
COMMENT ON COLUMN side_crossovers.environment_id IS 'Where it was measured.';
COMMENT ON COLUMN side_crossovers."value" IS 'Where overhead and work are equal; NULL = no value.';
COMMENT ON COLUMN side_crossovers.low IS 'Low end of its bracket; NULL = open.';
COMMENT ON COLUMN side_crossovers.high IS 'High end of its bracket; NULL = open.';
COMMENT ON COLUMN side_crossovers.status IS 'found, bracketed, above, below, several or unknown.';
COMMENT ON COLUMN side_crossovers."text" IS 'The crossing in words.';
COMMENT ON COLUMN side_crossovers.reason IS 'Why this status.';
