-- Grain: one row a live run whose memory was watched phase by phase. Lazy: the facts stay in their files until asked
-- for.
CREATE VIEW stg_memory AS
WITH raw AS (
    SELECT
        run_id,
        from_json(TRY_CAST(facts AS JSON), '{
            "phase_memory": "JSON",
            "memory_sums": {
                "method": "VARCHAR", "allocated_bytes": "BIGINT", "held_bytes": "BIGINT", "off_frac": "DOUBLE",
                "reason": "VARCHAR"
            }
        }') AS fact
    FROM stg_facts
    WHERE contains(facts, '"phase_memory"') OR contains(facts, '"memory_sums"')
)
SELECT
    run_id,
    CASE WHEN json_type(fact.phase_memory) = 'ARRAY' THEN fact.phase_memory::VARCHAR END AS phase_memory,
    fact.memory_sums.method AS memory_method,
    fact.memory_sums.allocated_bytes AS allocator_bytes,
    fact.memory_sums.held_bytes AS held_bytes,
    _finite(fact.memory_sums.off_frac) AS off_frac,
    fact.memory_sums.reason AS memory_reason
FROM raw;

COMMENT ON VIEW stg_memory IS
    'One row a live run whose memory was watched by phase: what was seen, and how far its sums are off.';
COMMENT ON COLUMN stg_memory.phase_memory IS
    'JSON list, one object a phase in order: bytes at start, end and peak, and by holder; NULL = unknown.';
COMMENT ON COLUMN stg_memory.memory_method IS 'How the memory was watched.';
COMMENT ON COLUMN stg_memory.allocator_bytes IS 'What the allocator itself counted as allocated.';
COMMENT ON COLUMN stg_memory.held_bytes IS 'The sum over holders of the same moment.';
COMMENT ON COLUMN stg_memory.off_frac IS 'How far the sum is off the allocator''s count, as a share of it.';
COMMENT ON COLUMN stg_memory.memory_reason IS 'Why the holders or their sums are unknown.';
