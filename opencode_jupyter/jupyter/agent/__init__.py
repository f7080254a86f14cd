"""A model at work in a cell: ``%%agent``, ``%agent``, and the card of a run."""
