"""Runs one attempt of one job: `python -m tiltyard.job ID --attempt N`."""
