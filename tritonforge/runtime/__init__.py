"""What runs inside Triton. This package is copied into model repositories, so it imports nothing else of ours."""
