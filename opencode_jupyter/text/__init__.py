"""What tools and cards share: replacers, diffs, line scanning, encodings."""
