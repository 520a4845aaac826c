"""The text-level model: text in, text out, in front of the engine versions."""
