"""Talks to any Triton or KServe v2 server; usable without the rest of the package."""
