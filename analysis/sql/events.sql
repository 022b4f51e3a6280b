-- Grain: one row a profiler event.
CREATE VIEW events AS FROM stg_events;

COMMENT ON VIEW events IS 'One row a profiler event of a run; read from its files when asked for.';
