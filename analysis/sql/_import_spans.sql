-- Grain: one row an imported run and step.
-- A table: the verdicts and the findings of imports read it, and no other run's events may be read for it.
CREATE TABLE _import_spans AS FROM _steps_of('_imports');

COMMENT ON TABLE _import_spans IS 'One row an imported run and step: the rows of steps that belong to imports.';
