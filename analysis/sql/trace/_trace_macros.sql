-- Macros of the trace that is written. Private: names begin with `_`.

-- Nanoseconds (not negative) as microseconds with 3 decimals; from integers, so that no digit is lost.
CREATE OR REPLACE TEMP MACRO _trace_us(ns) AS concat((ns // 1000)::VARCHAR, '.', lpad((ns % 1000)::VARCHAR, 3, '0'));

-- A process or thread as JSON: a whole number of up to 18 digits is one, unless `stays_text`; all else is a text.
CREATE OR REPLACE TEMP MACRO _trace_row(number, stays_text) AS CASE
    WHEN regexp_full_match(number, '0|-?[1-9][0-9]{0,17}') AND NOT stays_text THEN number
    ELSE coalesce(to_json(number)::VARCHAR, '""')
END;

-- Whether rows of a category stand on the device's part of the timeline.
CREATE OR REPLACE TEMP MACRO _on_device(category) AS
    coalesce(category IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'gpu_user_annotation', 'cuda_sync'), false);

-- Whether a JSON object has a key; it is read only where its text shows the name.
CREATE OR REPLACE TEMP MACRO _has_key(object, name) AS
    CASE WHEN contains(object, '"' || name || '"') THEN list_contains(json_keys(TRY_CAST(object AS JSON)), name) ELSE false END;
