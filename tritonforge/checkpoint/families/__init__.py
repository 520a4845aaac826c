"""One module per checkpoint family, found from config.json's facts."""
