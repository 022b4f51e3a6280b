-- Rule: Part of the imported file could not be read.
-- Topic: data quality
-- Severity: misleads
-- Needs: trace
-- Otherwise: the trace was recorded here, so that there was no file to read
-- Means: The file ends before its JSON does, or holds damaged places. What stood there is in no sum: steps and kernels
--     may be missing without a sign.
-- Cure: Export the trace again and let the program that writes it end properly; python -m analysis audits tells each
--     damaged place.
WITH read AS (
    SELECT
        run_id,
        _fact(audit, 'lost_events')::BIGINT AS lost_events,
        _fact(audit, 'lost_bytes')::BIGINT AS lost_bytes,
        _fact(audit, 'truncated')::BOOLEAN AS truncated,
        _fact(audit, 'kept')::BIGINT AS kept
    FROM subjects
    WHERE status = 'ok' AND is_import AND audit IS NOT NULL AND events > 0
)
SELECT
    run_id,
    coalesce(lost_events > 0, false) OR coalesce(truncated, false) AS fired,
    _counted(coalesce(lost_events, 0), 'piece') || ' (' || coalesce(lost_bytes, 0)
        || ' bytes) could not be read beside '
        || kept || ' events, and the file ' || CASE WHEN truncated THEN 'ends before its JSON does'
        ELSE 'is complete' END AS reason,
    CASE WHEN coalesce(lost_events, 0) > 0 THEN _counted(lost_events, 'piece') || ' of the file, ' || lost_bytes
            || ' bytes, could not be read as events' || CASE WHEN truncated THEN ', and it ends before its JSON does'
            ELSE '' END
        ELSE 'The file ends before its JSON does' END
        || ': ' || kept || ' events were saved, and what followed is unknown.' AS sentence,
    {'lost_events': lost_events, 'lost_bytes': lost_bytes, 'kept_events': kept} AS figures
FROM read
