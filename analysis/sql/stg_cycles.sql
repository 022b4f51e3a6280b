-- Grain: one row a live run that recorded its first cycles. Lazy: the facts stay in their files until asked for.
CREATE VIEW stg_cycles AS
WITH raw AS (
    SELECT
        run_id,
        from_json(TRY_CAST(facts AS JSON), '{
            "first_cycles_us": ["DOUBLE"],
            "allocator": {
                "first_device_allocs": ["BIGINT"], "first_device_frees": ["BIGINT"], "settings": "JSON",
                "segments": "BIGINT", "free_bytes": "BIGINT", "largest_free_bytes": "BIGINT",
                "warm_us": "DOUBLE", "cold_us": "DOUBLE", "release_us": "DOUBLE", "cold_device_allocs": "DOUBLE",
                "released_segments": "DOUBLE", "reason": "VARCHAR"
            }
        }') AS fact
    FROM stg_facts
    WHERE contains(facts, '"first_cycles_us"') OR contains(facts, '"allocator"')
)
SELECT
    run_id,
    fact.first_cycles_us AS first_cycles_us,
    fact.allocator.first_device_allocs AS first_device_allocs,
    fact.allocator.first_device_frees AS first_device_frees,
    nullif(fact.allocator.settings::VARCHAR, '{}') AS allocator_settings,
    fact.allocator.segments AS segments,
    fact.allocator.free_bytes AS free_bytes,
    fact.allocator.largest_free_bytes AS largest_free_bytes,
    _finite(fact.allocator.warm_us) AS warm_us,
    _finite(fact.allocator.cold_us) AS cold_us,
    _finite(fact.allocator.release_us) AS release_us,
    _finite(fact.allocator.cold_device_allocs) AS cold_device_allocs,
    _finite(fact.allocator.released_segments) AS released_segments,
    fact.allocator.reason AS allocator_reason
FROM raw;

COMMENT ON VIEW stg_cycles IS
    'One row a live run that recorded its first cycles: their times, and what the allocator did in them.';
COMMENT ON COLUMN stg_cycles.first_cycles_us IS
    'Times of the first steps, at most 8, a synchronize behind each; microseconds. Compilations lie in them.';
COMMENT ON COLUMN stg_cycles.first_device_allocs IS 'Calls of cudaMalloc in each of them.';
COMMENT ON COLUMN stg_cycles.first_device_frees IS 'Calls of cudaFree in each of them.';
COMMENT ON COLUMN stg_cycles.allocator_settings IS
    'JSON object: environment variables that change the allocator; NULL = none was set.';
COMMENT ON COLUMN stg_cycles.segments IS 'Pieces of memory that the allocator has from the driver, between two steps.';
COMMENT ON COLUMN stg_cycles.free_bytes IS 'Their bytes that no tensor uses then.';
COMMENT ON COLUMN stg_cycles.largest_free_bytes IS 'The largest free piece.';
COMMENT ON COLUMN stg_cycles.warm_us IS
    'Time of a single step, a synchronize round it, with all memory cached; microseconds.';
COMMENT ON COLUMN stg_cycles.cold_us IS
    'The same right behind torch.cuda.empty_cache(), so that all its memory is asked for anew; microseconds.';
COMMENT ON COLUMN stg_cycles.release_us IS 'Time of that torch.cuda.empty_cache(); microseconds.';
COMMENT ON COLUMN stg_cycles.cold_device_allocs IS 'Calls of cudaMalloc in the step behind it.';
COMMENT ON COLUMN stg_cycles.released_segments IS 'Calls of cudaFree in it.';
COMMENT ON COLUMN stg_cycles.allocator_reason IS 'Why what the allocator holds or costs is unknown.';
