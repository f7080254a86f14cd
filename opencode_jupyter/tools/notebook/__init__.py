"""Notebook files as cells: their text, their outputs in words, a change of one cell, and open documents."""
