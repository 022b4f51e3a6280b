-- Grain: one row an environment.
CREATE VIEW environments AS FROM stg_environments;

COMMENT ON VIEW environments IS 'One row an environment: versions, device, host, and the limits of the device.';
