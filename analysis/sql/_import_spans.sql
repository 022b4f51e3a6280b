-- Grain: one row an imported run and step.
-- A table: the verdicts and the findings of imports read it. It is made without a row, and filled by imports/spans.sql
-- where the store holds imports: no other run's events may be read for it.
CREATE TABLE _import_spans AS FROM _steps_of('_imports') LIMIT 0;

COMMENT ON TABLE _import_spans IS 'One row an imported run and step: the rows of steps that belong to imports.';
