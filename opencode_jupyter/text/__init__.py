"""What tools and cards share: replacers, patches, diffs, encodings."""
