-- Macros of the profiler's table. Private: names begin with `_`.

-- Bytes with their unit; what was freed is negative.
CREATE OR REPLACE TEMP MACRO _size(bytes) AS CASE WHEN bytes < 0 THEN '-' ELSE '' END || CASE
    WHEN abs(bytes) >= 2^30 THEN _number(abs(bytes) / 2^30) || ' GiB'
    WHEN abs(bytes) >= 2^20 THEN _number(abs(bytes) / 2^20) || ' MiB'
    WHEN abs(bytes) >= 2^10 THEN _number(abs(bytes) / 2^10) || ' KiB'
    ELSE abs(bytes) || ' B'
END;
