-- Macros: the axes of a point as a key, and in words. dynamic means nothing without compile.
CREATE OR REPLACE TEMP MACRO _axes_key(workload, size, dtype, batch, compile, dynamic, warmup, device, params) AS
to_json({
    'workload': workload, 'size': size, 'dtype': dtype, 'batch': batch, 'compile': compile,
    'dynamic': CASE WHEN compile <> 'false' THEN dynamic END, 'warmup': warmup, 'device': device, 'params': params
})::VARCHAR;

CREATE OR REPLACE TEMP MACRO _axes_words(workload, size, dtype, batch, compile, warmup, params) AS concat_ws(' ',
    workload, 'size=' || size, dtype, 'batch=' || batch,
    CASE compile WHEN 'false' THEN 'eager' ELSE 'compile=' || compile END,
    CASE WHEN warmup <> 'true' THEN 'warmup=' || warmup END, nullif(_settings(params), '')
);
