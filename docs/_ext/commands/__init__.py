"""Commands that need no Sphinx: recording what pages print, and listing how recordings stand."""
