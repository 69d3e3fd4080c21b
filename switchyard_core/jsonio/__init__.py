"""JSON: the lossless tree over bytes, one reader, the printer, and JSONPath."""
