"""Commands that need no Sphinx: recording, compiling, and listing how recordings stand."""
