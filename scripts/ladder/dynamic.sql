-- A cycle calls the block with each of `shapes` lengths. *Steps* is after how many cycles the choice has paid against the other; the reason says why never.
SELECT json_extract_string(params, '$.op') AS op, size, json_extract_string(params, '$.shapes') AS shapes, choice, against,
    compilations, compile_s, lost_s, wall_us, wall_ratio, steps, reason
FROM payback WHERE workload = 'shape_sequence'
ORDER BY op, size, shapes, choice, against;
