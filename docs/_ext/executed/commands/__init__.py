"""Commands that need no Sphinx: `record` pages, and `list_recordings` with how they stand."""
