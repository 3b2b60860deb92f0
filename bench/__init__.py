"""Speed as ratios to named peers, measured interleaved in one run: `python -m bench`."""
