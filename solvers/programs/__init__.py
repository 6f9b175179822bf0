"""Linear and integer programs: rows and columns in, a backend's point and its certificates out."""
