"""Reading tables row by row: lines, records and values."""
