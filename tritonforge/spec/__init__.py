"""What the user asked for: frozen pydantic models, one noun per module, and the reader of forge.yaml."""
