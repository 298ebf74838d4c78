"""The sections of the report, one module each: rows and details in, plain blocks out."""
