-- Fills _import_spans: one row an imported run and step.
INSERT INTO _import_spans FROM _steps_of('_imports');
