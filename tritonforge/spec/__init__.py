"""What the user asked for: frozen pydantic models, one noun per module, and the reader that names file, line and key."""
