"""Text to token ids and back for every supported checkpoint, without running code from the checkpoint."""
