-- Grain: one row a measured ceiling of an environment.
CREATE VIEW roofs AS FROM stg_roofs;

COMMENT ON VIEW roofs IS 'One row a ceiling measured on this device: FLOP/s of a dtype, bytes/s of DRAM or the L2.';
